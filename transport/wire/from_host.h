#pragma once

// decode_from_host(): a message of a worker, as whoever decides takes it: with no text and no list longer than an honest worker sends
// (base/report_limits.h). So what is kept of it is bounded, whatever a host says.
//
// Thread: pure functions.

#include <string_view>

#include "transport/base/control_messages.h"
#include "transport/base/stack_messages.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/stack_messages.h"

namespace monarch {

bool is_bounded(const Hello& hello);
bool is_bounded(const Beat& beat);
bool is_bounded(const Reserved& reserved);
bool is_bounded(const Goodbye& goodbye);
bool is_bounded(const KeeperGone& gone);
bool is_bounded(const Output& output);
bool is_bounded(const OutputGone& gone);
bool is_bounded(const Stacks& stacks);
bool is_bounded(const BootstrapReply& reply);

// As decode_payload(); kInvalid also where something in it is too long.
template <class T>
Result<T> decode_from_host(std::string_view payload, std::size_t limit = limits::kControlPayloadBytes) {
  Result<T> message = decode_payload<T>(payload, limit);
  if (message.ok() && !is_bounded(*message)) {
    return Error{ErrorCode::kInvalid, "a message of a worker with something in it that is longer than it may be"};
  }
  return message;
}

}  // namespace monarch
