// As supervisor/workers/worker_links.cc: links are bound, what comes over them goes to the BeatBook, and answers and
// commands go out.

#include <utility>

#include "tests/sim/checker.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

std::string user_id_of(HostId host) { return text("worker/", host.value()); }

}  // namespace

// No two supervisors of this simulation live at a time: what is in hand never says that another one came after this.
void Supervisor::open_book() {
  BeatBookHandlers handlers;
  handlers.decide = [this](const CoreEvent& event) { return heard(event); };
  handlers.is_durable = [this](std::uint64_t ticket) { return durable_ticket_ >= ticket; };
  handlers.all_durable = [this] {
    return durable_ticket_ == last_ticket_ || world_.mutant(Mutant::kResendBeforeDurable);
  };
  handlers.on_health = [this](const HostVerdict& verdict) {
    if (verdict.health == HostHealth::kFresh) return;
    world_.note(verdict.health == HostHealth::kSilent ? "silent" : "suspect", verdict.host.value());
    world_.checker->judges(verdict);
  };
  if (world_.posts != nullptr) {
    handlers.on_host = [this](HostId host, const Beat& beat) { hear_post(host, beat); };
  }
  if (world_.scenario.remote) handlers.on_written = [this](const RankReport& report) { copy(report); };
  handlers.on_commit = [this](HostId host, const RankReport& report) { hear_commit(host, report); };
  handlers.on_report = [this](HostId host, const RankReport& report, Instant sent_at) {
    if (!world_.mutant(Mutant::kNeverHung)) hangs_->on_report(host, report, sent_at, now());
  };
  handlers.on_claim = [this](HostId host, Term) { world_.note("claims a later term", host.value()); };
  handlers.on_superseded = [this](Term) {
    world_.checker->gives_way(jury(core_->state()));
    leave(75);
  };
  book_.emplace(*core_, term_, std::move(handlers));
}

void Supervisor::on_message(const Up& message) {
  if (!open()) return;
  world_.checker->reads(message);
  const HostId host = message.host;
  if (message.term > term_) return on_later_term(host, message.term);
  switch (table_.bind(LinkId(message.link), user_id_of(host), user_id_of(host))) {
    case LinkTable::Bound::kNew:
    case LinkTable::Bound::kMoved: book_->on_link(host); break;
    case LinkTable::Bound::kSame: break;
    case LinkTable::Bound::kStale:
    case LinkTable::Bound::kForged: return;
  }
  if (const auto* hello = std::get_if<Hello>(&message.message)) {
    if (!book_->is_known(host, *hello)) return;
    book_->on_hello(host, *hello, false, now());
    watch_health();
  } else if (const auto* beat = std::get_if<Beat>(&message.message)) {
    on_beat(host, *beat);
  } else if (const auto* gone = std::get_if<KeeperGone>(&message.message)) {
    if (book_->is_known(host, gone->incarnation)) book_->on_keeper_gone(host);
  } else {
    book_->on_reserved(host, std::get<Reserved>(message.message));
  }
}

// What the book makes of a beat, or of silence.
std::uint64_t Supervisor::heard(CoreEvent event) {
  if (const auto* change = std::get_if<RankChanged>(&event)) {
    const RankReport& report = change->report;
    world_.note("rank changed", change->host.value(), report.process.rank.mesh.value(),
                report.process.rank.rank.value(),
                static_cast<std::uint64_t>(report.phase) * 10 + static_cast<std::uint64_t>(report.end.kind));
    world_.checker->believes(heard_.beat ? heard_.host : change->host, said_of(report));
    if (heard_.beat == nullptr) world_.coverage.copied_late();
  }
  if (std::holds_alternative<HostDistrusted>(event)) {
    world_.note("distrusted", std::get<HostDistrusted>(event).host.value());
  }
  return plant(event) ? decide(event) : 0;
}

void Supervisor::on_beat(HostId host, const Beat& beat) {
  world_.checker->counts(host, beat);
  heard_ = {.host = host, .beat = &beat};
  const Beat as_read = planted(host, beat);
  heard_.as_read = &as_read;
  BeatBook::Answer answer = book_->on_beat(host, as_read, now());
  plant(host, beat, answer);
  heard_ = {};
  if (!alive()) return;
  world_.checker->acks(host, answer.ack, *core_);
  send(host, answer.ack);
  for (const Action& action : answer.again) {
    world_.checker->resends(*core_, action);
    if (const auto* reserve = std::get_if<SendReserve>(&action)) send(host, reserve->message);
    if (const auto* start = std::get_if<SendStart>(&action)) send(host, start->message);
    if (const auto* stop = std::get_if<SendStop>(&action)) send(host, stop->message);
    if (const auto* shutdown = std::get_if<SendShutdown>(&action)) send(host, shutdown->message);
  }
}

template <class Message>
void Supervisor::send(HostId host, const Message& message) {
  const std::string user_id = user_id_of(host);
  const std::optional<LinkId> link = table_.link_of(user_id);
  if (!link) return;
  if (world_.network->send_down(host, link->value(), Down{.term = term_, .message = message})) return;
  table_.forget(user_id, *link);
}

template void Supervisor::send(HostId host, const Reserve& message);
template void Supervisor::send(HostId host, const Start& message);
template void Supervisor::send(HostId host, const Stop& message);
template void Supervisor::send(HostId host, const Shutdown& message);
template void Supervisor::send(HostId host, const Signal& message);
template void Supervisor::send(HostId host, const CommitAnswer& message);
template void Supervisor::send(HostId host, const ClaimAnswer& message);

}  // namespace monarch::sim
