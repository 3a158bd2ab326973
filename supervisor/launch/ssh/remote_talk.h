#pragma once

// remote_talk(): one RemoteConversation over one session: the remote command is executed, its bytes are carried, and silence ends it.
//
// Thread: the session's, which waits here.

#include <string>

#include "supervisor/launch/ssh/remote_conversation.h"
#include "supervisor/launch/ssh/ssh_session.h"
#include "transport/base/time.h"

namespace monarch {

// What is copied to a host that does not have it.
struct WorkerImage {
  RemoteFile file;
  std::string bytes;
  std::string machine;  // as `uname -m` says it
};

struct RemoteTalkOptions {
  int cancel = -1;
  Duration silence = Duration::seconds(30);  // no byte either way for so long
};

struct RemoteResult {
  RemoteAnswer answer;
  bool handed_over = false;  // the worker was told to start: if the answer is a failure, it may run all the same
};

// `image` may be null where the order names an installed worker.
RemoteResult remote_talk(SshSession& session, RemoteOrder order, const WorkerImage* image,
                         const RemoteTalkOptions& options);

}  // namespace monarch
