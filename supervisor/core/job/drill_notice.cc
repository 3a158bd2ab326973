#include "supervisor/core/job/drill_notice.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

// So that a notice fits into a record of the journal, and all of what is open into a snapshot.
constexpr std::size_t kMostText = 1'024;
constexpr std::size_t kMostName = 256;
constexpr std::size_t kMostOpen = 256;
constexpr Duration kLongestLease = Duration::seconds(3'600);
constexpr Duration kLongestFault = Duration::seconds(24 * 3'600);

Error refused(std::string why) { return {ErrorCode::kInvalid, std::move(why)}; }

std::string cut(const std::string& words, std::size_t most) { return words.substr(0, most); }

class DrillPlanner {
 public:
  DrillPlanner(const JobCore& core, const DrillNotice& notice, Instant now)
      : core_(core), notice_(notice), watch_(core.state().drill), now_(now) {}

  Result<DrillPlan> plan() {
    if (core_.state().phase == JobPhase::kNew) return refused("the job has not begun");
    if (core_.state().phase == JobPhase::kEnded) return refused("the job has ended");
    fill();
    switch (notice_.what) {
      case DrillWhat::kBegin: MONARCH_TRY(begin()); break;
      case DrillWhat::kFault: MONARCH_TRY(fault()); break;
      case DrillWhat::kUndone: MONARCH_TRY(undone()); break;
      case DrillWhat::kEnd: MONARCH_TRY(end()); break;
      case DrillWhat::kStop: MONARCH_TRY(stop()); break;
    }
    return std::move(plan_);
  }

 private:
  void fill() {
    DrillNoted& event = plan_.event;
    event.what = notice_.what;
    event.drill = cut(notice_.drill, kMostName);
    event.name = cut(notice_.name, kMostName);
    event.text = cut(notice_.text, kMostText);
    event.number = notice_.number;
    event.fault = cut(notice_.fault, kMostName);
    event.lasts = notice_.lasts;
    event.forgiven = notice_.forgiven;
    event.lease = notice_.lease;
    event.who = cut(notice_.who, kMostName);
  }

  // "drill five-faults (3f9c…) has the job since 3m20s, by monarch drill, pid 7"
  std::string holder() const {
    const Duration since = Duration::seconds((now_ - watch_.since).count_milliseconds() / 1'000);
    return text("drill ", watch_.name, " (", watch_.drill, ") has the job since ", to_text(since), ", by ", watch_.who);
  }

  Status may_inject() const {
    if (!core_.spec().drills) {
      return refused("the job does not allow drills: its spec has to say `drills: {allow: true}` when it is started");
    }
    if (!notice_.drill.empty() && notice_.drill == watch_.stopped)
      return refused(text("the drill was stopped, by ", watch_.stopped_by));
    if (core_.state().phase >= JobPhase::kStopping) return refused("the job is stopping");
    if (core_.state().foreseen) return refused(text("nothing is started any more: ", core_.state().foreseen->why));
    return {};
  }

  Status is_holder() const {
    if (notice_.drill.empty()) return refused("the drill does not say which it is");
    if (watch_.drill == notice_.drill) return {};
    if (!watch_.drill.empty()) return refused(text("another ", holder()));
    return refused("the drill does not have the job: it has not begun, has ended, or was not heard of for its lease");
  }

  Status begin() {
    MONARCH_TRY(may_inject());
    if (!watch_.drill.empty() || notice_.drill.empty()) MONARCH_TRY(is_holder());
    if (notice_.name.empty()) return refused("the drill has no name");
    if (notice_.lease <= Duration::zero() || notice_.lease > kLongestLease) {
      return refused(
          text("the lease of a drill is from 1ms to ", to_text(kLongestLease), ", not ", to_text(notice_.lease)));
    }
    plan_.words = text("drill ", notice_.name, " has the job");
    return {};
  }

  Status fault() {
    MONARCH_TRY(may_inject());
    MONARCH_TRY(is_holder());
    MONARCH_TRY(names_fault());
    MONARCH_TRY(find_target());
    if (notice_.lasts < Duration::zero() || notice_.lasts > kLongestFault)
      return refused(text("a fault lasts for ", to_text(kLongestFault), " at most"));
    DrillWatch left = watch_;
    forget_over(left, now_);
    if (left.open.size() >= kMostOpen)
      return refused(text("what ", kMostOpen, " faults did is not over: no more are injected at a time"));
    plan_.words = text("fault ", notice_.number, " is written down");
    return {};
  }

  Status undone() {
    MONARCH_TRY(is_holder());
    MONARCH_TRY(names_fault());
    MONARCH_TRY(find_target());
    plan_.words = text("fault ", notice_.number, " is written down as taken back");
    return {};
  }

  Status end() {
    MONARCH_TRY(is_holder());
    plan_.words = text("drill ", watch_.name, " has ended");
    return {};
  }

  Status stop() {
    if (watch_.drill.empty()) return refused("no drill has the job");
    if (!notice_.drill.empty()) MONARCH_TRY(is_holder());
    if (is_stopped(watch_)) return refused(text("drill ", watch_.name, " was stopped already, by ", watch_.stopped_by));
    plan_.words = text("drill ", watch_.name, " is stopped: it injects nothing more, and takes back what is left");
    return {};
  }

  Status names_fault() const {
    if (notice_.number == 0 || notice_.fault.empty()) return refused("the fault has no number, or no name");
    return {};
  }

  Status find_target() {
    if (!notice_.host.empty()) {
      for (std::uint32_t i = 0; i < core_.hosts().size(); ++i) {
        if (core_.hosts()[i].name == notice_.host) plan_.event.host = HostId(i);
      }
      if (!plan_.event.host) return refused(text("the job has no host ", printable(cut(notice_.host, kMostName))));
    }
    if (notice_.mesh.empty() && !notice_.rank) return {};
    const auto& meshes = core_.spec().meshes;
    for (std::uint32_t m = 0; m < meshes.size(); ++m) {
      if (meshes[m].name != notice_.mesh) continue;
      if (!notice_.rank) return refused("a fault strikes a rank, a host or the supervisor, and no mesh");
      if (*notice_.rank >= meshes[m].size())
        return refused(text("mesh ", notice_.mesh, " has no rank ", *notice_.rank));
      plan_.event.rank = RankId{MeshId(m), Rank(*notice_.rank)};
      return {};
    }
    return refused(text("the job has no mesh ", printable(cut(notice_.mesh, kMostName))));
  }

  const JobCore& core_;
  const DrillNotice& notice_;
  const DrillWatch& watch_;
  Instant now_;
  DrillPlan plan_;
};

}  // namespace

Result<DrillPlan> drill_plan(const JobCore& core, const DrillNotice& notice, Instant now) {
  return DrillPlanner(core, notice, now).plan();
}

}  // namespace monarch
