#pragma once

// ViewerChild: a viewer that `monarch over-ssh` runs for somebody on another machine: this program again with the words
// of an order, its output in pipes, and nothing of its terminal but what the order tells. It dies with us.
//
// Thread: the loop's, the only one of its process (it forks). Lifetime: shorter than the loop's; its end kills the
// viewer. No handler may destroy it.

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cli/away/viewer_frames.h"
#include "cli/term/environment.h"
#include "cli/term/terminal_facts.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/process/child_watch.h"
#include "transport/process/spawn.h"

namespace monarch {

// What of the viewer's surroundings decides how it shows things: taken from where the person is, and from nowhere else.
const std::vector<std::string>& display_variables();
// Of the machine that we are on, but for those, which are the order's. `widths` is the number that the descriptor has
// in the viewer.
std::vector<std::string> viewer_environment(const Environment& env, const ViewerOrder& order, int widths);

struct ViewerChildHandlers {
  std::function<void(ViewerFrameKind stream, std::string_view bytes)> on_bytes;  // kOut or kErr
  std::function<void(const ExitStatus& status)> on_ended;                        // once, after the last byte
};

class ViewerChild {
 public:
  static Result<std::unique_ptr<ViewerChild>> start(EventLoop& loop, const std::string& program, const Environment& env,
                                                    const ViewerOrder& order, ViewerChildHandlers handlers);
  ViewerChild(const ViewerChild&) = delete;
  ViewerChild& operator=(const ViewerChild&) = delete;
  ~ViewerChild();

  // Paused, its output waits in its pipes, and then it itself does.
  void pause();
  void resume();
  void signal(int number);
  void resize(const TerminalWidths& widths);
  // Nobody reads this stream any more.
  void close(ViewerFrameKind stream);

 private:
  struct Stream {
    ViewerFrameKind kind;
    UniqueFd pipe;
    WatchId watch = 0;
  };
  ViewerChild(EventLoop& loop, ViewerChildHandlers handlers)
      : loop_(loop), handlers_(std::move(handlers)), ends_(loop) {}
  Status watch(Stream& stream);
  void forget(Stream& stream);
  void read(Stream& stream);
  void tell_end();

  EventLoop& loop_;
  ViewerChildHandlers handlers_;
  std::unique_ptr<Child> child_;  // its descriptor is watched by the next
  ChildWatch ends_;
  UniqueFd widths_;
  Stream out_{.kind = ViewerFrameKind::kOut, .pipe = {}};
  Stream err_{.kind = ViewerFrameKind::kErr, .pipe = {}};
  bool paused_ = false;
  bool told_ = false;
  std::optional<ExitStatus> status_;
};

}  // namespace monarch
