#pragma once

// EventFolder: gangs of one rank, or of a mesh of many gangs, that change alike within 100 ms are one line for people;
// and so are, of a job with many hosts, those that are ready, silent or heard again within a second. What fails, and
// whatever else is told, is said by itself, behind what happened before it. `monarch events` has each of them.
//
// Thread: a value.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "transport/base/time.h"
#include "transport/messages/viewer.h"

namespace monarch {

class EventFolder {
 public:
  static constexpr Duration kWindow = Duration::milliseconds(100);
  static constexpr Duration kHostsWindow = Duration::seconds(1);
  static constexpr std::uint32_t kManyHosts = 32;  // or gangs: of no more each has its line

  explicit EventFolder(const JobSpec& spec);

  // What is to be shown now.
  std::vector<JobEvent> add(const JobEvent& event, Instant now);
  // The same, where nothing came that showed it.
  std::vector<JobEvent> take_due(Instant now);
  Instant due() const;

 private:
  struct Waiting {
    JobEvent first;
    std::string change;  // "is running"
    std::uint32_t count = 1;
    Duration window;
    Instant due;
  };
  // "is running" of "t: gang 3 is running"; empty: it is said by itself.
  std::string change_of(const JobEvent& event) const;
  std::string words_of(const Waiting& waiting) const;
  std::vector<JobEvent> take_all();

  bool many_hosts_;
  std::map<std::string, std::uint32_t> gangs_;  // of meshes whose gangs are told of together
  std::vector<Waiting> waiting_;                // in the order in which they began
};

}  // namespace monarch
