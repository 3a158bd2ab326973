#pragma once

// ViewerLink: one connection between the two halves of a viewer: frames of an outbox go out, what comes in is told
// frame by frame. It ends once, with the reason; its owner may make another, over which the same outbox goes on.
//
// Thread: the loop's. Lifetime: shorter than the loop's and the outbox's; no handler may destroy it.

#include <functional>
#include <memory>
#include <string>

#include "cli/away/viewer_frames.h"
#include "cli/away/viewer_outbox.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"

namespace monarch {

struct ViewerLinkHandlers {
  // An error ends the link with it.
  std::function<Status(ViewerFrame)> on_frame;
  // Once, and nothing after it. kGone: the other side ended it; kInvalid: what came is none of ours.
  std::function<void(Error)> on_lost;
};

class ViewerLink {
 public:
  // Two descriptors, or one that is both: then `out` is not valid. They are made non-blocking.
  static Result<std::unique_ptr<ViewerLink>> open(EventLoop& loop, UniqueFd in, UniqueFd out, ViewerOutbox& outbox,
                                                  ViewerLinkHandlers handlers);
  ViewerLink(const ViewerLink&) = delete;
  ViewerLink& operator=(const ViewerLink&) = delete;
  ~ViewerLink();

  // After something was put into the outbox.
  void flush();
  // Paused, nothing is read, and the other side writes no more than fits in between.
  void pause();
  void resume();

 private:
  ViewerLink(EventLoop& loop, ViewerOutbox& outbox, ViewerLinkHandlers handlers)
      : loop_(loop), outbox_(outbox), handlers_(std::move(handlers)) {}
  void receive();
  void take_frames();
  void watch_in();
  void stop_reading();
  void stop_writing();
  void lose(Error why);

  EventLoop& loop_;
  ViewerOutbox& outbox_;
  ViewerLinkHandlers handlers_;
  UniqueFd in_;
  UniqueFd out_;
  WatchId reading_ = 0;
  WatchId writing_ = 0;
  bool paused_ = false;
  bool lost_ = false;
  ViewerFrameReader reader_;
  Scope scope_;
};

}  // namespace monarch
