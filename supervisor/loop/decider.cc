#include "supervisor/loop/decider.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "supervisor/core/state/outward.h"
#include "supervisor/journal/core_records.h"
#include "transport/base/clock.h"
#include "transport/base/log.h"

namespace monarch {

namespace {

constexpr Duration kRetryEvery = Duration::seconds(1);
constexpr std::size_t kActionsATurn = 64;

}  // namespace

Decider::Decider(EventLoop& loop, JobCore& core, JournalThread& journal, Term term, Perform perform, Due due)
    : loop_(loop), core_(core), journal_(journal), term_(term), perform_(std::move(perform)), due_(std::move(due)) {
  set_deadline();
  look_at_stall();
}

Decider::~Decider() {
  loop_.cancel(stall_timer_);
  loop_.cancel(deadline_timer_);
  loop_.cancel(retry_timer_);
  loop_.cancel(release_timer_);
}

AppendRecord Decider::record(RecordType type, std::string payload) const {
  return {.type = type, .term = term_, .wall = wall_now(), .now = loop_.now(), .payload = std::move(payload)};
}

void Decider::look_at_stall() {
  note_stall();
  stall_timer_ = loop_.at(loop_.now() + OwnStall::kTurn, [this] { look_at_stall(); });
}

void Decider::note_stall() {
  const auto gap = stall_.turn(loop_.now());
  const JobPhase phase = core_.state().phase;
  if (gap && phase != JobPhase::kNew && phase != JobPhase::kEnded) (void)decide(StoodStill{*gap});
}

std::uint64_t Decider::decide(const CoreEvent& event) {
  if (abandoned_) return ++last_ticket_;  // never durable
  note_stall();
  std::vector<Action> actions = core_.step(event, loop_.now());
  const std::optional<Action> finish = take_finish(actions);
  AppendRequest request{.ticket = ++last_ticket_, .records = {}, .beside = std::exchange(beside_, {})};
  request.patient = !finish && request.beside.empty() && lets_nothing_out(actions);
  request.records.push_back(record(RecordType::kInput, encode_core_event(event)));
  for (Action& action : actions) {
    auto* emitted = std::get_if<EmitEvent>(&action);
    if (emitted == nullptr) continue;
    emitted->event.time = request.records.front().wall;
    request.records.push_back(record(RecordType::kEvent, encode_job_event(emitted->event)));
  }
  Waiting waiting{.ticket = request.ticket, .record = true, .actions = {}, .then = {}};
  std::move(actions.begin(), actions.end(), std::back_inserter(waiting.actions));
  waiting_.push_back(std::move(waiting));
  const std::uint64_t ticket = request.ticket;
  if (request.patient) patient_ticket_ = ticket;
  submit(std::move(request));
  set_deadline();
  if (finish) perform_(*finish);
  return ticket;
}

std::uint64_t Decider::append(RecordType type, std::string payload, std::function<void()> when_durable) {
  if (abandoned_) return ++last_ticket_;
  AppendRequest request{.ticket = ++last_ticket_, .records = {}};
  request.records.push_back(record(type, std::move(payload)));
  waiting_.push_back({.ticket = request.ticket, .record = true, .actions = {}, .then = std::move(when_durable)});
  submit(std::move(request));
  return last_ticket_;
}

std::uint64_t Decider::write_file(WriteFileRequest request, std::function<void()> when_written) {
  request.ticket = ++last_ticket_;
  if (abandoned_) return last_ticket_;
  waiting_.push_back({.ticket = request.ticket, .record = false, .actions = {}, .then = std::move(when_written)});
  submit(std::move(request));
  return last_ticket_;
}

void Decider::when_durable(std::function<void()> then) {
  if (abandoned_) return;
  // Now somebody waits for it.
  if (patient_ticket_ == last_ticket_ && durable_ticket_ < last_ticket_) {
    submit(AppendRequest{.ticket = ++last_ticket_, .records = {}});
  }
  waiting_.push_back({.ticket = last_ticket_, .record = false, .actions = {}, .then = std::move(then)});
  release();
}

// Requests keep their order: once one has to wait, all later ones do.
void Decider::submit(JournalRequest request) {
  if (unsubmitted_.empty() && journal_.submit(request)) return;
  if (unsubmitted_.empty()) log_warn("the journal does not keep up: decisions wait for it");
  unsubmitted_.push_back(std::move(request));
  if (retry_timer_ == 0) retry_timer_ = loop_.at(loop_.now() + kRetryEvery, [this] { retry(); });
}

void Decider::retry() {
  retry_timer_ = 0;
  while (!unsubmitted_.empty() && journal_.submit(unsubmitted_.front())) unsubmitted_.pop_front();
  if (!unsubmitted_.empty()) retry_timer_ = loop_.at(loop_.now() + kRetryEvery, [this] { retry(); });
}

void Decider::on_durable(const RecordsDurable& report) {
  on_answered(report.ticket);
  // Every record of one flush says that a snapshot is due; one is enough.
  if (!report.snapshot_due || abandoned_ || durable_ticket_ < snapshot_ticket_) return;
  snapshot_ticket_ = ++last_ticket_;
  waiting_.push_back({.ticket = snapshot_ticket_, .record = false, .actions = {}, .then = {}});
  submit(SnapshotRequest{
      .ticket = snapshot_ticket_, .state = encode_job_state(core_.state()), .stamp = record(RecordType::kInput, {})});
}

bool Decider::on_refused(std::uint64_t ticket) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(),
                                  [ticket](const Waiting& waiting) { return waiting.ticket == ticket; });
  if (found == waiting_.end()) return true;
  if (found->record) {
    abandon();
    return false;
  }
  on_answered(ticket);
  return true;
}

void Decider::abandon() {
  abandoned_ = true;
  waiting_.clear();
  ready_ = {};
  unsubmitted_.clear();
  loop_.cancel(deadline_timer_);
  loop_.cancel(retry_timer_);
  loop_.cancel(std::exchange(release_timer_, 0));
}

void Decider::on_answered(std::uint64_t ticket) {
  durable_ticket_ = std::max(durable_ticket_, ticket);
  release();
}

// An action may decide again, which adds to the end of the queue; the order stays. What a decision orders of a thousand
// hosts is done in turns, between which the loop hears.
void Decider::release() {
  if (releasing_) return;
  releasing_ = true;
  for (std::size_t done = 0; done < kActionsATurn && next_ready(); ++done) {
    if (ready_.actions.empty()) {
      if (const auto then = std::exchange(ready_.then, nullptr)) then();
      continue;
    }
    const Action action = std::move(ready_.actions.front());
    ready_.actions.pop_front();
    perform_(action);
    loop_.step();
  }
  releasing_ = false;
  loop_.cancel(std::exchange(release_timer_, 0));
  if (next_ready()) release_timer_ = loop_.at(loop_.now(), [this] { release(); });
}

// False: nothing is durable that is not done.
bool Decider::next_ready() {
  while (ready_.actions.empty() && !ready_.then) {
    if (waiting_.empty() || waiting_.front().ticket > durable_ticket_) return false;
    ready_ = std::move(waiting_.front());
    waiting_.pop_front();
  }
  return true;
}

void Decider::set_deadline() {
  loop_.cancel(deadline_timer_);
  if (abandoned_) return;
  const Instant due = core_.next_deadline();
  if (due == Instant::never()) return;
  deadline_timer_ = loop_.at(due, [this] { due_(); });
}

}  // namespace monarch
