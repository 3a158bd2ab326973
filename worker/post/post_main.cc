#include "worker/post/post_main.h"

#include "transport/messages/post.h"
#include "worker/post/post.h"
#include "worker/servant/servant_main.h"

namespace monarch {

int post_main() {
  return servant_main<PostSetup>("post", {}, [](PostSetup setup, SignalFd& signals) -> Status {
    MONARCH_ASSIGN(auto post, post::Post::start(std::move(setup), signals));
    post->run();
    return {};
  });
}

}  // namespace monarch
