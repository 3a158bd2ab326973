#include "supervisor/loop/viewers.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "supervisor/core/job/drill_notice.h"
#include "supervisor/core/job/operator_request.h"
#include "supervisor/core/job/status.h"
#include "supervisor/journal/core_records.h"
#include "supervisor/journal/job_lock.h"
#include "supervisor/journal/runtime_dir.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/loop/signals.h"
#include "transport/wire/codec.h"

namespace monarch {

namespace {

// Of a request, each once: all where none is named.
Result<std::vector<RankId>> meant(const JobSpec& spec, std::vector<RankId> ranks) {
  for (const RankId& rank : ranks) {
    const bool known =
        rank.mesh.value() < spec.meshes.size() && rank.rank.value() < spec.meshes[rank.mesh.value()].size();
    if (!known) return Error{ErrorCode::kInvalid, "no such rank"};
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (!ranks.empty()) return ranks;
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    for (std::uint32_t r = 0; r < spec.meshes[m].size(); ++r) ranks.push_back({MeshId(m), Rank(r)});
  }
  return ranks;
}

}  // namespace

Viewers::Viewers(Shared& shared, Workers& workers, Hosts& hosts) : shared_(shared), workers_(workers), hosts_(hosts) {
  const Duration limit = shared_.spec().lifetime.idle;
  // By the journal: who would be told is not attached, or it would not be idle.
  const auto warn = [this](Duration left) { (void)shared_.decide(IdleNoted{.left = left}); };
  const auto stop = [this, limit] {
    StopRequest request;
    request.exit_code = kExitLost;
    request.who = text("lifetime.idle (", to_text(limit), "): no viewer, no request and no output of a rank");
    (void)shared_.decide(StopOrdered{.request = std::move(request)});
  };
  idle_ = std::make_unique<IdleTimer>(*shared_.loop, limit, IdleTimer::Handlers{.on_warning = warn, .on_idle = stop});
}

Status Viewers::open() {
  MONARCH_ASSIGN(const std::string path, socket_path(*shared_.runtime, shared_.files.job_id + ".sock"));
  MONARCH_ASSIGN(server_, ControlServer::create(*shared_.loop, path, shared_.job, handlers()));
  const Endpoint endpoint{.host = this_process_as_holder(wall_now()).host,
                          .pid = static_cast<std::int32_t>(::getpid()),
                          .term = shared_.term(),
                          .socket = path,
                          .viewers = open_port(path)};
  return shared_.files.directory.write_file(kEndpointFile, write_endpoint(endpoint),
                                            Durability::kLater);  // each supervisor's own
}

ControlHandlers Viewers::handlers() {
  return {.status = [this] { return status(); },
          .stop = [this](const StopRequest& request) { (void)shared_.decide(StopOrdered{.request = request}); },
          .signal = [this](const SignalRequest& request,
                           const ControlHandlers::Answer& answer) { signal_ranks(request, answer); },
          .hold = [this](const HoldRequest& request,
                         const ControlHandlers::Answer& answer) { answer_durably(hold_ranks(request), answer); },
          .stacks = [this](const StacksRequest& request,
                           const StackDumps::Answer& answer) { return workers_.stacks().ask_all(request, answer); },
          .operate = [this](const OperatorRequest& request,
                            const ControlHandlers::Answer& answer) { answer_durably(operate(request), answer); },
          .drill = [this](const DrillNotice& notice,
                          const ControlHandlers::Answer& answer) { answer_durably(note_drill(notice), answer); },
          .input =
              [this](std::uint64_t viewer, InputRequest request, const ControlHandlers::Answer& answer) {
                workers_.input().give(viewer, std::move(request), answer);
              },
          .door = [this](std::uint64_t viewer,
                         std::function<void()> then) { return workers_.when_served(viewer, std::move(then)); },
          .left = [this](std::uint64_t viewer) { workers_.viewer_left(viewer); },
          .output_viewer =
              [this](UniqueFd socket) {
                const Status added = workers_.relay().add_viewer(std::move(socket));
                if (!added.ok()) log_warn("a viewer of output: ", added.error().message);
              },
          .launcher = [this](UniqueFd socket) { return hosts_.launcher().take(std::move(socket)); },
          .on_use =
              [this](std::size_t attached) {
                idle_->used();
                idle_->viewers(attached);
              }};
}

// A convenience: the job does not wait for it, and does not fail for it.
std::optional<ViewerDoorAddress> Viewers::open_port(const std::string& socket) {
  if (!shared_.spec().launch.facts().is_visited) return std::nullopt;
  const ServerOptions ports = workers_.port_options(0);
  auto port = ViewerPort::start({.address = ports.address, .ports = ports.ports, .socket = socket});
  if (!port.ok()) {
    log_warn("viewers on other machines cannot come: ", port.error().message);
    return std::nullopt;
  }
  port_ = std::move(*port);
  port_door_ = port_->take_door();
  return port_->take_address();
}

// Of a limit that is the user's own.
void Viewers::watch_descriptors() {
  const auto scarce = [this](const DescriptorUse& use) {
    shared_.announce(
        EventKind::kDescriptorsScarce, Severity::kWarning,
        text("the supervisor has ", use.left(), " descriptors left of ", use.limit,
             " (ulimit -Hn): its ports take no new connection until there are more; who is connected stays"));
  };
  const auto enough = [this](const DescriptorUse& use) {
    shared_.announce(
        EventKind::kDescriptorsEnough, Severity::kInfo,
        text("the supervisor has ", use.left(), " of ", use.limit, " descriptors: its ports take connections again"));
  };
  std::vector<ListenerDoor> doors = workers_.take_doors();
  if (port_door_) doors.push_back(std::move(*port_door_));
  descriptors_ = std::make_unique<DescriptorWatch>(*shared_.loop, std::move(doors),
                                                   DescriptorWatch::Handlers{.on_scarce = scarce, .on_enough = enough});
  server_->on_no_descriptor([this] { return descriptors_->make_room(); });
}

void Viewers::watch_tie() {
  if (shared_.options.tied_fd < 0) return;
  auto tie = Tie::create(*shared_.loop, UniqueFd(shared_.options.tied_fd), [this] {
    (void)shared_.decide(StopOrdered{.request = {.how = StopHow::kOver, .who = "its program ended"}});
  });
  if (!tie.ok()) return log_error("the end of the program that the job is for cannot be told: ", tie.error().message);
  tie_ = std::move(*tie);
}

void Viewers::remember_history() {
  for (const auto* records : {&shared_.files.journal.contents.history, &shared_.files.journal.contents.records}) {
    for (const Record& record : *records) {
      if (record.type != RecordType::kEvent) continue;
      if (auto event = decode_job_event(record.payload); event.ok()) server_->remember(std::move(*event));
    }
  }
}

JobStatus Viewers::status() const {
  JobStatus status = status_of(shared_.core, shared_.files.job_id, shared_.loop->now());
  status.supervisor_pid = static_cast<std::int32_t>(::getpid());
  status.started = shared_.started;
  workers_.add_to(status);
  status.counters.emplace_back("supervisor.turned_away", descriptors_->turned_away());
  status.counters.emplace_back("viewers.refused", server_->refused_peers());
  return status;
}

Result<std::string> Viewers::operate(const OperatorRequest& request) {
  MONARCH_ASSIGN(OperatorPlan plan, operator_plan(shared_.core, request, shared_.loop->now()));
  (void)shared_.decide(plan.event);
  return std::move(plan.words);
}

Result<std::string> Viewers::note_drill(const DrillNotice& notice) {
  MONARCH_ASSIGN(DrillPlan plan, drill_plan(shared_.core, notice, shared_.loop->now()));
  (void)shared_.decide(plan.event);
  return std::move(plan.words);
}

// What is answered is not forgotten by the next supervisor.
void Viewers::answer_durably(Result<std::string> words, const ControlHandlers::Answer& answer) {
  if (!words.ok()) return answer(std::move(words));
  shared_.when_durable([words = std::move(words), answer] { answer(words); });
}

void Viewers::signal_ranks(const SignalRequest& request, const ControlHandlers::Answer& answer) {
  if (request.number <= 0 || request.number >= NSIG) {
    return answer(Error{ErrorCode::kInvalid, text("no signal has the number ", request.number)});
  }
  Result<std::vector<RankId>> selected = meant(shared_.spec(), request.ranks);
  if (!selected.ok()) return answer(selected.error());
  std::vector<RankId> ranks = std::move(*selected);
  // One that is starting may run already, and its host's word of that be on its way: the keeper knows, and passes the
  // signal on if it does. Whether a rank stands still by somebody's order is to be known for sure.
  std::erase_if(ranks, [&](const RankId& rank) {
    const RankStage stage = shared_.core.facts().member(rank).stage;
    return !lives(stage) || (stage == RankStage::kStarting && HangWatch::concerns(request.number));
  });
  const std::string name = signal_name(request.number);
  if (ranks.empty()) {
    return answer(Error{ErrorCode::kNotFound, text("no rank that is meant is running, so ", name, " went to none")});
  }
  const auto send = [this, ranks, number = request.number, to = request.to, name, answer] {
    const std::size_t reached = workers_.links().signal(ranks, number, to);
    const std::string_view noun = ranks.size() == 1 ? " rank" : " ranks";
    if (reached == ranks.size()) return answer(text(name, " was sent to ", reached, noun));
    answer(text(name, " was sent to ", reached, " of ", ranks.size(), noun,
                ": the hosts of the others are not connected"));
  };
  if (!HangWatch::concerns(request.number)) return send();
  workers_.hangs().signalled(ranks,
                             request.number);  // before one could be seen to stand still, also by the next supervisor
  shared_.when_durable(send);
}

Result<std::string> Viewers::hold_ranks(HoldRequest request) {
  MONARCH_ASSIGN(request.ranks, meant(shared_.spec(), std::move(request.ranks)));
  return workers_.hangs().hold(request);
}

}  // namespace monarch
