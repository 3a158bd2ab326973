#pragma once

// DrillRun: a drill's record, written by hand: two gangs of two ranks on h1 and h2, and h3 as a spare. They step ten
// times a second; control is from second 10 to 20, faults are from there to 60. A failure goes into events and into the
// ledger at once, so that both say the same.
//
// Thread: a value.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/state/ledger.h"
#include "supervisor/drill/core/record.h"
#include "transport/base/text.h"

namespace monarch::drill {

inline WallTime at_second(double second) {
  return WallTime{1'700'000'000'000'000'000 + static_cast<std::int64_t>(second * 1e6) * 1'000};
}

// In seconds.
struct Recovered {
  double failed = 0;
  double started = 0;
  double running = 0;
  double first_step = 0;
  double caught_up = 0;
  std::string remedy = "restart";
};

class DrillRun {
 public:
  explicit DrillRun(std::uint32_t gangs = 2, double ended = 61) : ended_(ended) {
    record_.scenario.name = "smoke";
    record_.seed = 42;
    record_.job_id = "train-1a2b";
    record_.launcher = "local:3";
    record_.monarch = "0.1.0";
    record_.command = {"monarch", "drill", "smoke.yaml"};
    record_.times = {.heartbeat = Duration::milliseconds(200),
                     .suspect_after = Duration::seconds(1),
                     .lost_after = Duration::seconds(5),
                     .lease = Duration::seconds(3),
                     .hang = Duration::seconds(3)};
    record_.meshes = {{.name = "trainer", .ranks = gangs * 2, .ranks_per_gang = 2, .sidecar = false}};
    record_.started = at_second(0);
    record_.control_from = at_second(10);
    record_.control_to = at_second(20);
    record_.faults_to = at_second(ended - 1);
    record_.ended = at_second(ended);
    record_.hosts_searched = gangs + 1;
    Verdict verdict;
    verdict.outcome = Outcome::kStopped;
    verdict.exit_code = 143;
    record_.verdict = verdict;
    for (std::uint32_t g = 0; g < gangs; ++g) {
      hosts_.push_back(text("h", g + 1));
      bins_.push_back({{0, TimeBin::kWaiting}});
      generations_.push_back(0);
      start(g, 1);
      gang_event(1.2, EventKind::kGangRunning, g);
      gang_event(2, EventKind::kGangReady, g);
      bin(g, 1.2, TimeBin::kStarting);
      bin(g, 2, TimeBin::kNew);
    }
  }

  DrillRecord& record() { return record_; }

  Blow& blow(const std::string& fault, double at, BlowTarget target, double lasts = 0) {
    Blow blow;
    blow.number = static_cast<std::uint32_t>(record_.blows.size()) + 1;
    blow.fault = fault;
    blow.target = std::move(target);
    blow.due = at_second(at);
    blow.struck_at = at_second(at);
    blow.seen_at = at_second(at + 0.02);
    blow.lasts = Duration::milliseconds(static_cast<std::int64_t>(lasts * 1000));
    if (lasts > 0) blow.undone_at = at_second(at + lasts);
    blow.end = BlowEnd::kEffective;
    blow.struck = {17};
    record_.blows.push_back(std::move(blow));
    return record_.blows.back();
  }
  BlowTarget rank(std::uint32_t rank) const {
    return {.host = hosts_[rank / 2], .mesh = "trainer", .rank = rank, .gangs = {{0, rank / 2}}};
  }
  BlowTarget host(const std::string& name) const {
    BlowTarget target{.host = name, .mesh = "", .rank = 0, .gangs = {}};
    for (std::uint32_t g = 0; g < hosts_.size(); ++g) {
      if (hosts_[g] == name) target.gangs.push_back({0, g});
    }
    return target;
  }

  JobEvent& event(double at, EventKind kind, const std::string& host = "") {
    JobEvent event;
    event.number = record_.events.size() + 1;
    event.time = at_second(at);
    event.kind = kind;
    event.severity = facts_of(kind).severity;
    event.host = host;
    event.message = text(host.empty() ? "it" : host, " ", name_of(kind));
    record_.events.push_back(std::move(event));
    return record_.events.back();
  }
  JobEvent& gang_event(double at, EventKind kind, std::uint32_t gang) {
    JobEvent& one = event(at, kind);
    one.mesh = "trainer";
    one.generation = generations_[gang];
    one.details = {{"gang", text(gang)}};
    one.message = text("trainer: gang ", gang, " ", name_of(kind));
    return one;
  }
  JobEvent& rank_event(double at, EventKind kind, std::uint32_t rank) {
    JobEvent& one = event(at, kind, hosts_[rank / 2]);
    one.mesh = "trainer";
    one.rank = rank;
    one.generation = generations_[rank / 2];
    return one;
  }
  void fail(std::uint32_t gang, double struck, double at, const std::string& remedy = "restart") {
    JobEvent& failed = gang_event(at, EventKind::kGangFailed, gang);
    failed.details.insert(failed.details.end(), {{"cause", "rank"}, {"remedy", remedy}, {"number", "1"}, {"of", "4"}});
    bin(gang, struck, TimeBin::kStill);
    bin(gang, at, TimeBin::kDeciding);
  }
  JobEvent& start(std::uint32_t gang, double at) {
    ++generations_[gang];
    JobEvent& started = gang_event(at, EventKind::kGangStarting, gang);
    started.details.emplace_back("hosts", hosts_[gang]);
    if (generations_[gang] > 1) started.details.emplace_back("furthest", "1000000");
    bin(gang, at, TimeBin::kLaunching);
    return started;
  }
  // Its gang fails, is started again, and comes back to where it was.
  void recovers(std::uint32_t gang, double struck, const Recovered& when) {
    fail(gang, struck, when.failed, when.remedy);
    start(gang, when.started);
    gang_event(when.running, EventKind::kGangRunning, gang);
    gang_event(when.running + 0.1, EventKind::kGangReady, gang);
    JobEvent& back = gang_event(when.caught_up + 0.01, EventKind::kGangCaughtUp, gang);
    const auto after = static_cast<std::int64_t>((when.caught_up - when.failed) * 1000 + 0.5);
    back.details.insert(back.details.end(), {{"step", "101"}, {"again", "5"}, {"after_ms", text(after)}});
    bin(gang, when.running, TimeBin::kStarting);
    bin(gang, when.first_step, TimeBin::kRedone);
    bin(gang, when.caught_up, TimeBin::kNew);
  }
  void move(std::uint32_t gang, const std::string& to) { hosts_[gang] = to; }
  void bin(std::uint32_t gang, double from, TimeBin bin) { bins_[gang].push_back({from, bin}); }

  // With what the job's status said four times a second.
  DrillRecord done() {
    for (int i = 0; i <= static_cast<int>(ended_ * 4); ++i) record_.samples.push_back(sample(i * 0.25));
    return record_;
  }

 private:
  DrillSample sample(double second) const {
    DrillSample sample{.at = at_second(second), .meshes = {}, .hosts = {}, .spares = 1};
    DrillSample::Mesh mesh;
    std::vector<double> spent(kTimeBins);
    for (const auto& changes : bins_) {
      double fresh = 0;
      for (std::size_t i = 0; i < changes.size(); ++i) {
        const double from = changes[i].first;
        const double to = i + 1 < changes.size() ? changes[i + 1].first : ended_;
        if (from >= second) break;
        const double seconds = (to < second ? to : second) - from;
        spent[static_cast<std::size_t>(changes[i].second)] += seconds * 2000;  // of two ranks
        if (changes[i].second == TimeBin::kNew) fresh += seconds;
      }
      mesh.steps.push_back(static_cast<std::uint64_t>(fresh * 10));
      mesh.phases.emplace_back("running");
    }
    for (std::size_t b = 0; b < kTimeBins; ++b) {
      mesh.rank_milliseconds.emplace_back(name_of(static_cast<TimeBin>(b)), static_cast<std::int64_t>(spent[b] + 0.5));
    }
    sample.meshes = {std::move(mesh)};
    for (std::size_t h = 0; h <= bins_.size(); ++h) sample.hosts.emplace_back(text("h", h + 1), "ready");
    return sample;
  }

  DrillRecord record_;
  double ended_;
  std::vector<std::string> hosts_;                             // by gang
  std::vector<std::uint64_t> generations_;                     // by gang
  std::vector<std::vector<std::pair<double, TimeBin>>> bins_;  // by gang: since when it is in which
};

// A kill of a rank: seen after 50 ms, started 20 ms later, executed 30 ms after that, where it was after 1.5 s.
inline void add_kill(DrillRun& run, double at, std::uint32_t rank = 1) {
  run.blow("kill", at, run.rank(rank));
  run.recovers(rank / 2, at,
               {.failed = at + 0.05,
                .started = at + 0.07,
                .running = at + 0.1,
                .first_step = at + 1,
                .caught_up = at + 1.5,
                .remedy = "restart"});
}

}  // namespace monarch::drill
