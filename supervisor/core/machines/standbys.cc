#include "supervisor/core/machines/standbys.h"

#include <algorithm>

#include "supervisor/core/facts/hosts.h"
#include "transport/base/text.h"
#include "transport/messages/describe_end.h"

namespace monarch {

namespace {

// Of one that fails before it is at its gate, twice as long each time.
constexpr Duration kFirstBackoff = Duration::seconds(1);
constexpr Duration kLongestBackoff = Duration::seconds(60);

Duration backoff(std::uint32_t failures) {
  Duration wait = kFirstBackoff;
  for (std::uint32_t i = 1; i < failures && wait < kLongestBackoff; ++i) wait = wait * 2;
  return std::min(wait, kLongestBackoff);
}

}  // namespace

Standbys::Standbys(const CoreBasis& basis, std::vector<std::vector<StandbyState>>& mine, Crews& crews)
    : basis_(basis), mine_(mine), crews_(crews) {
  for (std::uint32_t m = 0; m < basis.spec.meshes.size(); ++m) crews_.serve(standby_mesh(basis.spec, MeshId(m)), *this);
  for (const MeshSpec& mesh : basis.spec.meshes) mine_.emplace_back(mesh.standby_gangs);
}

void Standbys::tend() {
  each([this](MeshId m, std::uint32_t s) {
    const Crew& crew = crew_of(m, s);
    const bool needed = std::any_of(crew.hosts.begin(), crew.hosts.end(),
                                    [this](HostId id) { return basis_.placement.holds_ranks(id); });
    const bool waits = is_about(crew) && crew.phase != CrewPhase::kStopping && !mine(m, s).place;
    if (waits && needed) {
      say(m, s, EventKind::kStandbyStopping, Severity::kInfo, "is ended: a host of it is needed");
      stop(m, s);
    }
    if (is_about(crew) || mine(m, s).not_before > basis_.now) return;
    std::vector<HostId> hosts = hosts_for(m);
    if (hosts.size() == basis_.mesh(m).gang_hosts()) begin(m, s, std::move(hosts));
  });
}

bool Standbys::may_stand_by(MeshId mesh, HostId id) const {
  const HostState& host = basis_.host(id);
  const PrepareStage stage = prepare_stage(basis_.state, id);
  const bool warm =
      basis_.spec.prepare().program.empty() || stage == PrepareStage::kPrepared || stage == PrepareStage::kUnprepared;
  return is_joined(host.phase) && may_serve(host) && !host.doubted && !basis_.placement.holds_ranks(id) && warm &&
         !stands_by_on(basis_, id, std::nullopt) && basis_.resources.lacking({mesh, Rank(0)}, host.inventory).empty();
}

// Prepared ones first.
std::vector<HostId> Standbys::hosts_for(MeshId mesh) const {
  std::vector<HostId> hosts;
  for (const bool unprepared : {false, true}) {
    for (std::uint32_t i = 0; i < basis_.hosts.size() && hosts.size() < basis_.mesh(mesh).gang_hosts(); ++i) {
      const bool last = prepare_stage(basis_.state, HostId(i)) == PrepareStage::kUnprepared;
      if (last == unprepared && may_stand_by(mesh, HostId(i))) hosts.emplace_back(i);
    }
  }
  return hosts;
}

void Standbys::begin(MeshId m, std::uint32_t s, std::vector<HostId> hosts) {
  std::vector<std::string> names;
  for (const HostId id : hosts) names.push_back(basis_.name_of(id));
  crews_.begin(key_of(m, s), std::move(hosts), basis_.now + basis_.spec.start_timeout);
  say(m, s, EventKind::kStandbyStarting, Severity::kInfo, text("is starting on ", join(names, ", ")));
  if (crews_.all_held(key_of(m, s))) crews_.start(key_of(m, s));
}

void Standbys::on(const PortsReserved& event) {
  const auto& [host, reserved] = event;
  if (reserved.mesh.value() < basis_.spec.meshes.size() || !crews_.awaits(host, reserved)) return;
  if (basis_.starts_nothing()) return;
  const CrewKey key{reserved.mesh, reserved.gang};
  if (!reserved.error.empty()) {
    return failed(*mesh_of_standby(basis_.spec, key.mesh), key.gang.value(),
                  text("could not reserve what it needs on ", basis_.name_of(host), ": ", printable(reserved.error)));
  }
  crews_.holds(host, reserved);
  if (crews_.all_held(key)) crews_.start(key);
}

void Standbys::heard(const CrewPlace& place, HostId host, const RankReport& report) {
  if (!crews_.heard(place, report)) return;
  const MeshId m = *mesh_of_standby(basis_.spec, place.key.mesh);
  const std::uint32_t s = place.key.gang.value();
  const CrewMember& member = crew_of(m, s).members[place.index];
  if (report.end.kind != EndKind::kNone) {
    failed(m, s,
           text("rank ", place.index, " on ", basis_.name_of(host), " (pid ", member.pid,
                "): ", describe_end(report.end), member.at_gate ? "" : ", before it was at its gate"));
  }
  look(m, s);
}

// A gang that lives and dies together, also here.
void Standbys::failed(MeshId m, std::uint32_t s, const std::string& why) {
  const Crew& crew = crew_of(m, s);
  if (!is_about(crew) || crew.phase == CrewPhase::kStopping) return;
  StandbyState& state = mine(m, s);
  const bool becomes_gang = state.place && basis_.gang(m, *state.place).phase == GangPhase::kStarting;
  if (becomes_gang) return;
  ++state.failures;
  state.not_before = basis_.now + backoff(state.failures);
  if (basis_.state.phase <= JobPhase::kRunning) {
    say(m, s, EventKind::kStandbyFailed, Severity::kWarning,
        text(why, "; it is started again in ", to_text(backoff(state.failures)), " at the earliest"));
  }
  stop(m, s);
}

void Standbys::stop(MeshId m, std::uint32_t s) {
  if (!crews_.stop(key_of(m, s), basis_.stop_beside(basis_.mesh(m).stop.signal))) return;
  // Nothing starts where it has not ended, whatever ports are on their way (I18).
  if (const auto place = std::exchange(mine(m, s).place, std::nullopt)) left_.emplace_back(m, *place);
  look(m, s);
}

void Standbys::stop_all() {
  each([this](MeshId m, std::uint32_t s) { stop(m, s); });
}

// Of one that has a gang's place nothing is decided before its members are that gang's.
void Standbys::look(MeshId m, std::uint32_t s) {
  if (mine(m, s).place) return;
  switch (crews_.look(key_of(m, s))) {
    case Crews::Turn::kNone: return;
    case Crews::Turn::kOver: freed_ = true; return;
    case Crews::Turn::kUp: break;
  }
  crews_.no_deadline(key_of(m, s));
  mine(m, s).failures = 0;
  say(m, s, EventKind::kStandbyReady, Severity::kInfo, "is at its gate");
}

void Standbys::lose(HostId id) {
  each([&](MeshId m, std::uint32_t s) {
    const bool asked = crew_of(m, s).phase == CrewPhase::kReserving && monarch::is_on(crew_of(m, s), id);
    if (!crews_.lose(key_of(m, s), id) && !asked) return;
    failed(m, s, text("its host ", basis_.name_of(id), " was lost"));
    look(m, s);
  });
}

void Standbys::look_at_times() {
  each([this](MeshId m, std::uint32_t s) {
    const Crew& crew = crew_of(m, s);
    if (crew.deadline > basis_.now) return;
    const std::vector<HostId> hosts = crews_.overdue(key_of(m, s));
    const std::string limit = text("within start_timeout (", to_text(basis_.spec.start_timeout), ")");
    const std::string late = basis_.late_since(crew.late_before);
    if (crew.phase == CrewPhase::kReserving) {
      return failed(m, s, text("not all of its hosts have said ", limit, " that they hold what it needs", late));
    }
    if (crew.phase == CrewPhase::kStarting) {
      return say(
          m, s, EventKind::kStandbyLate, Severity::kWarning,
          text("is not at its gate ", limit, late, ": does its program call gate() of monarch_rank.py? It waits on"));
    }
    if (crew.phase == CrewPhase::kStopping) stuck_.insert(stuck_.end(), hosts.begin(), hosts.end());
  });
}

std::optional<std::uint32_t> Standbys::ready_for(MeshId m) const {
  for (std::uint32_t s = 0; s < mine_[m.value()].size(); ++s) {
    const Crew& crew = crew_of(m, s);
    const bool serves = std::all_of(crew.hosts.begin(), crew.hosts.end(), [this](HostId id) {
      const HostState& host = basis_.host(id);
      return may_serve(host) && is_joined(host.phase) && !host.doubted;
    });
    if (crew.phase == CrewPhase::kRunning && !mine_[m.value()][s].place && serves) return s;
  }
  return std::nullopt;
}

std::vector<HostId> Standbys::give(MeshId m, std::uint32_t s, GangId g) {
  mine(m, s).place = g;
  say(m, s, EventKind::kStandbyTaken, Severity::kInfo, text("takes the place of gang ", g.value()));
  return crew_of(m, s).hosts;
}

// Its processes are that gang's, but for those that were stopped before they became anything: these wait on, and have
// to end before anything starts there (I18).
void Standbys::is_placed(const PlacedGang& gang) {
  const auto& [m, g, became] = gang;
  const std::optional<std::uint32_t> s = standby_of(basis_, m, g);
  if (!s) return;
  for (std::size_t i = 0; i < became.size(); ++i) {
    const bool left = became[i].pid == 0 && became[i].stage == RankStage::kEnded;
    if (!left) crews_.lose_member(key_of(m, *s), i);
  }
  if (monarch::any_lives(crew_of(m, *s))) return stop(m, *s);
  (void)crews_.look(key_of(m, *s));
  mine(m, *s).place.reset();
}

void Standbys::say(MeshId m, std::uint32_t s, EventKind kind, Severity severity, const std::string& what) const {
  JobEvent event = basis_.event(kind, severity, text(basis_.mesh(m).name, ": standby ", s, " ", what));
  event.mesh = basis_.mesh(m).name;
  basis_.emit(std::move(event));
}

}  // namespace monarch
