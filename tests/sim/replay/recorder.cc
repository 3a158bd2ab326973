#include "tests/sim/replay/recorder.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "transport/base/assert.h"

namespace monarch::sim {

namespace {

std::size_t up_to(const std::vector<std::uint64_t>& lsns, std::uint64_t last) {
  return static_cast<std::size_t>(std::upper_bound(lsns.begin(), lsns.end(), last) - lsns.begin());
}

}  // namespace

Recorder::Recorder(std::uint64_t seed, const JobSpec& spec) {
  recording_.seed = seed;
  recording_.spec = spec;
  // A key that spec_fields.h misses would be lost to who checks.
  Result<Recording> read = decode_recording(encode_recording(recording_));
  MONARCH_ASSERT(read.ok());
  read->spec.launch = spec.launch;
  MONARCH_ASSERT(read->spec == spec);
}

void Recorder::begun(const JournalContents& journal, const JobCore& core, Instant now) {
  events_ = up_to(lsns_, journal.last_lsn);
  lsns_.resize(events_);
  Begun begun{.events = events_};
  if (journal.snapshot) begun.in_snapshot = up_to(lsns_, journal.snapshot->lsn);
  const auto after = std::count_if(journal.records.begin(), journal.records.end(),
                                   [](const Record& record) { return record.type == RecordType::kInput; });
  MONARCH_ASSERT(begun.in_snapshot.value_or(0) + static_cast<std::uint64_t>(after) == events_);
  add({.what = begun, .now = now, .shown = {}}, {}, core);
}

void Recorder::decided(const std::string& event, const std::vector<Action>& actions, const JobCore& core, Instant now) {
  ++events_;
  add({.what = Told{codec::Bytes{event}}, .now = now, .shown = {}}, actions, core);
}

void Recorder::appended(std::uint64_t lsn) {
  MONARCH_ASSERT(lsns_.size() < events_ && (lsns_.empty() || lsns_.back() < lsn));
  lsns_.push_back(lsn);
}

void Recorder::add(Step step, const std::vector<Action>& actions, const JobCore& core) {
  for (std::string& encoding : encodings_of(actions)) {
    const auto next = static_cast<std::uint32_t>(recording_.actions.size());
    const auto [place, is_new] = places_.try_emplace(encoding, next);
    if (is_new) recording_.actions.push_back(codec::Bytes{std::move(encoding)});
    step.actions.push_back(place->second);
  }
  step.shown = shown_by(core, step.now);
  recording_.steps.push_back(std::move(step));
}

}  // namespace monarch::sim
