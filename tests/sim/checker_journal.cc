// The checker's account of the journal: what was decided, what is durable, and what may therefore be said (I5, I6, J1).

#include <algorithm>

#include "supervisor/journal/core_records.h"
#include "supervisor/journal/journal_reader.h"
#include "tests/sim/checker.h"
#include "tests/sim/journal.h"
#include "tests/sim/replay/recording.h"
#include "tests/sim/world.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

enum CommandKind : int { kReserve, kStart, kStop, kShutdown, kLaunch, kDestroy };

}  // namespace

void Checker::recovered(const JournalContents& contents, const Status& replayed, const JobCore& core, Term term) {
  for (HostAccount& host : hosts_) host.unread = 0;
  supervisor_goes_on();
  check(replayed.ok(), "I6", replayed.ok() ? "" : replayed.error().message);
  check(term > highest_term_, "I4", text("term ", term.value(), " comes after term ", highest_term_.value()));
  highest_term_ = term;
  durable_.recovered(contents.last_lsn);
  commits_.recovered();
  claims_.recovered(core);
  times_.forget();
  heard_.begun();
  commits_.after_event(core.state());
  auto& states = world_.disk->state_after;
  states.erase(states.upper_bound(contents.last_lsn), states.end());
  if (states.empty()) return;
  check(encode_job_state(core.state()) == encode_job_state(*states.rbegin()->second), "I6",
        text("the journal up to LSN ", contents.last_lsn, " replays to another state than its core had"));
}

// I6 once more, of the journal as the last supervisor left it.
void Checker::check_journal() {
  const auto contents = read_journal(world_.disk->files());
  check(contents.ok() && contents->usable(), "I6", "the journal cannot be read after the end");
  if (contents->records.empty() && !contents->snapshot) return;
  JobCore core(core_spec(world_.scenario.spec, world_.scenario.mutant), pool_of(world_.scenario.spec), core_options());
  const Status replayed = replay(*contents, core);
  recovered(*contents, replayed, core, Term(highest_term_.value() + 1));
}

void Checker::recovery_failed(const Error& error) {
  check(error.code == ErrorCode::kBusy, "J1", text("the journal cannot be recovered: ", error.message));
}

std::optional<Checker::Command> Checker::command_of(const JobCore& core, const Action& action) const {
  if (const auto* a = std::get_if<SendReserve>(&action)) {
    return Command{kReserve, a->message.mesh.value(), a->message.gang.value(), a->message.generation.counter};
  }
  if (const auto* a = std::get_if<SendStart>(&action)) {
    return Command{kStart, a->message.mesh.value(), a->message.gang.value(), a->message.generation.counter};
  }
  if (const auto* a = std::get_if<SendStop>(&action)) {
    if (a->message.ranks.empty()) return std::nullopt;
    const RankId rank = a->message.ranks.front();
    const bool of_spec = core.facts().has_rank(rank);
    const GangId gang = of_spec ? core.spec().meshes[rank.mesh.value()].gang_of(rank.rank) : GangId(rank.rank.value());
    return Command{kStop, rank.mesh.value(), gang.value(), a->message.generation.counter};
  }
  if (const auto* a = std::get_if<SendShutdown>(&action)) return Command{kShutdown, a->host.value(), 0, 0};
  if (const auto* a = std::get_if<LaunchWorker>(&action)) return Command{kLaunch, a->host.value(), 0, 0};
  if (const auto* a = std::get_if<DestroyWorker>(&action)) return Command{kDestroy, a->host.value(), 0, 0};
  return std::nullopt;
}

void Checker::decided(Term term, std::uint64_t ticket, const CoreEvent& event, const std::vector<Action>& actions,
                      const JobCore& core) {
  const Ticket here{term, ticket};
  records_.decided(term, event, now());
  heard_.decided(event);
  for (const Action& action : actions) {
    if (const auto command = command_of(core, action)) commands_.try_emplace(*command, here);
    if (std::holds_alternative<FinishJob>(action)) finished_ = here;
    if (const auto* start = std::get_if<SendStart>(&action)) {
      for (const RankStart& rank : start->message.ranks) started_[{rank.rank, start->message.generation}] = start->host;
    }
  }
  for (const Action& action : actions) check_pause(action);
  learn_of_hosts(here, event, actions, core);
  learn_of_done_slots(core);
  foreseen_ = foreseen_ || std::holds_alternative<EndForeseen>(event);
  learn_causes(event);
  learn_of_parked(core);
  if (std::holds_alternative<DeadlinePassed>(event)) learn_of_hangs(core);
  if (const auto* hung = std::get_if<RankHung>(&event)) learn_of_verdict(*hung, core);
  if (core.state().verdict && core.state().verdict->reason != decided_) {
    decided_ = core.state().verdict->reason;
    check_decision(*core.state().verdict, core);
  }
  claims_.decided(here, event, core);
  learn_of_standby(here, actions, core);
  check_starts(here, actions, core);
  for (const Action& action : actions) {
    const auto* start = std::get_if<SendStart>(&action);
    if (start == nullptr) continue;
    commits_.resumes(here, start->message);
    claims_.starts(*start, core);
  }
  if (const auto* committed = std::get_if<CheckpointCommitted>(&event)) {
    commits_.journalled(here, committed->process, committed->commit);
  }
  commits_.after_event(core.state());
  if (std::holds_alternative<SupervisorReturned>(event)) times_.forget();
  times_.after_event(core.state());
  drills_.decided(event, actions, core);
  const auto* change = std::get_if<RankChanged>(&event);
  if (change != nullptr && change->report.phase == RankPhase::kEnded) {
    // Said again after a late beat that still knew it alive: what was durable stays so.
    Ticket& recorded = recorded_ends_[change->report.process];
    if (!is_durable(recorded)) recorded = here;
    for (const RankProcess* process : processes_[change->report.process.rank]) {
      if (process->key.generation != change->report.process.generation) continue;
      check(!process->alive() && process->children == 0, "I21",
            "a rank is said to have ended and something of it lives");
    }
  }
}

// Where all that happens is that everything stands still together, nobody is blamed, and whatever ran goes on in its
// generation.
void Checker::check_pause(const Action& action) const {
  if (world_.scenario.theme != Theme::kPauses || stop_requested_) return;
  const auto* told = std::get_if<EmitEvent>(&action);
  if (told == nullptr) return;
  const EventKind kind = told->event.kind;
  check(kind != EventKind::kGangFailed && kind != EventKind::kHostLost && kind != EventKind::kJobStopping, "pause",
        text(name_of(kind), ", though all has stood still together: ", told->event.message));
}

// After a step nothing that is due waits for an event that may never come.
void Checker::sleeps_until(Instant due, const JobCore& core) {
  const Instant here = world_.supervisor_clock.local(now());
  if (due <= here) return;
  // What it had before is written over: nearly all of it is as it was.
  woken_ ? void(*woken_ = core) : void(woken_.emplace(core));
  for (const Action& action : woken_->step(DeadlinePassed{}, here)) {
    const auto* told = std::get_if<EmitEvent>(&action);
    violated("due",
             text("nobody is woken before ", due == Instant::never() ? "an event" : to_text(due - here),
                  ", and action ", action.index(), " is due", told == nullptr ? "" : ": " + told->event.message));
  }
}

void Checker::performs(const JobCore& core, const Action& action) {
  on_the_wire(core, action);
  check_order_of_stop(core, action);
  if (const auto* start = std::get_if<SendStart>(&action)) check_ports(*start);
  const auto* destroy = std::get_if<DestroyWorker>(&action);
  if (destroy == nullptr) return;
  world_.note("destroy", destroy->host.value());
  // A spare that has not called back by the end of a short job is destroyed, too.
  check(world_.scenario.faults.any || !account(destroy->host).joined, "I11",
        text("host ", destroy->host.value(), " is destroyed and nothing is wrong"));
}

void Checker::resends(const JobCore& core, const Action& action) { on_the_wire(core, action); }

void Checker::on_the_wire(const JobCore& core, const Action& action) {
  if (const auto* start = std::get_if<SendStart>(&action)) {
    commits_.resumes_on_the_wire(start->message);
    claims_.starts_on_the_wire(*start);
  }
  const auto command = command_of(core, action);
  if (!command) return;
  auto decision = commands_.find(*command);
  // A host that is heard of again while it is destroyed is told so itself: that is the same decision.
  if (decision == commands_.end() && std::get<0>(*command) == kShutdown) {
    decision = commands_.find(Command{kDestroy, std::get<1>(*command), 0, 0});
  }
  if (decision == commands_.end()) {
    // Only a kill of what nobody wants needs no decision.
    check(std::get<0>(*command) == kStop, "I5", "a command that was never decided");
    return;
  }
  // A decision of an earlier term is in the journal that this one was recovered from.
  const bool earlier = decision->second.first < highest_term_;
  check(earlier || is_durable(decision->second), "I5",
        text("a command of kind ", std::get<0>(*command), " leaves before its record is durable"));
}

}  // namespace monarch::sim
