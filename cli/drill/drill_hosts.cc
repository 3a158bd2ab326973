// What a drill has hosts do: be struck, take it back, and say what runs there.

#include <algorithm>
#include <map>
#include <utility>

#include "cli/drill/drill_session.h"
#include "cli/drill/reached_job.h"
#include "supervisor/core/spec/placement.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kStrikePatience = Duration::seconds(5);
constexpr Duration kLookPatience = Duration::seconds(3);
constexpr std::size_t kMostLookedAt = 64;  // hosts, after each blow
constexpr Duration kLooksByThen = Duration::seconds(30);

}  // namespace

Status DrillSession::reach() {
  MONARCH_ASSIGN(ReachedJob reached, reached_job(*job_, spec_));
  drilled_ = std::move(reached.job);
  pool_ = std::move(reached.pool);
  hosts_.clear();
  for (const PoolHost& host : pool_) hosts_.push_back(host.name);
  const ReachSurroundings around{.loop = *loop_,
                                 .spec = spec_,
                                 .hosts = pool_,
                                 .job = drilled_.uuid,
                                 .job_id = job_->id(),
                                 .worker_path = options_.worker,
                                 .seed = options_.plan.seed};
  MONARCH_ASSIGN(reach_, open_reach(around));
  injector_ = std::make_unique<drill::Injector>(*loop_, *reach_, kStrikePatience);
  return {};
}

void DrillSession::strike(const drill::Blow& blow) {
  const std::uint32_t number = blow.number;
  const drill::FaultEntry& entry = record_.scenario.faults[blow.entry];
  const Reached where = blow.target.host.empty() ? std::nullopt : host_of(blow.target.host);
  if (!where && !blow.target.host.empty()) {
    core_.on_struck(number, {.error = text("the job has no host ", blow.target.host, " any more")}, now());
    return;
  }
  in_effect_[number] = injector_->strike(
      where, strike_order(blow, entry, drilled_), blow.lasts,
      [this, number](const drill::Injected& seen) {
        if (!seen.error.empty()) {
          in_effect_.erase(number);
          say(text("fault ", number, " took no effect: ", seen.error));
        }
        core_.on_struck(number,
                        {.error = seen.error,
                         .struck = seen.struck,
                         .struck_at = seen.struck_at,
                         .seen_at = seen.seen_at,
                         .clock_error = seen.clock_error},
                        now());
        act();
      },
      [this, number](const drill::Undone& undone) {
        in_effect_.erase(number);
        if (!undone.error.empty()) say(text("fault ", number, " may be in effect still: ", undone.error));
        core_.on_taken_back(number, undone.error, undone.felt, now());
        act();
      });
}

void DrillSession::take_back(std::uint32_t number) {
  if (const auto found = in_effect_.find(number); found != in_effect_.end()) injector_->undo(found->second);
}

void DrillSession::look_on_hosts(const std::vector<std::string>& hosts, const OnSeen& on_seen,
                                 const std::function<void()>& on_done) {
  if (injector_ == nullptr) return on_done();  // its job has ended, and none goes on from it
  const auto left = std::make_shared<std::size_t>(hosts.size());
  for (const std::string& name : hosts) {
    const auto host = host_of(name);
    if (!host) {
      if (--*left == 0) on_done();
      continue;
    }
    CheckRequest request{.patience = kLookPatience, .rights = true};
    request.worker = WorkerMarks{.job_uuid = drilled_.uuid, .host = name};
    ++awaited_;
    injector_->look(*host, request, [this, on_seen, on_done, left, name](const CheckOutcome& outcome) {
      --awaited_;
      const auto* answer = std::get_if<TimedAnswer>(&outcome);
      if (answer != nullptr && answer->answer.worker) on_seen(name, answer->answer);
      if (--*left == 0) on_done();
    });
  }
  if (hosts.empty()) on_done();
}

// A host that does not answer has nothing to say: it was struck, or is lost. Hosts are looked at one after the other:
// of a gang that was started meanwhile two generations may have been met, and nothing is said.
void DrillSession::look_for_ranks(const std::vector<std::string>& of_blow) {
  struct Look {
    std::map<std::string, std::uint32_t> processes;  // by rank
    std::size_t events = 0;                          // before it
  };
  const auto look = std::make_shared<Look>();
  look->events = record_.events.size();
  const auto on_seen = [look](const std::string&, const CheckAnswer& answer) {
    for (const RankThere& rank : answer.worker->ranks) {
      look->processes[text(rank.mesh, "/", rank.rank)] += rank.processes;
    }
  };
  const auto on_done = [this, look] {
    const auto meanwhile = record_.events.begin() + static_cast<std::ptrdiff_t>(look->events);
    const bool started = std::any_of(meanwhile, record_.events.end(),
                                     [](const JobEvent& event) { return event.kind == EventKind::kGangStarting; });
    drill::IncarnationCheck seen{.at = wall_now(), .host = "", .ranks = 0, .doubled = {}};
    seen.ranks = static_cast<std::uint32_t>(look->processes.size());
    for (const auto& [rank, processes] : look->processes) {
      if (processes > 1) seen.doubled.push_back(rank);
    }
    if (!started) record_.incarnations.push_back(std::move(seen));
    core_.on_looked(now());
    act();
  };
  look_on_hosts(hosts_.size() <= kMostLookedAt ? hosts_ : of_blow, on_seen, on_done);
}

void DrillSession::note_leftovers(const std::string& host, const CheckAnswer& answer) {
  ++record_.hosts_searched;
  const WorkerThere& there = *answer.worker;
  const bool over = record_.verdict.has_value();
  if (over && there.processes > 0) {
    record_.leftovers.push_back({.host = host, .what = text(there.processes, " processes of the job")});
  }
  if (!over && there.stopped > 0) record_.leftovers.push_back({.host = host, .what = "its keeper is stopped yet"});
  if (!answer.rights) return;
  for (const std::string& table : answer.rights->tables) {
    record_.leftovers.push_back({.host = host, .what = text("the table ", printable(table), " of nft")});
  }
}

void DrillSession::look_for_leftovers() {
  awaited_ = 0;
  look_on_hosts(
      hosts_, [this](const std::string& host, const CheckAnswer& answer) { note_leftovers(host, answer); }, [] {});
  const Instant end = boot_now() + kLooksByThen;
  loop_->at(end, [] {});
  while (awaited_ > 0 && boot_now() < end) loop_->run_once();
  if (awaited_ > 0) record_.leftovers.push_back({.host = "", .what = text(awaited_, " hosts that did not answer")});
  if (!record_.verdict) return;
  for (const std::string& host : record_.verdict->left_behind) {
    record_.leftovers.push_back({.host = host, .what = "it is not proven that nothing of the job lives there"});
  }
}

}  // namespace monarch
