#pragma once

// DaemonStash: what a worker's daemon needs to go on where the one before it stopped, as the bytes of a KeeperStash. The
// keeper makes the first one, of the bootstrap alone, and never looks into a later one. Who encodes or decodes one
// includes transport/wire/messages.h for the codecs of what it is made of.
//
// Thread: a value.

#include <string>

#include <monarch/fields.hpp>

#include "transport/base/control_messages.h"
#include "transport/base/ids.h"

namespace monarch {

struct DaemonStash {
  JobUuid job;  // of the bootstrap frame's header
  Bootstrap bootstrap;
  std::string public_key;  // z85; empty until the first daemon made the pair
  std::string secret_key;
  Term promised;  // the highest term promised
};

MONARCH_FIELDS(DaemonStash, job, bootstrap, public_key, secret_key, promised);

}  // namespace monarch
