#include "supervisor/doctor/finding.h"

#include <array>

namespace monarch::doctor {

namespace {

constexpr std::array<Health, 4> kAll = {Health::kFine, Health::kNote, Health::kWarning, Health::kFailed};

}  // namespace

std::string_view health_name(Health health) {
  switch (health) {
    case Health::kFine: return "fine";
    case Health::kNote: return "note";
    case Health::kWarning: return "warning";
    case Health::kFailed: return "failed";
  }
  return "";
}

Json finding_json(const Finding& finding) {
  return Json::object({{"v", 1},
                       {"type", "finding"},
                       {"check", finding.check},
                       {"health", health_name(finding.health)},
                       {"found", finding.found},
                       {"means", finding.means},
                       {"fix", finding.fix}});
}

Result<Finding> parse_finding(const Json& json) {
  const auto check = json.get_string("check");
  const auto found = json.get_string("found");
  const auto health = json.get_string("health");
  for (const Health candidate : kAll) {
    if (!check || !found || health != std::string(health_name(candidate))) continue;
    return Finding{.check = *check,
                   .health = candidate,
                   .found = *found,
                   .means = json.get_string("means").value_or(""),
                   .fix = json.get_string("fix").value_or("")};
  }
  return Error{ErrorCode::kInvalid, "not a finding"};
}

}  // namespace monarch::doctor
