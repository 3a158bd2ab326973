#pragma once

// SupervisorClient: one connection to a job's supervisor for events, requests and their answers, and OutputConnection:
// a second one that carries nothing but output, whose owner may pause it when its own reader is slow (the supervisor
// then drops pieces, and OutputFollower reads them from the files).
//
// Thread: the loop's. Lifetime: shorter than the loop's; handlers may destroy them.

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "supervisor/client/link/viewer_address.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"
#include "transport/messages/viewer.h"
#include "transport/wire/seqpacket_channel.h"

namespace monarch {

// How long a supervisor may take to answer. It answers from its loop, so silence means that it is stopped or gone.
inline constexpr Duration kAnswerDeadline = Duration::seconds(10);

// All run from the loop.
struct ClientHandlers {
  std::function<void(JobEvent)> on_event = {};
  std::function<void(Verdict)> on_verdict = {};
  std::function<void(Error)> on_closed = {};  // once, and nothing after it
};

class SupervisorClient {
 public:
  // kNotFound, kGone: nobody is there. kInvalid: somebody else is.
  static Result<std::unique_ptr<SupervisorClient>> connect(EventLoop& loop, const ViewerAddress& address,
                                                           ClientHandlers handlers);
  SupervisorClient(const SupervisorClient&) = delete;
  SupervisorClient& operator=(const SupervisorClient&) = delete;
  ~SupervisorClient();

  // Events after `after_event` are sent from then on, the verdict when it is known.
  Status attach(const std::string& viewer, std::uint64_t after_event);

  // Each answer comes once: what was asked for, or why not: kTimeout, kGone, or kInvalid with the supervisor's reason.
  template <class Request>
  void request(const Request& request, std::function<void(Result<AnswerTo<Request>>)> answer);

 private:
  struct Pending {
    std::function<void(Result<Frame>)> answer;
    TimerId deadline = 0;
  };
  SupervisorClient(EventLoop& loop, ClientHandlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  void answer(std::uint64_t call, Result<Frame> with);
  void on_frame(Frame frame);
  void on_closed(Error why);

  EventLoop& loop_;
  ClientHandlers handlers_;
  std::unique_ptr<FarLink> far_;
  std::unique_ptr<SeqpacketChannel> channel_;
  std::uint64_t next_call_ = 1;
  std::map<std::uint64_t, Pending> pending_;
  Scope scope_;
};

// One request over a connection of its own, waited for: for commands that do nothing else.
template <class Request>
Result<AnswerTo<Request>> ask(const ViewerAddress& address, const Request& request,
                              Duration deadline = kAnswerDeadline);

struct OutputPiece {
  bool kept = true;  // false: no file has it, and none had more when it came
  Incarnation process;
  Output output;
};

class OutputConnection {
 public:
  struct Handlers {
    std::function<void(OutputPiece)> on_piece;
    std::function<void(Error)> on_closed = {};  // once, and nothing after it
  };
  static Result<std::unique_ptr<OutputConnection>> connect(EventLoop& loop, const ViewerAddress& address,
                                                           const std::string& viewer, Handlers handlers);
  OutputConnection(const OutputConnection&) = delete;
  OutputConnection& operator=(const OutputConnection&) = delete;
  ~OutputConnection();

  // Paused, nothing is read; what the socket holds stays there.
  void pause();
  void resume();

 private:
  OutputConnection(EventLoop& loop, ViewerSocket connected, Handlers handlers)
      : loop_(loop),
        far_(std::move(connected.far)),
        socket_(std::move(connected.socket)),
        handlers_(std::move(handlers)) {}
  Status watch();
  void receive();
  void close(Error why);

  EventLoop& loop_;
  std::unique_ptr<FarLink> far_;
  UniqueFd socket_;
  Handlers handlers_;
  WatchId watch_ = 0;  // 0: paused or closed
  Scope scope_;
};

}  // namespace monarch
