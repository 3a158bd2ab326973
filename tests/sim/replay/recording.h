#pragma once

// Recording: what the cores of one simulated job were given, one term after the other, and what each answered. A core
// of another build that is given the same has to answer the same; no dice and no driver stand in between.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/spec/job_spec.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/wire/codec.h"

namespace monarch::sim {

// What a core shows when it is asked, as hashes of the encodings.
struct Shown {
  std::uint64_t status = 0;
  std::uint64_t roster = 0;
  std::uint64_t vaults = 0;
  std::uint64_t outstanding = 0;  // for each host, if it reports nothing
  Instant deadline = {};          // itself
  bool operator==(const Shown&) const = default;
};
MONARCH_FIELDS(Shown, status, roster, vaults, outstanding, deadline)

Shown shown_by(const JobCore& core, Instant now);

// The encodings of what a step asks for, sorted: who comes first within a step is not promised.
std::vector<std::string> encodings_of(const std::vector<Action>& actions);

// A term begins: a new core has the first so many of the events that were told so far. Others were lost with the
// supervisor before it.
struct Begun {
  std::uint64_t events = 0;
  std::optional<std::uint64_t> in_snapshot = {};  // so many of these as a state; nothing: none
};
MONARCH_FIELDS(Begun, events, in_snapshot)

struct Told {
  codec::Bytes event;
};
MONARCH_FIELDS(Told, event)

struct Step {
  std::variant<Begun, Told> what;
  Instant now;
  std::vector<std::uint32_t> actions = {};  // places in Recording::actions
  Shown shown;
};
MONARCH_FIELDS(Step, what, now, actions, shown)

struct Recording {
  std::uint64_t seed = 0;
  JobSpec spec;
  std::vector<codec::Bytes> actions;  // their encodings, each once
  std::vector<Step> steps;
};

// What every core of this simulation is made with, beside the spec.
JobCoreOptions core_options();

std::string encode_recording(const Recording& recording);
Result<Recording> decode_recording(const std::string& bytes);

}  // namespace monarch::sim
