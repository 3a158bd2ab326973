#include "supervisor/launch/ssh/remote_talk.h"

#include <string_view>
#include <utility>

#include "supervisor/launch/ssh/remote_script.h"
#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

class Talk {
 public:
  Talk(RemoteOrder order, const WorkerImage* image, const RemoteTalkOptions& options)
      : bootstrap_(order.bootstrap), conversation_(std::move(order)), image_(image), options_(options) {}

  RemoteResult run(SshSession& session) {
    RemoteAnswer answer = converse(session);
    return {std::move(answer), handed_over_};
  }

 private:
  RemoteAnswer converse(SshSession& session) {
    auto channel = session.exec(remote_command(), patience());
    if (!channel.ok()) return failure(channel.error());
    while (!conversation_.answer()) {
      const Status stepped = step(**channel);
      if (!stepped.ok()) return failure(stepped.error());
    }
    return *conversation_.answer();
  }

  Patience patience() const { return {boot_now() + options_.silence, options_.cancel}; }

  RemoteAnswer failure(const Error& error) {
    if (error.code == ErrorCode::kTimeout) return conversation_.timed_out();
    if (error.code == ErrorCode::kGone) {
      conversation_.on_end(std::nullopt);
      if (conversation_.answer()) return *conversation_.answer();
    }
    return LaunchFailure{.kind = LaunchFailureKind::kOther,
                         .phase = conversation_.phase(),
                         .message = error.message,
                         .words = conversation_.words()};
  }

  // What can be said and heard now; where that is nothing, until there is something.
  Status step(SshChannel& channel) {
    take_turn();
    const bool said = say(channel);
    MONARCH_ASSIGN(const SshOutput heard, channel.read_some());
    if (!heard.err.empty()) conversation_.on_words(heard.err);
    if (!heard.out.empty()) conversation_.on_output(heard.out);
    if (conversation_.answer()) return {};
    if (heard.ended) {
      MONARCH_ASSIGN(const auto status, channel.exit_status(patience()));
      conversation_.on_end(status);
      MONARCH_ASSERT(conversation_.answer().has_value());
      return {};
    }
    if (said || !heard.out.empty() || !heard.err.empty()) return {};
    return channel.wait(patience());
  }

  void take_turn() {
    const RemoteTurn turn = conversation_.take_turn();
    words_ += turn.bytes;
    // The conversation says it when the worker has been executed, and never before.
    handed_over_ = handed_over_ || (!bootstrap_.empty() && turn.bytes.ends_with(bootstrap_));
    if (!turn.file) return;
    MONARCH_ASSERT(image_ != nullptr);
    file_left_ = image_->bytes;
  }

  // Whether anything went out. A script that has ended takes nothing more; what it wrote before tells why.
  bool say(SshChannel& channel) {
    const std::string_view next = words_.empty() ? file_left_ : std::string_view(words_);
    const auto written = channel.write_some(next);
    if (!written.ok() || *written == 0) return false;
    words_.empty() ? file_left_.remove_prefix(*written) : static_cast<void>(words_.erase(0, *written));
    return true;
  }

  std::string bootstrap_;
  bool handed_over_ = false;
  RemoteConversation conversation_;
  const WorkerImage* image_;
  const RemoteTalkOptions& options_;
  std::string words_;           // to be written, before the file
  std::string_view file_left_;  // of it
};

}  // namespace

RemoteResult remote_talk(SshSession& session, RemoteOrder order, const WorkerImage* image,
                         const RemoteTalkOptions& options) {
  return Talk(std::move(order), image, options).run(session);
}

}  // namespace monarch
