#pragma once

// Small specs, and a core driven by hand: each step names what happened, and the actions are there to be looked at.

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "tests/supervisor/core/state_parts.h"

namespace monarch::fixtures {

inline MeshSpec mesh_of(std::string name, std::vector<Dimension> dims, std::size_t per_host_dims) {
  MeshSpec mesh;
  mesh.name = std::move(name);
  mesh.dims = std::move(dims);
  mesh.per_host_dims = per_host_dims;
  mesh.program = {"/bin/true"};
  mesh.supervision.restart = {.max = 0};
  mesh.supervision.reallocate = {.max = 0};
  return mesh;
}

// `hosts` virtual hosts with `per_host` ranks each, one gang.
inline JobSpec job_of(std::uint32_t hosts, std::uint32_t per_host) {
  JobSpec spec;
  spec.name = "test";
  spec.directory = "/srv/job";
  spec.meshes.push_back(mesh_of("trainer", {{"host", hosts}, {"gpu", per_host}}, 1));
  return spec;
}

// The same with a gang on each host, that may be started again and replaced so often.
inline JobSpec job_that_recovers(std::uint32_t hosts, std::uint32_t per_host, std::uint32_t restarts,
                                 std::uint32_t reallocations = 0) {
  JobSpec spec = job_of(hosts, per_host);
  spec.meshes[0].gang = {.scope = GangScope::kDimension, .along = 0};
  spec.meshes[0].supervision.restart = {.max = restarts};
  spec.meshes[0].supervision.reallocate = {.max = reallocations};
  spec.supervision = spec.meshes[0].supervision;
  return spec;
}

class Driver {
 public:
  explicit Driver(const JobSpec& spec) : core(spec, pool_of(spec), {.job_id = "test-0001", .log_directory = "/logs"}) {}

  std::vector<Action> step(const CoreEvent& event, Duration later = Duration::milliseconds(1)) {
    now = now + later;
    history.emplace_back(event, now);
    std::vector<Action> actions = core.step(event, now);
    all.insert(all.end(), actions.begin(), actions.end());
    return actions;
  }

  // The core of a successor, which has read this state.
  void succeed(const JobSpec& spec, JobState state) {
    std::destroy_at(&core);
    std::construct_at(&core, spec, pool_of(spec), JobCoreOptions{.job_id = "test-0001", .log_directory = "/logs"});
    core.restore(std::move(state));
  }

  void begin() { step(JobBegun{.term = Term(1), .job = JobUuid{}}); }

  void join(std::uint32_t host) {
    step(WorkerLaunched{.host = HostId(host), .worker = {.reply = {.public_key = "key", .keeper_pid = 100}}});
    step(WorkerJoined{.host = HostId(host), .incarnation = host + 1});
  }

  // Launch, join, ports, and every rank past its gate.
  void run_all() {
    begin();
    for (std::uint32_t i = 0; i < core.spec().hosts_needed(); ++i) join(i);
    give_ports();
    for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
      for (std::uint32_t r = 0; r < core.spec().meshes[m].size(); ++r)
        report({MeshId(m), Rank(r)}, RankPhase::kRunning);
    }
  }

  // For all that were asked for since the last time.
  void give_ports() {
    const std::vector<Action> reserve = actions_of<SendReserve>();
    for (std::size_t i = std::exchange(answered, reserve.size()); i < reserve.size(); ++i) {
      const Action& action = reserve[i];
      const auto& sent = std::get<SendReserve>(action);
      Reserved answer{.mesh = sent.message.mesh, .gang = sent.message.gang, .generation = sent.message.generation};
      answer.ports = {29'500};
      step(PortsReserved{.host = sent.host, .reserved = answer});
    }
  }

  RankReport report_of(RankId id, RankPhase phase, RankEnd end = {}) const {
    const GangId gang = core.spec().meshes[id.mesh.value()].gang_of(id.rank);
    RankReport report;
    report.process.rank = id;
    report.process.generation = core.facts().crew(id.mesh, gang).generation;
    report.phase = phase;
    report.pid = static_cast<std::int32_t>(1000 + id.rank.value());
    report.end = std::move(end);
    report.output_complete = phase == RankPhase::kEnded;
    return report;
  }

  std::vector<Action> report(RankId id, RankPhase phase, RankEnd end = {}) {
    return step(RankChanged{.host = core.placement().host_of(id),
                            .report = report_of(id, phase, std::move(end)),
                            .ended_at = now,
                            .uncertainty = Duration::zero()});
  }

  std::vector<Action> ended(std::uint32_t rank, RankEnd end) {
    return report({MeshId(0), Rank(rank)}, RankPhase::kEnded, std::move(end));
  }

  std::vector<Action> pass_deadline() {
    return step(DeadlinePassed{}, std::max(core.next_deadline() - now, Duration::zero()));
  }

  const GangState& gang(std::uint32_t g, std::uint32_t mesh = 0) const {
    return state_parts::gang(core.state(), MeshId(mesh), GangId(g));
  }
  const RankState& rank(std::uint32_t r, std::uint32_t mesh = 0) const {
    return state_parts::rank(core.state(), {MeshId(mesh), Rank(r)});
  }
  const Crew& crew(std::uint32_t g, std::uint32_t mesh = 0) const { return core.facts().crew(MeshId(mesh), GangId(g)); }
  const CrewMember& member(std::uint32_t r, std::uint32_t mesh = 0) const {
    return core.facts().member({MeshId(mesh), Rank(r)});
  }
  const HostState& host(std::uint32_t h) const { return state_parts::host(core.state(), HostId(h)); }
  const Crew& standby(std::uint32_t s = 0, std::uint32_t mesh = 0) const {
    return core.crews().at({standby_mesh(core.spec(), MeshId(mesh)), GangId(s)});
  }
  bool is_given(std::uint32_t s = 0, std::uint32_t mesh = 0) const {
    return state_parts::standbys(core.state(), MeshId(mesh))[s].place.has_value();
  }

  // Ports for the gang's next generation, and its ranks past their gates.
  void start_again(std::uint32_t g, std::uint32_t mesh = 0) {
    give_ports();
    for (const RankId& id : core.placement().ranks_of(MeshId(mesh), GangId(g))) report(id, RankPhase::kRunning);
  }

  // A rank's end, and those of its gang's others by our signal.
  void fail_gang(RankId id, RankEnd end, std::optional<std::uint64_t> step = {}) {
    const GangId g = core.spec().meshes[id.mesh.value()].gang_of(id.rank);
    this->step(RankChanged{.host = core.placement().host_of(id),
                           .report = report_of(id, RankPhase::kEnded, std::move(end)),
                           .ended_at = now,
                           .uncertainty = Duration::zero(),
                           .step = step});
    for (const RankId& other : core.placement().ranks_of(id.mesh, g)) {
      if (other != id)
        report(other, RankPhase::kEnded, {.kind = EndKind::kSignaled, .value = 9, .after_our_signal = true});
    }
  }

  // Messages of the events of this type, in order.
  std::vector<std::string> told(EventKind kind) const {
    std::vector<std::string> messages;
    for (const Action& action : all) {
      const auto* emitted = std::get_if<EmitEvent>(&action);
      if (emitted != nullptr && emitted->event.kind == kind) messages.push_back(emitted->event.message);
    }
    return messages;
  }
  // What the last event of this type says for programs.
  std::map<std::string, std::string> details(EventKind kind) const {
    std::map<std::string, std::string> details;
    for (const Action& action : all) {
      const auto* emitted = std::get_if<EmitEvent>(&action);
      if (emitted == nullptr || emitted->event.kind != kind) continue;
      details = {emitted->event.details.begin(), emitted->event.details.end()};
    }
    return details;
  }

  template <class T>
  std::vector<Action> actions_of() const {
    std::vector<Action> found;
    for (const Action& action : all) {
      if (std::holds_alternative<T>(action)) found.push_back(action);
    }
    return found;
  }

  // Of a rank of the first mesh, in its newest START; "unset": it is not in there.
  std::string variable(std::uint32_t rank, const std::string& name) const {
    const std::vector<Action> starts = actions_of<SendStart>();
    for (auto at = starts.rbegin(); at != starts.rend(); ++at) {
      const Start& start = std::get<SendStart>(*at).message;
      for (const RankStart& one : start.ranks) {
        if (one.rank != RankId{MeshId(0), Rank(rank)}) continue;
        if (const auto own = one.env.find(name); own != one.env.end()) return own->second;
        if (const auto shared = start.env.find(name); shared != start.env.end()) return shared->second;
        return "unset";
      }
    }
    return "unset";
  }

  template <class T>
  static std::size_t count(const std::vector<Action>& actions) {
    std::size_t n = 0;
    for (const Action& action : actions) n += std::holds_alternative<T>(action) ? 1U : 0U;
    return n;
  }

  void end_hosts() {
    for (std::uint32_t i = 0; i < core.hosts().size(); ++i) {
      if (host(i).phase != HostPhase::kCold) {
        step(WorkerEnded{.host = HostId(i), .how = "exit code 0", .orderly = true});
      }
    }
  }

  const Verdict* verdict() const {
    for (const Action& action : all) {
      if (const auto* finish = std::get_if<FinishJob>(&action)) return &finish->verdict;
    }
    return nullptr;
  }

  JobCore core;
  Instant now = Instant::since_boot(Duration::seconds(1000));
  std::vector<Action> all;
  std::size_t answered = 0;  // of the orders to reserve
  std::vector<std::pair<CoreEvent, Instant>> history;
};

inline RankEnd exited(int code) { return {.kind = EndKind::kExited, .value = code, .detail = {}}; }
inline RankEnd killed(int signal) { return {.kind = EndKind::kSignaled, .value = signal, .detail = {}}; }
inline RankEnd killed_by_us(int signal) {
  return {.kind = EndKind::kSignaled, .value = signal, .detail = {}, .after_our_signal = true};
}

}  // namespace monarch::fixtures
