#pragma once

// Recorder: watches the supervisors of one simulated run and makes its Recording.
//
// Thread: one simulation's. Lifetime: longer than the world's that tells it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "supervisor/journal/journal_contents.h"
#include "tests/sim/replay/recording.h"

namespace monarch::sim {

class Recorder {
 public:
  // `spec` is the core's.
  Recorder(std::uint64_t seed, const JobSpec& spec);

  // A supervisor has made its core of what it found in the journal.
  void begun(const JournalContents& journal, const JobCore& core, Instant now);
  void decided(const std::string& event, const std::vector<Action>& actions, const JobCore& core, Instant now);
  // The first of what this supervisor has decided that was not told here yet lies in the journal under this number.
  void appended(std::uint64_t lsn);

  const Recording& recording() const { return recording_; }

 private:
  void add(Step step, const std::vector<Action>& actions, const JobCore& core);

  Recording recording_;
  std::map<std::string, std::uint32_t> places_;  // in recording_.actions
  std::size_t events_ = 0;                       // that the present core was given, those before it among them
  std::vector<std::uint64_t> lsns_;              // of the first of these
};

}  // namespace monarch::sim
