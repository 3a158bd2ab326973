#include "supervisor/drill/scenario/smoke.h"

#include <algorithm>

#include "supervisor/drill/scenario/hang_times.h"
#include "supervisor/spec/yaml/scalar.h"
#include "transport/base/text.h"
#include "transport/messages/stacks.h"

namespace monarch::drill {

namespace {

constexpr Duration kShortHang = Duration::seconds(3);       // seen, and gone on from
constexpr Duration kBeyondRestart = Duration::seconds(10);  // of a hang that is not to end by itself
constexpr Duration kSlack = Duration::seconds(2);           // beyond what the spec's own times take

// Its ranks are struck: the first mesh that works by itself.
const MeshSpec& struck_mesh(const JobSpec& spec) {
  const auto works = std::find_if(spec.meshes.begin(), spec.meshes.end(), [](const MeshSpec& m) { return !m.sidecar; });
  return works == spec.meshes.end() ? spec.meshes.front() : *works;
}

// Why a host cannot be lost; empty: it can.
std::string kept_hosts(const JobSpec& spec) {
  if (spec.spares() == 0) return text("the job has no spare (`launch.", spec.launch.facts().name, ".spares`)");
  if (spec.supervision.reallocate.max == 0U) return "`supervision.reallocate.max: 0` allows no replacement";
  return "";
}

class SmokeText {
 public:
  explicit SmokeText(const JobSpec& spec) : spec_(spec), mesh_(struck_mesh(spec)) {}

  SmokeScenario take() {
    const bool restarts = mesh_.supervision.restart.max != 0U;
    // After how long a rank that is stopped is started again; zero: it is not.
    const Duration hang = restart_of_stopped(mesh_).value_or(Duration::zero());
    const bool started_again = restarts && hang > Duration::zero();
    const std::string one_rank = text(", target: {mesh: ", mesh_.name, "}");
    if (restarts) {
      add("kill", one_rank);
    } else {
      leave_out("kill", text("`restart.max: 0` of mesh ", mesh_.name, " ends the job with its first failure"));
    }
    if (started_again || hang == Duration::zero()) {
      add("hang", text(one_rank, ", for: ", write_duration(started_again ? hang + kBeyondRestart : kShortHang)));
    } else {
      leave_out("hang", text("`hang.action: restart` with `restart.max: 0` ends the job"));
    }
    add("daemon-kill", "");
    const std::string kept = kept_hosts(spec_);
    if (kept.empty()) {
      add("power-loss", "");
    } else {
      leave_out("power-loss", kept);
    }
    add("supervisor-kill", "");
    const Supervision& times = spec_.supervision;
    const Duration control = std::max(Duration::seconds(10), times.heartbeat * 10);
    std::vector<std::string> bounds;
    if (restarts) bounds.push_back("process: 1s");
    if (started_again) {
      const Duration noticed = hang + times.heartbeat * 2 + limits::kStackLimit;
      bounds.push_back(text("hang: ", write_duration(noticed + kSlack)));
    }
    bounds.push_back(text("host: ", write_duration(times.lost_after + times.lease + kSlack)));
    bounds.push_back("supervisor: 2s");
    out_.text = text("# Each fault strikes once the one before it is recovered from.\nversion: 1\ndrill: smoke\n",
                     "settle: 5s\ncontrol: ", write_duration(control), "\nfaults:\n", faults_,
                     kept.empty() ? "guard: {min_spares: 1}\n" : "", "expect:\n  seen: 1\n  ours_p95: {",
                     join(bounds, ", "), "}\n  false_positives: 0\n  leftovers: 0\n");
    return std::move(out_);
  }

 private:
  void add(std::string_view fault, std::string_view more) {
    faults_ += text("  - {fault: ", fault, ", at: 0s", more, "}\n");
  }
  void leave_out(std::string_view fault, const std::string& why) {
    out_.left_out.push_back(text("`", fault, "`: ", why));
  }

  const JobSpec& spec_;
  const MeshSpec& mesh_;
  std::string faults_;
  SmokeScenario out_;
};

}  // namespace

SmokeScenario smoke_scenario(const JobSpec& spec) { return SmokeText(spec).take(); }

}  // namespace monarch::drill
