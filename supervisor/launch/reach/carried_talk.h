#pragma once

// CarriedTalk: a HostTalk over whatever carries bytes to a check and from it: requests and answers in pieces
// (check_stream.h), one at a time, each under its own deadline and with the times when it left and came.
//
// Thread: the loop's.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "supervisor/launch/fair_timer.h"
#include "supervisor/launch/reach/check_reach.h"
#include "transport/loop/scope.h"

namespace monarch {

// Its end ends the check's input.
class CheckCarrier {
 public:
  CheckCarrier() = default;
  CheckCarrier(const CheckCarrier&) = delete;
  CheckCarrier& operator=(const CheckCarrier&) = delete;
  virtual ~CheckCarrier() = default;

  // From the start; else that is told.
  virtual bool ready() const { return false; }
  // Once it is.
  virtual void say(std::string bytes) = 0;
};

// By the loop, and not within a call of the carrier's owner's. Each may end the carrier.
struct CarrierHandlers {
  std::function<void()> on_ready;  // the check is there
  std::function<void(const std::string& bytes)> on_heard;
  std::function<void(const LaunchFailure& why)> on_failed;  // nothing more comes
};

class CarriedTalk final : public HostTalk {
 public:
  using Carry = std::function<Result<std::unique_ptr<CheckCarrier>>(CarrierHandlers handlers)>;

  CarriedTalk(EventLoop& loop, const Carry& carry, OnLost on_lost);

  void ask(const CheckRequest& request, OnAnswer on_answer) override;

 private:
  void send();
  void on_heard(const std::string& bytes);
  void fail(const LaunchFailure& why);

  EventLoop& loop_;
  OnLost on_lost_;
  bool ready_ = false;
  std::optional<LaunchFailure> over_;
  std::optional<CheckRequest> request_;  // to be sent
  OnAnswer on_answer_;                   // of what was asked; empty: nothing is
  TimedAnswer timed_;
  std::string heard_;  // that is not a whole answer yet
  FairTimer deadline_;
  Scope scope_;
  std::unique_ptr<CheckCarrier> carrier_;  // last: it ends first
};

}  // namespace monarch
