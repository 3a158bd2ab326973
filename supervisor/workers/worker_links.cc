#include "supervisor/workers/worker_links.h"

#include <charconv>
#include <utility>

#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/wire/from_host.h"
#include "transport/wire/messages.h"

namespace monarch {

namespace {

constexpr std::string_view kUserPrefix = "worker/";

}  // namespace

std::string user_id_of(HostId host) { return text(kUserPrefix, host.value()); }

std::optional<HostId> host_of_user_id(std::string_view user_id) {
  if (!user_id.starts_with(kUserPrefix)) return std::nullopt;
  user_id.remove_prefix(kUserPrefix.size());
  std::uint32_t index = 0;
  const auto parsed = std::from_chars(user_id.data(), user_id.data() + user_id.size(), index);
  if (parsed.ec != std::errc() || parsed.ptr != user_id.data() + user_id.size()) return std::nullopt;
  return HostId(index);
}

WorkerLinks::WorkerLinks(EventLoop& loop, ServerLink& link, JobCore& core, Term term, std::string boot_id,
                         WorkerLinksHandlers handlers)
    : loop_(loop),
      link_(link),
      core_(core),
      term_(term),
      boot_id_(std::move(boot_id)),
      handlers_(std::move(handlers)),
      book_(core, term, book_handlers(std::move(handlers_.beats))),
      peers_(core.hosts().size()) {}

WorkerLinks::~WorkerLinks() {
  loop_.cancel(health_timer_);
  loop_.cancel(claims_timer_);
  loop_.cancel(start_timer_);
}

BeatBookHandlers WorkerLinks::book_handlers(BeatBookHandlers handlers) {
  handlers.on_host = [this](HostId host, const Beat& beat) { on_host(host, beat); };
  handlers.on_claim = [this](HostId host, Term term) {
    log_warn(core_.hosts()[host.value()].name, ": it has promised term ", term.value(), ", and this is term ",
             term_.value());
  };
  return handlers;
}

void WorkerLinks::expect(HostId host) {
  book_.expect(host, loop_.now());
  watch_health();
}

void WorkerLinks::expect_again(HostId host) {
  book_.expect_again(host, loop_.now());
  watch_health();
}

void WorkerLinks::stop_expecting(HostId host) {
  book_.stop_expecting(host);
  peers_[host.value()].to_start.clear();
  starts_.forget(host);
  watch_claims();
}

void WorkerLinks::on_message(InboundMessage&& message) {
  const std::optional<HostId> host = host_of_user_id(message.user_id);
  if (!host || host->value() >= peers_.size() || message.frames.size() != 2) {
    ++drops_.malformed;
    return;
  }
  const auto header = decode_header(message.frames[0].bytes());
  if (!header.ok()) {
    ++drops_.malformed;
    return;
  }
  // The one place where frames of another job are dropped. Lower terms are the worker's to fence: what it says here is
  // its promise.
  if (header->job != core_.state().job) {
    ++drops_.foreign_job;
    return;
  }
  if (header->term > term_) {
    ++drops_.later_term;
    book_.on_later_term(*host, header->term, loop_.now());
    return watch_claims();
  }
  if (!bind(message, *host, *header)) return;
  const Status taken = route(
      *header, message.frames[1].bytes(),
      when<Hello, decode_from_host<Hello>>([&](const Hello& hello) { on_hello(*host, hello); }),
      when<Beat, decode_from_host<Beat>>([&](const Beat& beat) { on_beat(*host, beat); }),
      when<Goodbye, decode_from_host<Goodbye>>([&](const Goodbye& goodbye) { on_goodbye(*host, goodbye); }),
      when<KeeperGone, decode_from_host<KeeperGone>>([&](const KeeperGone& gone) { on_keeper_gone(*host, gone); }),
      when<InputTaken, decode_from_host<InputTaken>>([&](const InputTaken& input) {
        if (handlers_.on_input_taken) handlers_.on_input_taken(*host, input);
      }),
      when<Reserved, decode_from_host<Reserved>>(
          [&](Reserved reserved) { book_.on_reserved(*host, std::move(reserved)); }));
  if (!taken.ok()) ++drops_.malformed;
}

// May this link speak for that host?
bool WorkerLinks::bind(const InboundMessage& message, HostId host, const FrameHeader& header) {
  std::string claimed = message.user_id;
  (void)route(header, message.frames[1].bytes(), when<Hello, decode_from_host<Hello>>([&](const Hello& hello) {
                claimed = user_id_of(HostId(hello.host));
              }));
  switch (table_.bind(message.link, message.user_id, claimed)) {
    case LinkTable::Bound::kNew:
    case LinkTable::Bound::kMoved: book_.on_link(host); return true;
    case LinkTable::Bound::kSame: return true;
    case LinkTable::Bound::kStale: ++drops_.stale_link; return false;
    case LinkTable::Bound::kForged:
      ++drops_.forged;
      // Once: what a worker can make us write is bounded (I22).
      if (!std::exchange(peers_[host.value()].forged, true)) {
        log_warn(core_.hosts()[host.value()].name, ": a message that claims to be ", printable(claimed),
                 "'s was refused; further ones are only counted");
      }
      return false;
  }
  return false;
}

bool WorkerLinks::is_known(HostId host, std::uint64_t incarnation) {
  if (book_.is_known(host, incarnation)) return true;
  ++drops_.foreign_worker;
  return false;
}

void WorkerLinks::on_goodbye(HostId host, const Goodbye& goodbye) {
  if (is_known(host, goodbye.incarnation) && handlers_.on_goodbye) handlers_.on_goodbye(host, goodbye);
}

void WorkerLinks::on_keeper_gone(HostId host, const KeeperGone& gone) {
  if (is_known(host, gone.incarnation)) book_.on_keeper_gone(host);
}

void WorkerLinks::on_hello(HostId host, const Hello& hello) {
  if (!book_.is_known(host, hello)) {
    ++drops_.foreign_worker;
    return;
  }
  peers_[host.value()].door = hello.door;
  if (handlers_.on_greeted) handlers_.on_greeted(host, hello);
  // Virtual hosts share our clock.
  book_.on_hello(host, hello, hello.boot_id == boot_id_, loop_.now());
  watch_health();
}

void WorkerLinks::on_beat(HostId host, const Beat& beat) {
  const BeatBook::Answer answer = book_.on_beat(host, beat, loop_.now());
  send(host, answer.ack);
  for (const Action& action : answer.again) perform(action);
}

void WorkerLinks::on_host(HostId host, const Beat& beat) {
  const auto& said = beat.content;
  peers_[host.value()].pressure = said.pressure;
  if (said.pressure && handlers_.on_pressure) handlers_.on_pressure(host, *said.pressure);
  if (handlers_.on_output_lost) handlers_.on_output_lost(host, said.output_lost_bytes, said.output_failure);
  note_started(host, beat);
  // Before its ranks: what they say is not durable yet.
  if (handlers_.on_vault) handlers_.on_vault(host, said.vault.value_or(VaultReport{}));
  if (handlers_.on_post) handlers_.on_post(host, said.post.value_or(PostReport{}), beat.sent_at);
}

void WorkerLinks::watch_health() {
  loop_.cancel(std::exchange(health_timer_, 0));
  const Instant due = book_.next_look();
  if (due == Instant::never()) return;
  health_timer_ = loop_.at(due, [this, due] {
    book_.look(due, loop_.now());
    watch_health();
  });
}

void WorkerLinks::watch_claims() {
  loop_.cancel(std::exchange(claims_timer_, 0));
  if (book_.next_claim() == Instant::never()) return;
  claims_timer_ = loop_.at(book_.next_claim(), [this] {
    book_.look_at_claims(loop_.now());
    watch_claims();
  });
}

}  // namespace monarch
