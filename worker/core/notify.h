#pragma once

// What ranks say to their keeper, as text: datagrams of the sd_notify protocol (sd_notify(3)), and questions of the
// same form; and what is said to them. Parsing is total: any bytes give an answer. Whoever reads them decides nothing
// here.
//
// Keys that are not ours belong to somebody else and are passed over. A bad value of ours is counted, and the rest of
// its message still holds.
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/report_limits.h"
#include "transport/base/time.h"

namespace monarch {

inline constexpr std::size_t kNotifyBytes = 4'096;  // a longer datagram or question is dropped, and counted

// One datagram.
struct Notice {
  bool ready = false;     // READY=1
  bool stopping = false;  // STOPPING=1
  bool watchdog = false;  // WATCHDOG=1
  std::optional<std::uint64_t> step;
  std::optional<std::string> phase;  // may be empty: it has left the one that it was in
  std::optional<std::string> status;
  std::vector<std::pair<std::string, std::string>> metrics;
  std::uint32_t bad = 0;  // values of ours that are none
  std::string first_bad;  // the line of the first of them, cut

  // Anything that counts as a sign of life.
  bool says_anything() const { return ready || stopping || watchdog || step || phase || status || !metrics.empty(); }
};

Notice parse_notice(std::string_view datagram);

enum class RankQuestion : std::uint8_t { kNone, kWho, kEvents, kCommitted, kCommit, kGate, kUnknown };

// `ASK=who`, `ASK=events`, `ASK=committed`, `ASK=gate` or `COMMIT=step`, which commit_question.h reads; kNone where
// nothing is asked.
RankQuestion parse_question(std::string_view message);

// Whom a rank is, for ASK=who.
struct RankIdentity {
  std::string job;
  std::string mesh;
  std::uint32_t rank = 0;
  std::uint64_t generation = 0;
  std::string host;
};

// Answers and events: one object on one line, without blanks.
std::string who_answer(const RankIdentity& who);
std::string events_answer();
// The environment of its place; that of the rank wins over that of its gang.
std::string gate_answer(const std::map<std::string, std::string>& gang_env,
                        const std::map<std::string, std::string>& own_env);
std::string unknown_answer();
std::string stopping_event(std::int32_t signal, Duration grace);
std::string lease_low_event(Duration left);

// Whether a line of Tell, which our own writer of JSON made, is this event.
bool is_event(std::string_view json, std::string_view name);

}  // namespace monarch
