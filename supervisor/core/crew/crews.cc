#include "supervisor/core/crew/crews.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/state/crew_life.h"
#include "supervisor/core/state/rank_life.h"
#include "transport/base/assert.h"
#include "transport/base/limits.h"

namespace monarch {

namespace {

std::optional<std::size_t> host_index(const Crew& crew, HostId host) {
  const auto found = std::find(crew.hosts.begin(), crew.hosts.end(), host);
  if (found == crew.hosts.end()) return std::nullopt;
  return static_cast<std::size_t>(found - crew.hosts.begin());
}

}  // namespace

void Crews::create() {
  for (std::uint32_t m = 0; m <= 2 * basis_.spec.meshes.size(); ++m) {
    Crew crew;
    crew.members.resize(crew_size(basis_.spec, MeshId(m)));
    crews_.emplace_back(crew_count(basis_.spec, MeshId(m)), crew);
  }
}

void Crews::serve(MeshId mesh, const CrewKind& kind) {
  MONARCH_ASSERT(mesh.value() == kinds_.size());
  kinds_.push_back(&kind);
}

CrewKey Crews::key_of(std::size_t mesh, std::size_t index) {
  return {MeshId(static_cast<std::uint32_t>(mesh)), GangId(static_cast<std::uint32_t>(index))};
}

bool Crews::awaits(HostId where, const Reserved& reserved) const {
  const std::size_t mesh = reserved.mesh.value();
  if (mesh >= crews_.size() || reserved.gang.value() >= crews_[mesh].size()) return false;
  const Crew& crew = at({reserved.mesh, reserved.gang});
  if (crew.phase != CrewPhase::kReserving || crew.generation != reserved.generation) return false;
  const std::optional<std::size_t> host = host_index(crew, where);
  return host && !crew.ports[*host].held;
}

bool Crews::any_lives(MeshId mesh) const {
  const std::vector<Crew>& row = crews_[mesh.value()];
  return std::any_of(row.begin(), row.end(), [](const Crew& crew) { return monarch::any_lives(crew); });
}

void Crews::add_output_on_its_way(std::vector<RankId>& ranks) const {
  for (std::size_t row = 0; row < crews_.size(); ++row) {
    for (std::size_t i = 0; i < crews_[row].size(); ++i) {
      const std::vector<CrewMember>& members = crews_[row][i].members;
      for (std::uint32_t m = 0; m < members.size(); ++m) {
        if (members[m].stage != RankStage::kEnded || members[m].output_complete) continue;
        ranks.push_back(crew_rank(basis_.spec, {key_of(row, i), m}));
      }
    }
  }
}

void Crews::begin(const CrewKey& key, std::vector<HostId> hosts, Instant deadline) {
  Crew& crew = this->crew(key);
  to(crew, CrewPhase::kReserving);
  crew.generation = {basis_.state.term, crew.generation.counter + 1};
  crew.hosts = std::move(hosts);
  crew.ports.assign(crew.hosts.size(), HostPorts{});
  crew.members.assign(crew_size(basis_.spec, key.mesh), CrewMember{});
  crew.deadline = deadline;
  crew.late_before = basis_.state.late;
  for (std::size_t h = 0; h < crew.hosts.size(); ++h) {
    std::optional<Reserve> message = kind_of(key).reserve_of(key, h);
    crew.ports[h].held = !message;
    if (message) basis_.actions.emplace_back(SendReserve{crew.hosts[h], std::move(*message)});
  }
}

void Crews::holds(HostId host, const Reserved& reserved) {
  Crew& crew = this->crew({reserved.mesh, reserved.gang});
  crew.ports[*host_index(crew, host)] = {.held = true, .ports = reserved.ports};
}

bool Crews::all_held(const CrewKey& key) const {
  const Crew& crew = at(key);
  return crew.phase == CrewPhase::kReserving &&
         std::all_of(crew.ports.begin(), crew.ports.end(), [](const HostPorts& host) { return host.held; });
}

// Once each of its hosts holds what it needs there.
void Crews::start(const CrewKey& key) {
  Crew& crew = this->crew(key);
  to(crew, CrewPhase::kStarting);
  note_place(crew.places, crew.generation, crew.hosts);
  for (CrewMember& member : crew.members) to(member, RankStage::kStarting);
  for (std::size_t h = 0; h < crew.hosts.size(); ++h) {
    basis_.actions.emplace_back(SendStart{crew.hosts[h], kind_of(key).start_of(key, h)});
  }
}

bool Crews::heard(const CrewPlace& place, const RankReport& report) {
  Crew& crew = this->crew(place.key);
  CrewMember& member = crew.members[place.index];
  member.output_complete = member.output_complete || report.output_complete;
  // It has become another's, which was told first: what it wrote before is on its way.
  const bool left = kind_of(place.key).stands_by() && member.stage == RankStage::kLost;
  if (left && report.phase == RankPhase::kEnded) to(member, RankStage::kEnded);
  if (!lives(member.stage)) return false;
  member.pid = report.pid;
  member.at_gate = member.at_gate || report.at_gate;
  switch (report.phase) {
    case RankPhase::kGated: break;  // START was obeyed
    case RankPhase::kRunning:
      if (member.stage == RankStage::kStarting) to(member, RankStage::kRunning);
      break;
    case RankPhase::kStopping: to(member, RankStage::kStopping); break;
    case RankPhase::kWedged:
    case RankPhase::kEnded: to(member, RankStage::kEnded); break;
  }
  return true;
}

Crews::Turn Crews::look(const CrewKey& key) {
  Crew& crew = this->crew(key);
  const bool begun =
      crew.phase == CrewPhase::kStarting || crew.phase == CrewPhase::kRunning || crew.phase == CrewPhase::kStopping;
  if (!begun) return Turn::kNone;
  if (!monarch::any_lives(crew)) {
    to(crew, CrewPhase::kOver);
    crew.deadline = Instant::never();
    return Turn::kOver;
  }
  const bool gate = kind_of(key).stands_by();
  const bool up = std::all_of(crew.members.begin(), crew.members.end(), [gate](const CrewMember& member) {
    return gate ? member.stage == RankStage::kRunning && member.at_gate : member.stage != RankStage::kStarting;
  });
  if (crew.phase != CrewPhase::kStarting || !up) return Turn::kNone;
  to(crew, CrewPhase::kRunning);
  return Turn::kUp;
}

bool Crews::stop(const CrewKey& key, const CrewStop& order) {
  Crew& crew = this->crew(key);
  if (!is_about(crew) || (crew.phase == CrewPhase::kStopping && !order.again)) return false;
  if (crew.phase == CrewPhase::kReserving) {
    // Nothing of it was started: a later generation, which needs nothing, takes the place of what is held for it.
    ++crew.generation.counter;
    for (const HostId host : crew.hosts) {
      basis_.actions.emplace_back(
          SendReserve{host, Reserve{.mesh = key.mesh, .gang = key.gang, .generation = crew.generation, .count = 0}});
    }
  }
  to(crew, CrewPhase::kStopping);
  crew.stop_signal = order.signal;
  crew.stop_grace = order.grace;
  crew.deadline = order.deadline;
  for (std::size_t h = 0; h < crew.hosts.size(); ++h) {
    Stop message = stop_message(key, h);
    if (!message.ranks.empty()) basis_.actions.emplace_back(SendStop{crew.hosts[h], std::move(message)});
  }
  for (CrewMember& member : crew.members) {
    if (lives(member.stage)) to(member, RankStage::kStopping);
  }
  return true;
}

Stop Crews::stop_message(const CrewKey& key, std::size_t host) const {
  const Crew& crew = at(key);
  Stop message{.ranks = {}, .generation = crew.generation, .signal = crew.stop_signal, .grace = crew.stop_grace};
  const auto [first, behind] = crew_members_on(basis_.spec, key, host);
  for (std::uint32_t i = first; i < behind; ++i) {
    if (lives(crew.members[i].stage)) message.ranks.push_back(crew_rank(basis_.spec, {key, i}));
  }
  return message;
}

void Crews::lose_member(const CrewKey& key, std::size_t index) {
  CrewMember& member = crew(key).members[index];
  if (lives(member.stage)) to(member, RankStage::kLost);
}

bool Crews::lose(const CrewKey& key, HostId host) {
  Crew& crew = this->crew(key);
  bool lost = false;
  const std::optional<std::size_t> here = host_index(crew, host);
  if (!here) return lost;
  const auto [first, behind] = crew_members_on(basis_.spec, key, *here);
  for (std::uint32_t i = first; i < behind; ++i) {
    if (!lives(crew.members[i].stage)) continue;
    to(crew.members[i], RankStage::kLost);
    lost = true;
  }
  return lost;
}

void Crews::forget(const CrewKey& key) {
  Crew& crew = this->crew(key);
  to(crew, CrewPhase::kWaiting);
  crew.ports.clear();
  crew.members.assign(crew_size(basis_.spec, key.mesh), CrewMember{});
  crew.deadline = Instant::never();
}

void Crews::forget_output(const CrewPlace& place) { crew(place.key).members[place.index].output_complete = true; }

std::vector<HostId> Crews::overdue(const CrewKey& key) {
  Crew& crew = this->crew(key);
  crew.deadline = Instant::never();
  std::vector<HostId> hosts;
  for (std::uint32_t i = 0; i < crew.members.size(); ++i) {
    if (lives(crew.members[i].stage)) hosts.push_back(crew.hosts[crew_host(basis_.spec, {key, i})]);
  }
  return hosts;
}

void Crews::returned() {
  for (std::size_t mesh = 0; mesh < crews_.size(); ++mesh) {
    for (Crew& crew : crews_[mesh]) {
      const bool is_gang = mesh < basis_.spec.meshes.size();
      const Duration stop = is_gang ? crew.stop_grace + limits::kKillDeadline : Duration::zero();
      not_before(crew.deadline, basis_.now + stop + kAnswersWithin);
    }
  }
}

void Crews::add_outstanding(HostId host, const std::vector<RankReport>& reported, std::vector<Action>& missing) const {
  for (std::size_t row = 0; row < crews_.size(); ++row) {
    for (std::size_t i = 0; i < crews_[row].size(); ++i) {
      if (is_about(crews_[row][i])) add_outstanding(key_of(row, i), host, reported, missing);
    }
  }
}

void Crews::add_outstanding(const CrewKey& key, HostId host, const std::vector<RankReport>& reported,
                            std::vector<Action>& missing) const {
  const Crew& crew = at(key);
  const std::optional<std::size_t> here = host_index(crew, host);
  if (!here) return;
  const std::size_t h = *here;
  if (crew.phase == CrewPhase::kReserving && !crew.ports[h].held) {
    if (auto reserve = kind_of(key).reserve_of(key, h)) missing.emplace_back(SendReserve{host, std::move(*reserve)});
  }
  bool start = false;
  bool stop = false;
  const auto [first, behind] = crew_members_on(basis_.spec, key, h);
  for (std::uint32_t i = first; i < behind; ++i) {
    const Incarnation process{crew_rank(basis_.spec, {key, i}), crew.generation};
    const auto found = std::find_if(reported.begin(), reported.end(),
                                    [&](const RankReport& report) { return report.process == process; });
    const bool unheard_of = found == reported.end();
    const RankStage stage = crew.members[i].stage;
    start = start || (crew.phase == CrewPhase::kStarting && unheard_of && stage == RankStage::kStarting);
    stop = stop ||
           (crew.phase == CrewPhase::kStopping && lives(stage) && (unheard_of || found->phase <= RankPhase::kRunning));
  }
  if (start) missing.emplace_back(SendStart{host, kind_of(key).start_of(key, h)});
  if (stop) missing.emplace_back(SendStop{host, stop_message(key, h)});
}

}  // namespace monarch
