#pragma once

// ZapTrial: the self-test of a ZapHandler (zap.h) beside what its owner does meanwhile, in a thread that ends with it.
// Until it has passed no port may be opened, and the handler's table is the self-test's.
//
// Thread: one at a time. Lifetime: within those of context and handler.

#include <functional>
#include <memory>

#include "transport/base/result.h"
#include "transport/loop/inbox.h"
#include "transport/loop/joining_thread.h"
#include "transport/zmq/admission.h"
#include "transport/zmq/context.h"

namespace monarch {

class ZapTrial {
 public:
  // `publish` is called from the thread, as by zap_self_test().
  static Result<std::unique_ptr<ZapTrial>> start(ZmqContext& context, std::function<Status(AllowTable)> publish);
  ZapTrial(const ZapTrial&) = delete;
  ZapTrial& operator=(const ZapTrial&) = delete;

  // Waits for it, which is not for a loop that has others to hear. Once.
  Status outcome();

 private:
  ZapTrial() = default;

  std::unique_ptr<Inbox<Status>> outcome_;
  std::unique_ptr<JoiningThread> thread_;  // ends first
};

}  // namespace monarch
