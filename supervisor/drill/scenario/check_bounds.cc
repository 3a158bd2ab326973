#include <algorithm>
#include <cmath>

#include "supervisor/drill/scenario/hang_times.h"
#include "supervisor/drill/scenario/scenario_check.h"
#include "supervisor/spec/yaml/scalar.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

struct Least {
  Duration time;
  std::string words;  // "`lost_after` (5s) and `lease` (6s)"
  std::optional<FaultElsewhere> other;
};

std::string bound_path(const Bound& bound) {
  return text("expect.", facts_of(bound.measure).name, bound.of ? text(".", name_of(*bound.of)) : "");
}

Place place_of_bound(const ScenarioCheck& check, const Bound& bound) {
  if (bound.of) return check.at({"expect", facts_of(bound.measure).name, name_of(*bound.of)});
  return check.at({"expect", facts_of(bound.measure).name});
}

bool any_fault(const ScenarioCheck& check, const std::function<bool(const FaultEntry&, const Fault&)>& is) {
  return std::any_of(check.scenario.faults.begin(), check.scenario.faults.end(),
                     [&](const FaultEntry& entry) { return is(entry, check.fault_of(entry)); });
}

// Why nothing could ever be measured for it; empty: something may be.
std::string no_evidence(const ScenarioCheck& check, const Bound& bound) {
  const auto of_class = [&](const FaultEntry&, const Fault& fault) { return fault.of == *bound.of; };
  if (bound.of && !any_fault(check, of_class))
    return text("no fault of this scenario is of the class `", name_of(*bound.of), "`");
  const auto to_see = [](const FaultEntry&, const Fault& fault) { return fault.needs_seeing; };
  if (bound.measure == Measure::kSeen && !any_fault(check, to_see))
    return "the job tells of none of these faults for certain";
  if (bound.measure == Measure::kRatio && check.scenario.compare == Compare::kNone)
    return "there is nothing to compare with: `compare: full-restart` is not written";
  return "";
}

// What the spec's own times take from a blow to a new start, or to its being past its last step.
std::optional<Least> least_of(const ScenarioCheck& check, const Bound& bound) {
  const bool until_start = bound.measure == Measure::kOursP95 || bound.measure == Measure::kTtrP95;
  if (!bound.of || !until_start) return std::nullopt;
  const Supervision& times = check.job.spec.supervision;
  if (*bound.of == FaultClass::kHost || *bound.of == FaultClass::kNetwork) {
    const auto costs = [&](const FaultEntry& entry, const Fault& fault) {
      return fault.of == *bound.of && check.costs_host(entry);
    };
    if (!any_fault(check, costs)) return std::nullopt;
    auto other = check.in_spec({"supervision", "lease"}, "the lease");
    if (!other) other = check.in_spec({"supervision", "lost_after"}, "when it is lost");
    return Least{.time = times.lost_after + times.lease,
                 .words = text("a lost host is given up after `lost_after` (", write_duration(times.lost_after),
                               ") and its `lease` (", write_duration(times.lease), ")"),
                 .other = std::move(other)};
  }
  if (*bound.of != FaultClass::kHang) return std::nullopt;
  const auto restarts = restart_of_stopped(check.job.spec);
  const auto lasts = [&](const FaultEntry& entry, const Fault& fault) {
    return fault.of == FaultClass::kHang && restarts && entry.lasts >= *restarts;
  };
  if (!restarts || !any_fault(check, lasts)) return std::nullopt;
  auto other = check.in_spec({"supervision", "hang", "phases", "step"}, "the limit of a step");
  if (!other) other = check.in_spec({"supervision", "hang", "action"}, "what is done about a hang");
  return Least{.time = *restarts,
               .words = text("a rank that stands still is started again after ", write_duration(*restarts)),
               .other = std::move(other)};
}

}  // namespace

void check_bounds(const ScenarioCheck& check) {
  for (const Bound& bound : check.scenario.expect) {
    const std::string path = bound_path(bound);
    if (const std::string why = no_evidence(check, bound); !why.empty()) {
      check.report.error("E0505", place_of_bound(check, bound),
                         {.message = text("`", path, "` could never be met: ", why),
                          .label = "a bound without evidence is not met",
                          .help = "leave it out, or add what it is about"});
      continue;
    }
    auto least = least_of(check, bound);
    const Duration written = Duration::nanoseconds(std::llround(bound.value * 1e9));
    if (!least || written >= least->time) continue;
    check.report.error("E0505", place_of_bound(check, bound),
                       {.message = text("`", path, "` is ", write_duration(written), ", and ", least->words),
                        .label = "shorter than the spec's own times",
                        .help = text("`", write_duration(least->time + Duration::seconds(2)), "` would work"),
                        .other = std::move(least->other)});
  }
}

}  // namespace monarch::drill
