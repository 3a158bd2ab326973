#pragma once

// RankHosts: which host each rank is on, as far as a viewer knows: by the spec, and then by what events say of replaced
// hosts. A rank has started nowhere else by the time its first output is seen.
//
// Thread: one.

#include <map>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "transport/base/ids.h"
#include "transport/messages/viewer.h"

namespace monarch {

class RankHosts {
 public:
  explicit RankHosts(const JobSpec& spec);

  // Each may be told twice, and in order.
  void on_event(const JobEvent& event);
  void on_events(const std::vector<JobEvent>& events);
  // "?" for a rank that the spec does not have.
  const std::string& host_of(RankId rank) const;

 private:
  std::map<RankId, std::string> hosts_;
  std::string unknown_ = "?";
};

}  // namespace monarch
