#pragma once

// CheckTalk: `monarch-worker check` on a host, over one session: a request, its answer, and so on. The worker is copied
// there first where the host does not have it, as a launch does.
//
// Thread: the session's, which waits here.

#include <string>
#include <variant>

#include "supervisor/launch/ssh/remote_talk.h"
#include "supervisor/launch/talk/timed_answer.h"
#include "transport/messages/check.h"
#include "transport/messages/launch.h"

namespace monarch::doctor {

class CheckTalk {
 public:
  CheckTalk(SshSession& session, RemoteOrder order, const WorkerImage* image, const RemoteTalkOptions& options)
      : talk_(session, std::move(order), image, options) {}

  // After a failure there is nothing more to ask.
  std::variant<TimedAnswer, LaunchFailure> ask(const CheckRequest& request);
  // Until the check has taken its things away and ended.
  void leave();
  // The worker was not there before.
  bool copied() const { return talk_.copy() != Duration(); }

 private:
  LaunchFailure failure_of(const RemoteAnswer& answer);
  LaunchFailure not_understood(const std::string& why);

  RemoteTalk talk_;
  std::string heard_;  // that is not a whole answer yet
};

}  // namespace monarch::doctor
