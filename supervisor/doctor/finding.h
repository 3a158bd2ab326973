#pragma once

// Finding: what one check of `monarch doctor` saw, what that means for a job, and what to do about it.
//
// Thread: values.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/json.h"
#include "transport/base/result.h"

namespace monarch::doctor {

enum class Health : std::uint8_t {
  kFine,
  kNote,     // works, and something is to be known about it
  kWarning,  // works, but worse than it could, or not in every case
  kFailed,   // a job will not work
};

struct Finding {
  std::string check;  // "state directory"
  Health health = Health::kFine;
  std::string found;  // one line
  std::string means = {};
  std::string fix = {};
};
using Findings = std::vector<Finding>;

// One question to the machine. It runs in a process of its own: it may hang, and it may crash.
struct Check {
  std::string name;
  std::function<Findings()> run;
};

// Where the kernel shows the machine; another place in tests.
struct Places {
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string dev = "/dev";
};

std::string_view health_name(Health health);
Json finding_json(const Finding& finding);
Result<Finding> parse_finding(const Json& json);

}  // namespace monarch::doctor
