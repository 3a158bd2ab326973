#include "transport/zmq/zap_trial.h"

#include <poll.h>

#include <utility>

#include "transport/zmq/zap.h"

namespace monarch {

Result<std::unique_ptr<ZapTrial>> ZapTrial::start(ZmqContext& context, std::function<Status(AllowTable)> publish) {
  std::unique_ptr<ZapTrial> trial(new ZapTrial());
  MONARCH_ASSIGN(trial->outcome_, Inbox<Status>::create(1));
  auto work = [&context, publish = std::move(publish), outcome = trial->outcome_.get()](int stop) {
    (void)outcome->put(zap_self_test(context, publish, stop));  // there is room for the one
  };
  MONARCH_ASSIGN(trial->thread_, JoiningThread::start(std::move(work)));
  return trial;
}

Status ZapTrial::outcome() {
  for (;;) {
    pollfd told{outcome_->descriptor(), POLLIN, 0};
    (void)::poll(&told, 1, -1);  // a signal: what came is looked for, and waited for again
    if (auto outcomes = outcome_->take_all(); !outcomes.empty()) return std::move(outcomes.front());
  }
}

}  // namespace monarch
