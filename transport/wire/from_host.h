#pragma once

// decode_from_host(): a message of a worker, as whoever decides takes it: with no text and no list longer than an
// honest worker sends (base/report_limits.h), and no time with which nobody could reckon. So what is kept of it is
// bounded, whatever a host says.
//
// Thread: pure functions.

#include <algorithm>
#include <optional>
#include <string_view>
#include <vector>

#include "transport/messages/bootstrap.h"
#include "transport/messages/output.h"
#include "transport/messages/post.h"
#include "transport/messages/rank.h"
#include "transport/messages/stacks.h"
#include "transport/messages/vault.h"
#include "transport/messages/worker.h"
#include "transport/wire/codec.h"

namespace monarch {

bool is_bounded(const Hello& hello);
bool is_bounded(const Beat& beat);
bool is_bounded(const Reserved& reserved);
bool is_bounded(const InputTaken& taken);
bool is_bounded(const Goodbye& goodbye);
bool is_bounded(const KeeperGone& gone);
bool is_bounded(const Output& output);
bool is_bounded(const OutputGone& gone);
bool is_bounded(const Stacks& stacks);
bool is_bounded(const BootstrapReply& reply);
// What another host's vault says.
bool is_bounded(const VaultOffer& offer);
bool is_bounded(const VaultKept& kept);
bool is_bounded(const VaultAsk& ask);
bool is_bounded(const VaultPiece& piece);
// What another host's post says, and a rank's process to its own.
bool is_bounded(const CallTarget& target);
bool is_bounded(const CallOutcome& outcome);
bool is_bounded(const LineHello& hello);
bool is_bounded(const LineAccepted& accepted);
bool is_bounded(const LineOther& other);
bool is_bounded(const LineResync& resync);
bool is_bounded(const LineAsks& asks);
bool is_bounded(const LineAnswer& answer);
bool is_bounded(const LineAnswers& answers);
bool is_bounded(const LineTakeBack& back);
bool is_bounded(const LineHeard& heard);

// Within a century, so that sums and differences of such times are times as well; or never, of what may not have been.
inline bool is_reckonable(Instant time) {
  return time == Instant::never() || (time >= Instant() && time.since_boot() <= limits::kLongestTime);
}
inline bool is_sent(const Beat& beat) { return beat.sent_at != Instant::never(); }
template <class T>
bool is_sent(const T& /*without a time of its own*/) {
  return true;
}
inline bool is_reckonable(Duration time) { return time >= limits::kLongestTime * -1 && time <= limits::kLongestTime; }
template <class T>
bool is_reckonable(const std::optional<T>& value);
template <class T>
bool is_reckonable(const std::vector<T>& list);
template <class T>
bool is_reckonable(const T& message) {
  if constexpr (codec::detail::FieldsInside<T> || codec::detail::FieldsOutside<T>) {
    return codec::detail::with_fields(message, [](const auto&... field) { return (is_reckonable(field) && ...); });
  }
  return true;
}
template <class T>
bool is_reckonable(const std::optional<T>& value) {
  return !value || is_reckonable(*value);
}
template <class T>
bool is_reckonable(const std::vector<T>& list) {
  return std::all_of(list.begin(), list.end(), [](const T& each) { return is_reckonable(each); });
}

// As decode_payload(); kInvalid also where something in it is too long, or where a time in it cannot be reckoned with.
template <class T>
Result<T> decode_from_host(std::string_view payload, std::size_t limit = limits::kControlPayloadBytes) {
  Result<T> message = decode_payload<T>(payload, limit);
  if (message.ok() && !(is_bounded(*message) && is_reckonable(*message) && is_sent(*message))) {
    return Error{ErrorCode::kInvalid, "a message of a worker with something in it that is beyond all bounds"};
  }
  return message;
}

}  // namespace monarch
