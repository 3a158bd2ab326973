// Standby gangs: gangs of a mesh that are started on spares and wait at their gates without a place. Where a gang is to
// be started again, one that waits takes its slots, and the START of the next generation names its processes: nothing
// of them acts as the gang before that START is obeyed and leased (I1, I3). A standby decides nothing of the job.

#include <algorithm>
#include <utility>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/job/rank_env.h"
#include "supervisor/core/recovery/restart_budget.h"
#include "supervisor/core/state/first_cause.h"
#include "supervisor/core/state/rank_life.h"
#include "supervisor/core/state/standby_life.h"
#include "transport/base/assert.h"
#include "transport/base/limits.h"
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

bool any_lives(const StandbyState& standby) {
  return standby.phase != StandbyPhase::kWaiting &&
         std::any_of(standby.ranks.begin(), standby.ranks.end(),
                     [](const StandbyRankState& rank) { return lives(rank.stage); });
}

}  // namespace

std::optional<HostId> JobCore::where_is(RankId id) const {
  if (has_rank(id)) return place_of(id);
  if (const auto spare = prepared_host(spec_, id)) return spare;
  const auto place = standby_place(spec_, id);
  if (!place) return std::nullopt;
  const StandbyState& standby = state_.meshes[place->mesh.value()].standby[place->standby];
  if (standby.hosts.empty()) return std::nullopt;
  return standby.hosts[place->index / mesh_spec(place->mesh).per_host()];
}

// Those whose hosts are needed are ended, and those that have none are begun where hosts are free.
void JobCore::tend_standby() {
  if (state_.phase == JobPhase::kNew || starts_nothing()) return;
  each_standby([this](MeshId m, std::uint32_t s) {
    StandbyState& standby = state_.meshes[m.value()].standby[s];
    const bool needed = std::any_of(standby.hosts.begin(), standby.hosts.end(),
                                    [this](HostId id) { return placement_.holds_ranks(id); });
    const bool waits = standby.phase == StandbyPhase::kReserving || standby.phase == StandbyPhase::kStarting ||
                       standby.phase == StandbyPhase::kAtGate;
    if (waits && needed) {
      say_of_standby(m, s, EventKind::kStandbyStopping, Severity::kInfo, "is ended: a host of it is needed");
      stop_standby(m, s);
    }
    if (standby.phase != StandbyPhase::kWaiting || standby.not_before > now_) return;
    std::vector<HostId> hosts = hosts_for_standby(m);
    if (hosts.size() == mesh_spec(m).gang_hosts()) begin_standby(m, s, std::move(hosts));
  });
}

bool JobCore::may_stand_by(MeshId mesh, HostId id) const {
  const HostState& host = state_.hosts[id.value()];
  const bool prepared = spec_.prepare().program.empty() || host.preparation.phase == PreparePhase::kPrepared ||
                        host.preparation.phase == PreparePhase::kUnprepared;
  return host.phase == HostPhase::kJoined && may_serve(id) && !host.doubted && !placement_.holds_ranks(id) &&
         prepared && !stands_by(id, std::nullopt) && resources_.lacking({mesh, Rank(0)}, host.inventory).empty();
}

// Prepared ones first.
std::vector<HostId> JobCore::hosts_for_standby(MeshId mesh) const {
  std::vector<HostId> hosts;
  for (const bool unprepared : {false, true}) {
    for (std::uint32_t i = 0; i < state_.hosts.size() && hosts.size() < mesh_spec(mesh).gang_hosts(); ++i) {
      const bool last = state_.hosts[i].preparation.phase == PreparePhase::kUnprepared;
      if (last == unprepared && may_stand_by(mesh, HostId(i))) hosts.emplace_back(i);
    }
  }
  return hosts;
}

void JobCore::begin_standby(MeshId m, std::uint32_t s, std::vector<HostId> hosts) {
  StandbyState& standby = state_.meshes[m.value()].standby[s];
  to(standby, StandbyPhase::kReserving);
  standby.generation = {state_.term, standby.generation.counter + 1};
  standby.hosts = std::move(hosts);
  standby.held.clear();
  standby.ranks.assign(mesh_spec(m).gang_size(), StandbyRankState{});
  standby.deadline = now_ + spec_.start_timeout;
  standby.late_before = state_.late;
  standby.place.reset();
  for (std::size_t h = 0; h < standby.hosts.size(); ++h) {
    Reserve message = standby_reserve_message(m, s, h);
    if (message.gpus.empty()) {
      standby.held.push_back(standby.hosts[h]);
    } else {
      actions_.emplace_back(SendReserve{standby.hosts[h], std::move(message)});
    }
  }
  std::vector<std::string> names;
  for (const HostId id : standby.hosts) names.push_back(hosts_[id.value()].name);
  say_of_standby(m, s, EventKind::kStandbyStarting, Severity::kInfo, text("is starting on ", join(names, ", ")));
  start_standby(m, s);
}

// Once each of its hosts holds what it needs there.
void JobCore::start_standby(MeshId m, std::uint32_t s) {
  StandbyState& standby = state_.meshes[m.value()].standby[s];
  if (standby.phase != StandbyPhase::kReserving || standby.held.size() < standby.hosts.size()) return;
  to(standby, StandbyPhase::kStarting);
  note_place(standby.places, standby.generation, standby.hosts);
  standby.ranks.assign(mesh_spec(m).gang_size(), StandbyRankState{});
  for (StandbyRankState& rank : standby.ranks) to(rank, RankStage::kStarting);
  for (std::size_t h = 0; h < standby.hosts.size(); ++h) {
    actions_.emplace_back(SendStart{standby.hosts[h], standby_start_message(m, s, h)});
  }
}

bool JobCore::awaits_for_standby(HostId where, const Reserved& reserved) const {
  const auto place = standby_place(spec_, {reserved.mesh, Rank(0)});
  if (!place || reserved.gang.value() >= state_.meshes[place->mesh.value()].standby.size()) return false;
  const StandbyState& standby = state_.meshes[place->mesh.value()].standby[reserved.gang.value()];
  const bool asked = std::find(standby.hosts.begin(), standby.hosts.end(), where) != standby.hosts.end();
  return asked && standby.phase == StandbyPhase::kReserving && standby.generation == reserved.generation &&
         !holds_for_standby(standby, where);
}

void JobCore::on_standby_reserved(const PortsReserved& event) {
  const MeshId m = standby_place(spec_, {event.reserved.mesh, Rank(0)})->mesh;
  const std::uint32_t s = event.reserved.gang.value();
  if (!event.reserved.error.empty()) {
    return standby_failed(m, s,
                          text("could not reserve what it needs on ", hosts_[event.host.value()].name, ": ",
                               printable(event.reserved.error)));
  }
  state_.meshes[m.value()].standby[s].held.push_back(event.host);
  start_standby(m, s);
}

void JobCore::on_standby_changed(const RankChanged& event, const StandbyPlace& place) {
  StandbyState& standby = state_.meshes[place.mesh.value()].standby[place.standby];
  StandbyRankState& rank = standby.ranks[place.index];
  rank.output_complete = rank.output_complete || event.report.output_complete;
  // It has become a rank of a gang, which was told first: what it wrote as a standby is on its way.
  if (rank.stage == RankStage::kLost && event.report.phase == RankPhase::kEnded) to(rank, RankStage::kEnded);
  if (!lives(rank.stage)) return;
  rank.pid = event.report.pid;
  rank.at_gate = rank.at_gate || event.report.at_gate;
  switch (event.report.phase) {
    case RankPhase::kGated: break;
    case RankPhase::kRunning:
      if (rank.stage == RankStage::kStarting) to(rank, RankStage::kRunning);
      break;
    case RankPhase::kStopping: to(rank, RankStage::kStopping); break;
    case RankPhase::kWedged:
      note_wedged(event, text("standby ", place.standby, " of ", mesh_spec(place.mesh).name));
      to(rank, RankStage::kEnded);
      break;
    case RankPhase::kEnded: to(rank, RankStage::kEnded); break;
  }
  if (event.report.end.kind != EndKind::kNone) {
    standby_failed(place.mesh, place.standby,
                   text("rank ", place.index, " on ", hosts_[event.host.value()].name, " (pid ", rank.pid,
                        "): ", describe_end(event.report.end), rank.at_gate ? "" : ", before it was at its gate"));
  }
  check_standby(place.mesh, place.standby);
}

// A gang that lives and dies together, also here.
void JobCore::standby_failed(MeshId m, std::uint32_t s, const std::string& why) {
  StandbyState& standby = state_.meshes[m.value()].standby[s];
  if (standby.phase == StandbyPhase::kWaiting || standby.phase == StandbyPhase::kStopping) return;
  if (standby.phase == StandbyPhase::kGiven && gang(m, *standby.place).phase == GangPhase::kStarting) return;
  ++standby.failures;
  standby.not_before = now_ + backoff(standby.failures);
  if (state_.phase <= JobPhase::kRunning) {
    say_of_standby(m, s, EventKind::kStandbyFailed, Severity::kWarning,
                   text(why, "; it is started again in ", to_text(backoff(standby.failures)), " at the earliest"));
  }
  stop_standby(m, s);
}

void JobCore::stop_standby(MeshId m, std::uint32_t s) {
  StandbyState& standby = state_.meshes[m.value()].standby[s];
  if (standby.phase == StandbyPhase::kWaiting) return;
  if (standby.phase == StandbyPhase::kStopping && !state_.kill_ordered) return;
  if (standby.phase == StandbyPhase::kReserving) let_go_of_reservation(m, s);
  to(standby, StandbyPhase::kStopping);
  // Nothing starts where it has not ended, whatever ports are on their way (I18).
  if (standby.place) give_up_reservation(m, *standby.place);
  standby.place.reset();
  standby.deadline = now_ + kStandbyGrace + limits::kKillDeadline + kStopMargin;
  for (std::size_t h = 0; h < standby.hosts.size(); ++h) {
    Stop message = standby_stop_message(m, s, h);
    if (!message.ranks.empty()) actions_.emplace_back(SendStop{standby.hosts[h], std::move(message)});
  }
  for (StandbyRankState& rank : standby.ranks) {
    if (lives(rank.stage)) to(rank, RankStage::kStopping);
  }
  check_standby(m, s);
}

void JobCore::stop_all_standby() {
  each_standby([this](MeshId m, std::uint32_t s) { stop_standby(m, s); });
}

void JobCore::check_standby(MeshId m, std::uint32_t s) {
  StandbyState& standby = state_.meshes[m.value()].standby[s];
  if (standby.phase == StandbyPhase::kStarting) {
    const bool whole = std::all_of(standby.ranks.begin(), standby.ranks.end(), [](const StandbyRankState& rank) {
      return rank.stage == RankStage::kRunning && rank.at_gate;
    });
    if (!whole) return;
    to(standby, StandbyPhase::kAtGate);
    standby.deadline = Instant::never();
    standby.failures = 0;
    return say_of_standby(m, s, EventKind::kStandbyReady, Severity::kInfo, "is at its gate");
  }
  if (standby.phase != StandbyPhase::kStopping || any_lives(standby)) return;
  to(standby, StandbyPhase::kWaiting);
  standby.deadline = Instant::never();
  waits_due_ = true;  // a gang may have waited for its hosts
}

void JobCore::lose_standby_on(HostId id) {
  each_standby([&](MeshId m, std::uint32_t s) {
    StandbyState& standby = state_.meshes[m.value()].standby[s];
    const bool here = std::find(standby.hosts.begin(), standby.hosts.end(), id) != standby.hosts.end();
    bool lost = here && standby.phase == StandbyPhase::kReserving;
    for (std::size_t i = 0; i < standby.ranks.size(); ++i) {
      if (standby.hosts[i / mesh_spec(m).per_host()] != id || !lives(standby.ranks[i].stage)) continue;
      to(standby.ranks[i], RankStage::kLost);
      lost = true;
    }
    if (!lost) return;
    standby_failed(m, s, text("its host ", hosts_[id.value()].name, " was lost"));
    check_standby(m, s);
  });
}

void JobCore::standby_deadlines() {
  each_standby([this](MeshId m, std::uint32_t s) {
    StandbyState& standby = state_.meshes[m.value()].standby[s];
    if (standby.deadline > now_) return;
    standby.deadline = Instant::never();
    if (standby.phase == StandbyPhase::kReserving) {
      return standby_failed(m, s,
                            text("not all of its hosts have said within start_timeout (", to_text(spec_.start_timeout),
                                 ") that they hold what it needs", late_since(standby.late_before)));
    }
    if (standby.phase == StandbyPhase::kStarting) {
      return say_of_standby(
          m, s, EventKind::kStandbyLate, Severity::kWarning,
          text("is not at its gate within start_timeout (", to_text(spec_.start_timeout), ")",
               late_since(standby.late_before), ": does its program call gate() of monarch_rank.py? It waits on"));
    }
    if (standby.phase != StandbyPhase::kStopping) return;
    for (std::size_t i = 0; i < standby.ranks.size(); ++i) {
      if (lives(standby.ranks[i].stage)) give_up_host(standby.hosts[i / mesh_spec(m).per_host()]);
    }
  });
}

// The gang has failed, nothing of it lives, and it is to be started again: on the hosts of one that waits. Its hosts
// become spares.
void JobCore::standby_takes(MeshId m, GangId g) {
  std::vector<StandbyState>& all = state_.meshes[m.value()].standby;
  const auto serves = [this](HostId id) {
    return may_serve(id) && host(id).phase == HostPhase::kJoined && !host(id).doubted;
  };
  const auto found = std::find_if(all.begin(), all.end(), [&](const StandbyState& standby) {
    return standby.phase == StandbyPhase::kAtGate && std::all_of(standby.hosts.begin(), standby.hosts.end(), serves);
  });
  if (found == all.end()) return;
  const std::vector<HostId> before = placement_.hosts_of(m, g);
  const bool lost = std::any_of(before.begin(), before.end(), [this](HostId id) { return !may_serve(id); });
  const ReallocatePolicy& policy = mesh_spec(m).supervision.reallocate;
  if (lost) {
    if (policy.max && still_count(state_.reallocations, policy.window, now_) >= *policy.max) return;
    forget_older(state_.reallocations, policy.window, now_);
    state_.reallocations.push_back(now_);
  }
  to(*found, StandbyPhase::kGiven);
  found->place = g;
  const auto s = static_cast<std::uint32_t>(found - all.begin());
  say_of_standby(m, s, EventKind::kStandbyTaken, Severity::kInfo, text("takes the place of gang ", g.value()));
  for (std::size_t i = 0; i < before.size(); ++i) {
    move_slot(*placement_.slot_on(before[i]), found->hosts[i], text("standby ", s));
  }
}

std::optional<std::uint32_t> JobCore::standby_of(MeshId m, GangId g) const {
  const std::vector<StandbyState>& all = state_.meshes[m.value()].standby;
  for (std::uint32_t s = 0; s < all.size(); ++s) {
    if (all[s].phase == StandbyPhase::kGiven && all[s].place == g) return s;
  }
  return std::nullopt;
}

// Whose process is to become this rank.
std::optional<Incarnation> JobCore::standby_for(RankId id) const {
  const GangId g = mesh_spec(id.mesh).gang_of(id.rank);
  const std::optional<std::uint32_t> s = standby_of(id.mesh, g);
  if (!s) return std::nullopt;
  const StandbyState& standby = state_.meshes[id.mesh.value()].standby[*s];
  const std::uint32_t index = id.rank.value() - placement_.range_of(id.mesh, g).first;
  if (!lives(standby.ranks[index].stage)) return std::nullopt;
  return Incarnation{standby_rank(spec_, {id.mesh, *s, index}), standby.generation};
}

// Every rank of the gang has passed its gate, or has ended: its processes are that gang's, but for those that were
// stopped before they became anything: these wait on, and have to end before anything starts there (I18).
void JobCore::standby_is_placed(MeshId m, GangId g) {
  const std::optional<std::uint32_t> s = standby_of(m, g);
  if (!s || gang(m, g).phase == GangPhase::kWaiting || gang(m, g).phase == GangPhase::kReserving) return;
  StandbyState& standby = state_.meshes[m.value()].standby[*s];
  const std::vector<RankId> placed = placement_.ranks_of(m, g);
  for (std::size_t i = 0; i < placed.size(); ++i) {
    const RankState& became = rank(placed[i]);
    const bool left = became.pid == 0 && became.stage == RankStage::kEnded;
    if (!left && lives(standby.ranks[i].stage)) to(standby.ranks[i], RankStage::kLost);
  }
  if (any_lives(standby)) return stop_standby(m, *s);
  to(standby, StandbyPhase::kWaiting);
  standby.place.reset();
}

// Does a standby gang live on this host, but for one that has this gang's place?
bool JobCore::stands_by(HostId id, std::optional<std::pair<MeshId, GangId>> but_for) const {
  bool found = false;
  each_standby([&](MeshId m, std::uint32_t s) {
    const StandbyState& standby = state_.meshes[m.value()].standby[s];
    const bool own = but_for && but_for->first == m && standby.place == but_for->second;
    const bool here = std::find(standby.hosts.begin(), standby.hosts.end(), id) != standby.hosts.end();
    found = found || (here && !own && standby.phase != StandbyPhase::kWaiting);
  });
  return found;
}

bool JobCore::any_standby_lives() const {
  bool found = false;
  each_standby([&](MeshId m, std::uint32_t s) { found = found || any_lives(state_.meshes[m.value()].standby[s]); });
  return found;
}

void JobCore::add_standby_output_on_its_way(std::vector<RankId>& ranks) const {
  each_standby([&](MeshId m, std::uint32_t s) {
    const StandbyState& standby = state_.meshes[m.value()].standby[s];
    for (std::uint32_t i = 0; i < standby.ranks.size(); ++i) {
      const StandbyRankState& rank = standby.ranks[i];
      if (rank.stage == RankStage::kEnded && !rank.output_complete) ranks.push_back(standby_rank(spec_, {m, s, i}));
    }
  });
}

void JobCore::say_of_standby(MeshId m, std::uint32_t s, EventKind kind, Severity severity, const std::string& what) {
  JobEvent event = event_of(kind, severity, text(mesh_spec(m).name, ": standby ", s, " ", what));
  event.mesh = mesh_spec(m).name;
  emit(std::move(event));
}

}  // namespace monarch
