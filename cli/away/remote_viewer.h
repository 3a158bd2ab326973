#pragma once

// RemoteViewer: the half of a viewer that is with the person, while its other half (ViewerHost) is where the job lives:
// what comes is written to our stdout and stderr, signals go there, and its exit code is ours. A viewer that follows a
// job gets over a lost connection: it is made again for a while, which is said, and goes on where it was, without a
// byte lost or doubled.
//
// A terminal that is stopped, or a pager that waits, stops the other half, and never the job.
//
// Thread: its own loop's, until follow() returns. Lifetime: the command's.

#include <memory>
#include <optional>
#include <string>

#include "cli/away/remote_files.h"
#include "cli/away/viewer_door.h"
#include "cli/away/viewer_frames.h"
#include "cli/away/viewer_link.h"
#include "cli/away/viewer_outbox.h"
#include "cli/follow/signal_policy.h"
#include "cli/term/screen.h"
#include "cli/term/terminal_filter.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/signals.h"

namespace monarch {

struct RemoteViewerOptions {
  ViewerOrder order;  // what is to run there; its `lingers` says whether a lost connection is made again
  ViewerKind kind = ViewerKind::kWatcher;
  // Where the viewer there has ended before we came back: what goes on in its place; empty: nothing does.
  std::vector<std::string> again;
  std::string host;                         // as the spec names it
  std::shared_ptr<const ReportFile> junit;  // where such a file goes; null: none is asked for
  std::shared_ptr<const ArtifactFolder> artifacts;
  Duration says_so = Duration::seconds(3);   // of silence, until it is said
  Duration silence = Duration::seconds(12);  // until the connection counts as lost
  Duration tries = Duration::seconds(120);   // to make it again
};

struct RemoteViewerEnd {
  int exit_code = 0;
  std::optional<JobGlance> job;  // nothing: nobody said how it is
};

class RemoteViewer {
 public:
  static Result<std::unique_ptr<RemoteViewer>> create(EventLoop& loop, ViewerDoor& door, const Terminal& terminal,
                                                      SignalFd& signals, RemoteViewerOptions options);
  RemoteViewer(const RemoteViewer&) = delete;
  RemoteViewer& operator=(const RemoteViewer&) = delete;
  ~RemoteViewer();

  RemoteViewerEnd follow();

 private:
  enum class State : std::uint8_t {
    kOpening,   // a connection is being made
    kGreeting,  // the order is said, and not answered
    kShowing,
    kResting,  // until it is tried again
    kEnding,   // all is known, and is being written
  };
  RemoteViewer(EventLoop& loop, ViewerDoor& door, const Terminal& terminal, SignalFd& signals,
               RemoteViewerOptions options);

  // remote_viewer.cc: the connection
  void open();
  void on_open(UniqueFd stream);
  void on_failed(const DoorFailure& failure);
  void on_lost(const Error& why);
  void rest(const std::string& why);
  void give_up(const std::string& message, const std::string& help, int exit_code);
  void on_tick();
  void say_silent();
  void leave(int exit_code);

  // remote_viewer_frames.cc: what is said over it
  Status on_frame(const ViewerFrame& frame);
  Status on_welcome(const ViewerFrame& frame);
  void say_heard();
  void begin_again();
  void show(ViewerFrameKind stream, std::string_view bytes);
  void note_closed(OutputWriter& writer, std::uint64_t stream, bool& told);
  void take_soon();
  void on_end(const ViewerEnd& end);
  void on_signals();
  void on_signal(int number);
  void say(const std::string& words);

  EventLoop& loop_;
  ViewerDoor& door_;
  SignalFd& signals_;
  RemoteViewerOptions options_;
  Screen screen_;
  TerminalFilter out_filter_;
  TerminalFilter err_filter_;
  RemoteFiles files_;
  ViewerOutbox outbox_;
  std::unique_ptr<ViewerLink> link_;
  State state_ = State::kOpening;
  std::string token_;
  std::uint64_t taken_ = 0;
  bool take_is_due_ = false;
  bool paused_ = false;
  bool out_closed_ = false;  // and the other side was told
  bool err_closed_ = false;
  int impatience_ = 0;  // signals that nobody over there has answered
  Instant heard_at_;
  Instant ticked_at_;
  Instant lost_at_ = Instant::never();
  Duration wait_;
  bool said_silent_ = false;
  RemoteViewerEnd end_;
};

}  // namespace monarch
