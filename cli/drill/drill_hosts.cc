// What a drill has hosts do: be struck, take it back, and say what runs there.

#include <poll.h>

#include <algorithm>
#include <map>
#include <utility>

#include "cli/drill/drill_session.h"
#include "supervisor/client/new_job.h"
#include "supervisor/client/remove_job.h"
#include "supervisor/core/spec/placement.h"
#include "supervisor/loop/startup.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kUuidWithin = Duration::seconds(10);
constexpr Duration kStrikePatience = Duration::seconds(5);
constexpr Duration kLookPatience = Duration::seconds(10);
constexpr Duration kLooksByThen = Duration::seconds(30);

}  // namespace

Status DrillSession::reach() {
  MONARCH_ASSIGN(const StateDir state, open_state());
  // A supervisor that has just said that it is ready may be about to write it.
  auto uuid = uuid_of_job(state, job_->id());
  for (const Instant end = boot_now() + kUuidWithin; !uuid && boot_now() < end; uuid = uuid_of_job(state, job_->id())) {
    (void)::poll(nullptr, 0, 20);
  }
  if (!uuid) return Error{ErrorCode::kNotFound, text("the journal of ", job_->id(), " does not say its uuid")};
  drilled_ = {.uuid = *uuid, .ports = {}, .directory = {}};
  drilled_.directory = job_->path();
  const KnownPorts ports = known_ports(job_->directory().directory);
  for (const std::uint16_t port : {ports.control, ports.bulk}) {
    if (port != 0) drilled_.ports.push_back(port);
  }
  pool_ = pool_of(spec_);
  // Hosts on request are called what they are by now.
  if (const auto status = job_->status(spec_); status.ok()) {
    for (std::size_t i = 0; i < pool_.size() && i < status->hosts.size(); ++i) pool_[i].name = status->hosts[i].name;
  }
  hosts_.clear();
  for (const PoolHost& host : pool_) hosts_.push_back(host.name);
  const ReachSurroundings around{.loop = *loop_,
                                 .spec = spec_,
                                 .hosts = pool_,
                                 .job = *uuid,
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

void DrillSession::look_on_hosts(const std::function<void(const std::string& host, const CheckAnswer&)>& on_seen) {
  for (std::uint32_t i = 0; i < hosts_.size(); ++i) {
    CheckRequest request{.patience = kLookPatience, .rights = true};
    request.worker = WorkerMarks{.job_uuid = drilled_.uuid, .host = hosts_[i]};
    ++awaited_;
    injector_->look(HostId(i), request, [this, on_seen, name = hosts_[i]](const CheckOutcome& outcome) {
      --awaited_;
      const auto* answer = std::get_if<TimedAnswer>(&outcome);
      if (answer != nullptr && answer->answer.worker) on_seen(name, answer->answer);
    });
  }
}

// A host that does not answer has nothing to say: it was struck, or is lost.
void DrillSession::look_for_ranks() {
  const auto check = std::make_shared<std::map<std::string, std::uint32_t>>();
  const std::size_t at = record_.incarnations.size();
  record_.incarnations.push_back({.at = wall_now(), .host = "", .ranks = 0, .doubled = {}});
  look_on_hosts([this, check, at](const std::string&, const CheckAnswer& answer) {
    drill::IncarnationCheck& seen = record_.incarnations[at];
    for (const RankThere& rank : answer.worker->ranks) {
      const std::string name = text(rank.mesh, "/", rank.rank);
      const std::uint32_t before = (*check)[name];
      const std::uint32_t now_there = (*check)[name] += rank.processes;
      if (before == 0) ++seen.ranks;
      if (before < 2 && now_there >= 2) seen.doubled.push_back(name);
    }
  });
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
  look_on_hosts([this](const std::string& host, const CheckAnswer& answer) { note_leftovers(host, answer); });
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
