// Waits: while the job runs, for whom a gang waits is said again every 30 s, with what is known of its end and what an
// operator can do; and so is who is left alone on purpose. Nothing is decided here.

#include <algorithm>

#include "supervisor/core/facts/occupants.h"
#include "supervisor/core/facts/some_of.h"
#include "supervisor/core/job/job_core.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kRemindEvery = Duration::seconds(30);

constexpr std::size_t kMostHelp = 8;      // of what an operator can do
constexpr std::size_t kMostReminded = 8;  // gangs at one time; more are counted

Duration milliseconds(Duration exact) { return Duration::milliseconds(exact.count_milliseconds()); }

}  // namespace

void JobCore::tend_waits() {
  each_gang([this](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    if (!waits_at_length(basis_, m, g)) {
      state.remind_at = Instant::never();
    } else if (state.remind_at == Instant::never()) {
      state.waits_since = now_;
      state.remind_at = now_ + kRemindEvery;
    }
  });
  if (state_.phase != JobPhase::kRunning || !some_left_alone()) {
    state_.hold_remind_at = Instant::never();
  } else if (state_.hold_remind_at == Instant::never()) {
    state_.held_since = now_;
    state_.hold_remind_at = now_ + kRemindEvery;
  }
}

void JobCore::remind() {
  std::size_t reminded = 0;
  each_gang([&](MeshId m, GangId g) {
    GangState& state = gang(m, g);
    if (state.remind_at > now_ || !waits_at_length(basis_, m, g)) return;
    state.remind_at = now_ + kRemindEvery;
    if (++reminded > kMostReminded) return;
    basis_.say_of_gang(m, g, EventKind::kGangWaiting, Severity::kWarning, remind_text(m, g));
  });
  if (reminded > kMostReminded) {
    const std::size_t more = reminded - kMostReminded;
    emit(event_of(EventKind::kGangWaiting, Severity::kWarning,
                  text(more, more == 1 ? " more gang waits" : " more gangs wait", " for hosts; see `monarch status ",
                       options_.job_id, "`")));
  }
  if (state_.hold_remind_at <= now_) remind_of_holds();
}

// Empty: it is there for this gang. What has no time in it has none.
std::string JobCore::why_out(MeshId mesh, GangId g, HostId id) const {
  const HostState& state = state_.hosts[id.value()];
  const std::string& name = pool_[id.value()].name;
  const auto in = [this](Instant due) { return to_text(milliseconds(std::max(due - now_, Duration::zero()))); };
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
    const bool lived_on = somebody_lives_on(state_, placement_, id);
    return text(name, " (", because("left"), lived_on ? "; what else runs there has not ended" : "", ")");
  }
  const std::string beside = runs_beside(basis_, id, std::pair(mesh, g));
  return beside.empty() ? "" : text(name, " (", beside, ")");
}

// "has waited 30s for v2 (drained, asked by …); there is no deadline: `monarch undrain JOB v2` …"
std::string JobCore::remind_text(MeshId mesh, GangId g) const {
  const GangState& state = gang(mesh, g);
  const std::string& job = options_.job_id;
  std::vector<std::string> missing;
  std::vector<std::string> help;
  bool timed = true;
  const auto add = [&](const std::string& who, bool has_time) {
    missing.push_back(who);
    timed = timed && has_time;
  };
  if (is_waiting(state.phase) && !fence_done(basis_, mesh, g)) {
    Instant until = state.not_before;
    for (const HostId id : state.fenced_by) until = std::max(until, state_.hosts[id.value()].fence);
    add(text("its time, in ", to_text(milliseconds(until - now_))), true);
  }
  for (const HostId id : placement_.hosts_of(mesh, g)) {
    const std::string why = why_out(mesh, g, id);
    if (why.empty()) continue;
    const HostState& where = state_.hosts[id.value()];
    add(why, where.standing == HostStanding::kGood &&
                 (where.cold_at != Instant::never() || where.deadline != Instant::never()));
    const std::string& name = pool_[id.value()].name;
    if (where.standing == HostStanding::kDrained) {
      help.push_back(text("`monarch undrain ", job, " ", name, "` lets it be used again"));
      if (is_joined(where.phase))
        help.push_back(text("`monarch drain ", job, " ", name, " --now` stops what runs there"));
    }
    if (where.standing == HostStanding::kQuarantined) help.push_back(text("`monarch retry ", job, "` forgives it"));
  }
  for (const MeshId other : stages_.waits_for(mesh)) {
    if (!is_ready(basis_, other)) add(text("mesh ", mesh_spec(other).name, " (not ready)"), false);
  }
  if (help.size() > kMostHelp) help.resize(kMostHelp);
  help.push_back(text("`monarch stop ", job, "` ends the job"));
  const bool parked = is_parked(state.phase);
  const bool no_deadline = missing.empty() || !timed;
  const std::string whom = missing.empty() ? "a host" : some_of(std::move(missing));
  return text(parked ? "is parked, and has waited " : "has waited ", to_text(milliseconds(now_ - state.waits_since)),
              " for ", whom, no_deadline ? "; there is no deadline" : "", ": ", join(help, ", "));
}

bool JobCore::some_left_alone() const {
  return std::any_of(state_.meshes.begin(), state_.meshes.end(), [](const MeshState& mesh) {
    return !mesh.held.empty() ||
           std::any_of(mesh.ranks.begin(), mesh.ranks.end(), [](const RankState& rank) { return rank.suspended; });
  });
}

// "m/3", in order.
std::vector<std::string> JobCore::left_alone() const {
  std::vector<std::string> names;
  for (std::uint32_t m = 0; m < state_.meshes.size(); ++m) {
    const MeshState& mesh = state_.meshes[m];
    for (std::uint32_t r = 0; r < mesh.ranks.size(); ++r) {
      const RankId id{MeshId(m), Rank(r)};
      if (is_left_alone(basis_, id)) names.push_back(text(mesh_spec(id.mesh).name, "/", r));
    }
  }
  return names;
}

void JobCore::remind_of_holds() {
  state_.hold_remind_at = now_ + kRemindEvery;
  std::vector<std::string> names = left_alone();
  if (names.empty()) return;
  const std::size_t count = names.size();
  emit(event_of(
      EventKind::kRanksHeld, Severity::kInfo,
      text(count, count == 1 ? " rank has" : " ranks have", " been left alone for ",
           to_text(milliseconds(now_ - state_.held_since)), ", as ", state_.held_by,
           " asked: ", some_of(std::move(names)), "; there is no deadline, and no hang is seen there: `monarch hold ",
           options_.job_id, " --release`, or `monarch signal ", options_.job_id, " CONT` where it is stopped")));
}

}  // namespace monarch
