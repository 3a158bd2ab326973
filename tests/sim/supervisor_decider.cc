// As supervisor/loop/decider.cc: what the core is fed is journalled, and its actions are let out once the record is
// durable (J1).

#include <optional>
#include <utility>

#include "supervisor/core/state/outward.h"
#include "supervisor/journal/core_records.h"
#include "tests/sim/checker.h"
#include "tests/sim/replay/recorder.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"

namespace monarch::sim {

AppendRecord Supervisor::record(RecordType type, std::string payload) const {
  return {.type = type, .term = term_, .wall = {}, .now = now(), .payload = std::move(payload)};
}

std::uint64_t Supervisor::decide(const CoreEvent& event) {
  if (!alive()) return 0;
  world_.note("decide", event.index());
  if (world_.mutant(Mutant::kStaleSnapshot)) old_state_ = encode_job_state(core_->state());
  std::vector<Action> actions = core_->step(event, now());
  if (world_.mutant(Mutant::kClaimStartsBare)) start_bare(actions);
  AppendRequest request{.ticket = ++last_ticket_, .records = {}};
  request.records.push_back(record(RecordType::kInput, encode_core_event(event)));
  if (world_.recorder != nullptr) world_.recorder->decided(request.records.front().payload, actions, *core_, now());
  for (const Action& action : actions) {
    const auto* emitted = std::get_if<EmitEvent>(&action);
    if (emitted != nullptr) request.records.push_back(record(RecordType::kEvent, encode_job_event(emitted->event)));
  }
  const std::uint64_t ticket = request.ticket;
  world_.checker->decided(term_, ticket, event, actions, *core_);
  world_.coverage.decided(event, actions);
  if (world_.mutant(Mutant::kActBeforeDurable)) {
    for (const Action& action : actions) perform(action);
    actions.clear();
  }
  if (world_.mutant(Mutant::kCommitBeforeDurable)) {
    for (const Action& action : actions) {
      if (std::holds_alternative<SendCommitAnswer>(action)) perform(action);
    }
  }
  if (world_.mutant(Mutant::kVerdictBeforeDurable) && core_->state().phase == JobPhase::kEnded) {
    world_.checker->verdict(*core_->state().verdict, *core_);
  }
  const std::optional<Action> finish = take_finish(actions);
  request.patient = !finish && lets_nothing_out(actions);
  waiting_.push_back({.ticket = ticket, .actions = std::move(actions), .then = {}});
  journal_->submit(std::move(request), std::make_shared<const JobState>(core_->state()));
  Instant due = core_->next_deadline();
  if (world_.mutant(Mutant::kSleepPastDue) && due <= now()) due = Instant::never();
  deadline_.set(due);
  world_.checker->sleeps_until(due, *core_);
  if (finish) perform(*finish);
  if (roster_ && alive()) roster_->changed();
  if (claims_ && alive()) claims_->changed();
  return ticket;
}

std::uint64_t Supervisor::append(RecordType type, std::string payload, std::function<void()> then) {
  AppendRequest request{.ticket = ++last_ticket_, .records = {}};
  request.records.push_back(record(type, std::move(payload)));
  waiting_.push_back({.ticket = request.ticket, .actions = {}, .then = std::move(then)});
  journal_->submit(std::move(request));
  return last_ticket_;
}

void Supervisor::on_journal(const JournalReport& report) {
  if (const auto* durable = std::get_if<RecordsDurable>(&report)) {
    answered(durable->ticket);
    if (!durable->snapshot_due || !alive()) return;
    std::string state = encode_job_state(core_->state());
    if (world_.mutant(Mutant::kStaleSnapshot)) state = old_state_;
    journal_->submit(
        SnapshotRequest{.ticket = ++last_ticket_, .state = state, .stamp = record(RecordType::kInput, {})});
    waiting_.push_back({.ticket = last_ticket_, .actions = {}, .then = {}});
  } else if (const auto* written = std::get_if<FileWritten>(&report)) {
    answered(written->ticket);
  } else if (const auto* taken = std::get_if<SnapshotTaken>(&report)) {
    answered(taken->ticket);
  } else if (std::holds_alternative<JournalFailed>(report)) {
    leave(74);
  }
}

void Supervisor::answered(std::uint64_t ticket) {
  durable_ticket_ = std::max(durable_ticket_, ticket);
  world_.checker->durable({term_, durable_ticket_});
  release();
}

void Supervisor::release() {
  if (releasing_) return;
  releasing_ = true;
  while (alive() && !waiting_.empty() && waiting_.front().ticket <= durable_ticket_) {
    const Waiting ready = std::move(waiting_.front());
    waiting_.pop_front();
    for (const Action& action : ready.actions) perform(action);
    if (ready.then && alive()) ready.then();
  }
  releasing_ = false;
}

}  // namespace monarch::sim
