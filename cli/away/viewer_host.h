#pragma once

// ViewerHost: the half of a viewer that runs where the job is, as `monarch over-ssh`: it runs the viewer of an order,
// sends what that one shows, and passes signals on. When the connection ends, the viewer goes on for a while, so that
// another connection may take it up where it was: it is found by a token, over a socket that only this user may open,
// and is given the new connection's descriptors.
//
// How much is on its way is bounded: then the viewer's pipes are read no further, and in the end the viewer itself
// waits, but never the job.
//
// Thread: its loop's, the only one of its process (it forks).

#include <memory>
#include <optional>
#include <string>

#include "cli/away/report_folder.h"
#include "cli/away/viewer_child.h"
#include "cli/away/viewer_frames.h"
#include "cli/away/viewer_link.h"
#include "cli/away/viewer_outbox.h"
#include "cli/term/environment.h"
#include "transport/base/time.h"
#include "transport/loop/event_loop.h"
#include "transport/wire/seqpacket_listener.h"

namespace monarch {

struct ViewerHostOptions {
  std::string program;  // monarch's own path
  Environment env;
  ViewerOrder order;
  std::string socket;  // its path, with the token in it; empty: no other connection can take over
  std::string token;   // as the other side is told it
};

class ViewerHost {
 public:
  static Result<std::unique_ptr<ViewerHost>> start(EventLoop& loop, ViewerHostOptions options);
  ViewerHost(const ViewerHost&) = delete;
  ViewerHost& operator=(const ViewerHost&) = delete;
  ~ViewerHost();

  // The first connection, whose order has been read.
  Status serve(UniqueFd in, UniqueFd out);

 private:
  ViewerHost(EventLoop& loop, ViewerHostOptions options) : loop_(loop), options_(std::move(options)) {}
  void take_over(UniqueFd from);
  Status on_frame(const ViewerFrame& frame);
  void on_lost(const Error& why);
  void on_bytes(ViewerFrameKind stream, std::string_view bytes);
  void on_ended(const ExitStatus& status);
  void after_put();
  void send_reports();
  void leave();

  EventLoop& loop_;
  ViewerHostOptions options_;
  ViewerOutbox outbox_;
  std::unique_ptr<ReportFolder> reports_;  // null: none are asked for
  std::unique_ptr<ViewerChild> child_;
  std::unique_ptr<SeqpacketListener> listener_;
  std::unique_ptr<ViewerLink> link_;
  UniqueFd borrowed_from_;  // who lent us its connection waits at the other end until we let go of it
  TimerId lingering_ = 0;
  std::uint64_t heard_ = 0;
  std::optional<ExitStatus> status_;  // of the viewer, which has ended
  bool ended_ = false;                // and all of it is on its way
  bool paused_ = false;
};

// The other end of a takeover: lends a connection to the ViewerHost at `socket`, and returns when that one has no more
// use for it. kNotFound, kGone: there is none.
Status lend_connection(const std::string& socket, std::uint64_t taken, int in, int out);

}  // namespace monarch
