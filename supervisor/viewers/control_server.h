#pragma once

// ControlServer: the door for viewers on this machine. Each connection says first what it wants: events and requests,
// which stay here, or output, whose socket is handed on; or that it is who launches the hosts, which is handed on as
// well. Events go to a viewer as fast as it reads them, the verdict last. One that falls behind all that is remembered,
// or that asks and does not read the answers, is dropped; the job goes on.
//
// Thread: the supervisor's loop. Lifetime: shorter than the loop's.

#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <string>

#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/launch.h"
#include "transport/messages/stacks.h"
#include "transport/messages/viewer.h"
#include "transport/wire/frame.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/wire/seqpacket_listener.h"

namespace monarch {

struct ControlHandlers {
  std::function<JobStatus()> status;
  std::function<void(const StopRequest&)> stop;
  // What follows from it, in words, once it is sure to: sooner or later, and once. Not at all where the journal fails.
  using Answer = std::function<void(Result<std::string>)>;
  std::function<void(const SignalRequest&, const Answer&)> signal = {};
  std::function<void(const HoldRequest&, const Answer&)> hold = {};
  // Calls `answer` once for each rank of it, sooner or later; or says why it cannot.
  std::function<Status(const StacksRequest&, std::function<void(const RankStacks&)> answer)> stacks = {};
  std::function<void(const OperatorRequest&, const Answer&)> operate = {};
  std::function<void(const DrillNotice&, const Answer&)> drill = {};
  // Of a viewer that has this number among all that ever came.
  std::function<void(std::uint64_t viewer, InputRequest, const Answer&)> input = {};
  // Calls `then` once, when the post of some host answers; or says why that never comes.
  std::function<Status(std::uint64_t viewer, std::function<void()> then)> door = {};
  std::function<void(std::uint64_t viewer)> left = {};
  std::function<void(UniqueFd)> output_viewer;
  // Who launches the hosts of a supervisor that is on one of them; why it is not taken is told to it. Empty: none is
  // wanted.
  std::function<Status(UniqueFd)> launcher = {};
  // Somebody looks on, no longer does, or asked for something: how many look on now.
  std::function<void(std::size_t attached)> on_use = {};
};

class ControlServer {
 public:
  static Result<std::unique_ptr<ControlServer>> create(EventLoop& loop, std::string path, JobUuid job,
                                                       ControlHandlers handlers);
  ~ControlServer();
  ControlServer(const ControlServer&) = delete;
  ControlServer& operator=(const ControlServer&) = delete;

  // Of earlier terms, from the journal: for viewers that attach later.
  void remember(JobEvent event);
  void publish(const JobEvent& event);
  void publish(const Verdict& verdict);
  // All that was published has left for the viewers.
  bool flushed() const;
  // As SeqpacketListener's.
  void on_no_descriptor(std::function<bool()> make_room) { listener_->on_no_descriptor(std::move(make_room)); }
  std::uint64_t refused_peers() const { return listener_->refused_peers(); }

 private:
  struct Viewer {
    std::uint64_t number = 0;  // never used again
    std::unique_ptr<SeqpacketChannel> channel;
    bool wants_events = false;
    std::uint64_t after_event = 0;
    std::uint64_t next_place = 0;   // of the first event that it was not sent
    std::uint64_t attached_at = 0;  // the place after the last event that was there when it came
    bool has_verdict = false;
    std::deque<Frame> answers;      // stacks that wait until the queue has room for them
    std::size_t answers_bytes = 0;  // of these
    std::string name;
  };
  using Viewers = std::list<Viewer>;

  ControlServer(EventLoop& loop, JobUuid job, ControlHandlers handlers);
  void accept(UniqueFd socket);
  void on_frame(Viewers::iterator viewer, const Frame& frame);
  void on_attach(Viewers::iterator viewer, const Attach& attach);
  void on_launcher(Viewers::iterator viewer, const LauncherHello& hello);
  void on_stacks(Viewers::iterator viewer, const StacksRequest& request, std::uint64_t call);
  void on_door(Viewers::iterator viewer, std::uint64_t call);
  void tell_use() const;
  void feed(Viewer& viewer);
  static void feed_answers(Viewer& viewer);
  template <class Message>
  Frame answer_of(const Message& message, std::uint64_t call) const;
  static void drop(Viewer& viewer);
  ControlHandlers::Answer answer_to(std::uint64_t viewer, std::uint64_t call);
  Viewers::iterator viewer_of(std::uint64_t number);
  template <class Message>
  void send(Viewer& viewer, const Message& message, std::uint64_t call = 0);

  EventLoop& loop_;
  JobUuid job_;
  ControlHandlers handlers_;
  std::unique_ptr<SeqpacketListener> listener_;
  Viewers viewers_;
  std::uint64_t next_viewer_ = 1;
  std::deque<JobEvent> events_;
  std::uint64_t first_place_ = 0;  // of events_.front(), counted over all that were remembered
  std::unique_ptr<Verdict> verdict_;
};

}  // namespace monarch
