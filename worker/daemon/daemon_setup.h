#pragma once

// What a daemon starts with: the stash of the one before it, or the keeper's first one; a key pair, made at the first
// start; the addresses to dial; and the promise. And how the launcher is answered at the first start.
//
// Thread: the main one, before there is any other. It may wait for files.

#include <cstdint>
#include <string>

#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/messages/bootstrap.h"
#include "transport/zmq/client_link.h"
#include "transport/zmq/curve.h"

namespace monarch::daemon {

struct Setup {
  DaemonStash stash;
  CurveKeyPair keys;
  ClientOptions control;
  ClientOptions bulk;
  bool first_start = false;  // the stash has no keys yet
};

// The stash's keys and promise are filled in: stash.promised is the higher one of stash and disk. Where it fails,
// `refusal` says for the launcher what kind of failure that is.
Result<Setup> set_up(const UniqueFd& stash, BootstrapRefusal& refusal);

// "tcp://127.0.0.1:20000" or "tcp://[::1]:20000".
Result<ClientOptions> parse_endpoint(const std::string& endpoint);

std::string encode_stash(const DaemonStash& stash);

// One frame, then the end: `fd` becomes /dev/null.
Status answer_launcher(int fd, const JobUuid& job, const BootstrapReply& reply);

}  // namespace monarch::daemon
