#pragma once

// DrillTargets: whom the words of a fault's target mean, as the flags of the same names do. `random` means everybody
// whom the other words leave.
//
// Thread: a value.

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "cli/args/selector.h"
#include "supervisor/core/spec/job_spec.h"
#include "supervisor/drill/core/scenario.h"

namespace monarch {

class DrillTargets {
 public:
  explicit DrillTargets(const JobSpec& spec, std::vector<std::string> named_hosts = {});

  // What is wrong with it; nothing: it means somebody.
  std::optional<std::string> objection(const drill::FaultTarget& target) const;
  bool has(const drill::FaultTarget& target, RankId rank, const std::string& host) const;

 private:
  const JobSpec& spec_;
  std::vector<std::string> named_hosts_;
  // By all words of a target. Owners: this.
  mutable std::map<std::string, Selector> selectors_;
};

}  // namespace monarch
