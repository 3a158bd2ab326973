#include "supervisor/core/machines/reminders.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/facts/gangs.h"
#include "supervisor/core/facts/hosts.h"
#include "supervisor/core/facts/occupants.h"
#include "supervisor/core/facts/reports.h"
#include "supervisor/core/facts/some_of.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kRemindEvery = Duration::seconds(30);

constexpr std::size_t kMostHelp = 8;      // of what an operator can do
constexpr std::size_t kMostReminded = 8;  // gangs at one time; more are counted

Duration milliseconds(Duration exact) { return Duration::milliseconds(exact.count_milliseconds()); }

// Empty: it is there for this gang. What has no time in it has none.
std::string why_out(const CoreFacts& job, MeshId mesh, GangId g, HostId id) {
  const HostState& state = job.host(id);
  const std::string& name = job.name_of(id);
  const auto in = [&job](Instant due) { return to_text(milliseconds(std::max(due - job.now, Duration::zero()))); };
  const auto because = [&](const char* otherwise) {
    return state.lost_because.empty() ? otherwise : state.lost_because;
  };
  const bool due = state.cold_at != Instant::never();
  const std::string left = state.standing == HostStanding::kGood ? ")" : text("; ", because("left"), ")");
  switch (state.phase) {
    case HostPhase::kCold: return text(name, " (not launched", left);
    case HostPhase::kLaunching: return text(name, " (its worker has not started", left);
    case HostPhase::kLaunched: return text(name, " (its worker has not called back; it has ", in(state.deadline), left);
    case HostPhase::kDestroying: return text(name, " (what is there is being ended; it has ", in(state.deadline), left);
    case HostPhase::kEnded:
    case HostPhase::kLost:
      return text(name, " (", because("lost"), due ? text("; it may be launched again in ", in(state.cold_at)) : "",
                  ")");
    case HostPhase::kJoined: break;
  }
  if (state.wedged) return text(name, " (wedged: a process on it does not end after SIGKILL)");
  if (state.standing != HostStanding::kGood) {
    const bool lived_on = somebody_lives_on(job.state, job.placement, id);
    return text(name, " (", because("left"), lived_on ? "; what else runs there has not ended" : "", ")");
  }
  const std::string beside = runs_beside(job, id, std::pair(mesh, g));
  return beside.empty() ? "" : text(name, " (", beside, ")");
}

bool some_left_alone(const CoreFacts& job) {
  const auto& held = job.state.holds.held;
  if (std::any_of(held.begin(), held.end(), [](const auto& ranks) { return !ranks.empty(); })) return true;
  const auto& meshes = job.state.meshes;
  return std::any_of(meshes.begin(), meshes.end(), [](const MeshState& mesh) {
    return std::any_of(mesh.ranks.begin(), mesh.ranks.end(), [](const RankState& rank) { return rank.suspended; });
  });
}

// "m/3", in order.
std::vector<std::string> left_alone(const CoreFacts& job) {
  std::vector<std::string> names;
  for (std::uint32_t m = 0; m < job.state.meshes.size(); ++m) {
    const MeshState& mesh = job.state.meshes[m];
    for (std::uint32_t r = 0; r < mesh.ranks.size(); ++r) {
      const RankId id{MeshId(m), Rank(r)};
      if (is_left_alone(job, id)) names.push_back(text(job.mesh(id.mesh).name, "/", r));
    }
  }
  return names;
}

}  // namespace

void Reminders::tend() {
  basis_.each_gang([this](MeshId m, GangId g) {
    GangReminder& mine = mine_.gangs[m.value()][g.value()];
    if (!waits_at_length(basis_, m, g)) {
      mine.at = Instant::never();
    } else if (mine.at == Instant::never()) {
      mine.since = basis_.now;
      mine.at = basis_.now + kRemindEvery;
    }
  });
  if (basis_.state.phase != JobPhase::kRunning || !some_left_alone(basis_)) {
    mine_.hold_at = Instant::never();
  } else if (mine_.hold_at == Instant::never()) {
    mine_.held_since = basis_.now;
    mine_.hold_at = basis_.now + kRemindEvery;
  }
}

void Reminders::look_at_times() {
  std::size_t reminded = 0;
  basis_.each_gang([&](MeshId m, GangId g) {
    GangReminder& mine = mine_.gangs[m.value()][g.value()];
    if (mine.at > basis_.now || !waits_at_length(basis_, m, g)) return;
    mine.at = basis_.now + kRemindEvery;
    if (++reminded > kMostReminded) return;
    basis_.say_of_gang(m, g, EventKind::kGangWaiting, Severity::kWarning, text_of(m, g));
  });
  if (reminded > kMostReminded) {
    const std::size_t more = reminded - kMostReminded;
    basis_.emit(basis_.event(EventKind::kGangWaiting, Severity::kWarning,
                             text(more, more == 1 ? " more gang waits" : " more gangs wait",
                                  " for hosts; see `monarch status ", basis_.options.job_id, "`")));
  }
  if (mine_.hold_at <= basis_.now) remind_of_holds();
}

// "has waited 30s for v2 (drained, asked by …); there is no deadline: `monarch undrain JOB v2` …"
std::string Reminders::text_of(MeshId mesh, GangId g) const {
  const GangState& state = basis_.gang(mesh, g);
  const std::string& job = basis_.options.job_id;
  std::vector<std::string> missing;
  std::vector<std::string> help;
  bool timed = true;
  const auto add = [&](const std::string& who, bool has_time) {
    missing.push_back(who);
    timed = timed && has_time;
  };
  if (is_waiting(state.phase) && !fence_done(basis_, mesh, g)) {
    Instant until = state.not_before;
    for (const HostId id : state.fenced_by) until = std::max(until, basis_.host(id).fence);
    add(text("its time, in ", to_text(milliseconds(until - basis_.now))), true);
  }
  for (const HostId id : basis_.placement.hosts_of(mesh, g)) {
    const std::string why = why_out(basis_, mesh, g, id);
    if (why.empty()) continue;
    const HostState& where = basis_.host(id);
    add(why, where.standing == HostStanding::kGood &&
                 (where.cold_at != Instant::never() || where.deadline != Instant::never()));
    const std::string& name = basis_.name_of(id);
    if (where.standing == HostStanding::kDrained) {
      help.push_back(text("`monarch undrain ", job, " ", name, "` lets it be used again"));
      if (is_joined(where.phase))
        help.push_back(text("`monarch drain ", job, " ", name, " --now` stops what runs there"));
    }
    if (where.standing == HostStanding::kQuarantined) help.push_back(text("`monarch retry ", job, "` forgives it"));
  }
  for (const MeshId other : basis_.stages.waits_for(mesh)) {
    if (!is_ready(basis_, other)) add(text("mesh ", basis_.mesh(other).name, " (not ready)"), false);
  }
  if (help.size() > kMostHelp) help.resize(kMostHelp);
  help.push_back(text("`monarch stop ", job, "` ends the job"));
  const bool parked = is_parked(state.phase);
  const bool no_deadline = missing.empty() || !timed;
  const std::string whom = missing.empty() ? "a host" : some_of(std::move(missing));
  return text(parked ? "is parked, and has waited " : "has waited ",
              to_text(milliseconds(basis_.now - mine_.gangs[mesh.value()][g.value()].since)), " for ", whom,
              no_deadline ? "; there is no deadline" : "", ": ", join(help, ", "));
}

void Reminders::remind_of_holds() {
  mine_.hold_at = basis_.now + kRemindEvery;
  std::vector<std::string> names = left_alone(basis_);
  if (names.empty()) return;
  const std::size_t count = names.size();
  basis_.emit(
      basis_.event(EventKind::kRanksHeld, Severity::kInfo,
                   text(count, count == 1 ? " rank has" : " ranks have", " been left alone for ",
                        to_text(milliseconds(basis_.now - mine_.held_since)), ", as ", basis_.state.holds.by,
                        " asked: ", some_of(std::move(names)),
                        "; there is no deadline, and no hang is seen there: `monarch hold ", basis_.options.job_id,
                        " --release`, or `monarch signal ", basis_.options.job_id, " CONT` where it is stopped")));
}

}  // namespace monarch
