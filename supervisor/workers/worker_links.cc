#include "supervisor/workers/worker_links.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "supervisor/core/health/fence.h"
#include "supervisor/core/health/progress_watch.h"
#include "supervisor/core/job/held_ports.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/wire/from_host.h"
#include "transport/wire/messages.h"

namespace monarch {

namespace {

constexpr std::string_view kUserPrefix = "worker/";
constexpr std::size_t kExplanationBytes =
    4'096;  // of a worker's explanation; longer ones are cut to fit a record of the journal

constexpr std::uint32_t kMostStarts = 100;  // of a host's daemon, that are told of

// A supervisor that has come back may have to wait that long for who is gone, and until then counts it among the
// others.
Duration patience_with_claims(const Supervision& supervision) { return supervision.lease * 2 + supervision.lost_after; }

std::string cut(std::string words) {
  words.resize(std::min(words.size(), kExplanationBytes));
  return words;
}

// Of an exit the number says all: what is told beside one is ours (JobCore::judged), and no host's to say.
std::string words_of_host(RankEnd end) {
  const bool says_why = end.kind == EndKind::kNotExecuted || end.kind == EndKind::kSetupFailed;
  return says_why ? cut(std::move(end.detail)) : std::string();
}

// Within a generation a rank only moves forward, so what a worker can make us write about it is bounded (I22).
bool advances(const RankReport& known, const RankReport& report) {
  if (known.process.generation != report.process.generation) return true;
  return report.phase > known.phase || (!known.ready && report.ready) || (known.pid == 0 && report.pid != 0) ||
         (known.end.kind == EndKind::kNone && report.end.kind != EndKind::kNone) ||
         (!known.output_complete && report.output_complete) || (!known.at_gate && report.at_gate) ||
         (!known.ending && report.ending);
}

void add(TalkDrops& sum, const TalkDrops& more) {
  sum.bad_values += more.bad_values;
  sum.too_long += more.too_long;
  sum.foreign += more.foreign;
  sum.connections += more.connections;
  sum.slow_readers += more.slow_readers;
}

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
      liveness_(core.spec().supervision, core.hosts().size()),
      claims_(patience_with_claims(core.spec().supervision)),
      peers_(core.hosts().size()) {}

WorkerLinks::~WorkerLinks() {
  loop_.cancel(health_timer_);
  loop_.cancel(claims_timer_);
  loop_.cancel(start_timer_);
}

void WorkerLinks::expect(HostId host) {
  liveness_.expect(host, loop_.now());
  watch_health();
}

void WorkerLinks::expect_again(HostId host) {
  const Supervision& supervision = core_.spec().supervision;
  // J3: whatever the one before us granted, it may have granted a moment ago.
  peers_[host.value()].grants_until = fence_of(loop_.now(), std::max(supervision.lease, supervision.orphan_ttl));
  const Duration patience = supervision.lease * 2 - supervision.lost_after;
  liveness_.expect(host, loop_.now() + std::max(patience, Duration::zero()));
  watch_health();
}

void WorkerLinks::stop_expecting(HostId host) {
  liveness_.stop_expecting(host);
  claims_.forget(host);
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
  if (header->term > term_) return on_later_term(*host, header->term);
  const std::string_view payload = message.frames[1].bytes();
  std::string claimed = message.user_id;
  (void)route(*header, payload, when<Hello, decode_from_host<Hello>>([&](const Hello& hello) {
    claimed = user_id_of(HostId(hello.host));
  }));
  switch (table_.bind(message.link, message.user_id, claimed)) {
    case LinkTable::Bound::kNew:
    case LinkTable::Bound::kMoved: peers_[host->value()].greeted = false; break;
    case LinkTable::Bound::kSame: break;
    case LinkTable::Bound::kStale: ++drops_.stale_link; return;
    case LinkTable::Bound::kForged:
      ++drops_.forged;
      // Once: what a worker can make us write is bounded (I22).
      if (!std::exchange(peers_[host->value()].forged, true)) {
        log_warn(core_.hosts()[host->value()].name, ": a message that claims to be ", printable(claimed),
                 "'s was refused; further ones are only counted");
      }
      return;
  }
  const Status taken = route(
      *header, payload, when<Hello, decode_from_host<Hello>>([&](const Hello& hello) { on_hello(*host, hello); }),
      when<Beat, decode_from_host<Beat>>([&](const Beat& beat) { on_beat(*host, beat); }),
      when<Goodbye, decode_from_host<Goodbye>>([&](const Goodbye& goodbye) { on_goodbye(*host, goodbye); }),
      when<KeeperGone, decode_from_host<KeeperGone>>([&](const KeeperGone& gone) { on_keeper_gone(*host, gone); }),
      when<InputTaken, decode_from_host<InputTaken>>([&](const InputTaken& input) {
        if (handlers_.on_input_taken) handlers_.on_input_taken(*host, input);
      }),
      when<Reserved, decode_from_host<Reserved>>([&](Reserved reserved) { on_reserved(*host, std::move(reserved)); }));
  if (!taken.ok()) ++drops_.malformed;
}

void WorkerLinks::on_reserved(HostId host, Reserved reserved) {
  if (!core_.awaits(host, reserved)) return;
  cut_ports(host, reserved);
  reserved.error = cut(std::move(reserved.error));
  (void)handlers_.decide(PortsReserved{.host = host, .reserved = std::move(reserved)});
}

// A host alone may be out of its mind, or somebody else's: its word ends its own part in the job, and not the job.
void WorkerLinks::on_later_term(HostId host, Term term) {
  ++drops_.later_term;
  const HostPhase phase = core_.state().hosts[host.value()].phase;
  if (phase != HostPhase::kLaunched && phase != HostPhase::kJoined) return;
  if (claims_.claim(host, term, loop_.now())) {
    log_warn(core_.hosts()[host.value()].name, ": it has promised term ", term.value(), ", and this is term ",
             term_.value());
    if (handlers_.has_successor && handlers_.has_successor()) return handlers_.on_superseded(term);
  }
  if (claims_.are_believed(jury(core_.state()))) return handlers_.on_superseded(term);
  watch_claims();
}

void WorkerLinks::distrust(HostId host) {
  const Term term = claims_.claimed_by(host).value_or(term_);
  if (handlers_.has_successor && handlers_.has_successor()) return handlers_.on_superseded(term);
  claims_.forget(host);
  tell_steps(host);
  (void)handlers_.decide(
      HostDistrusted{.host = host,
                     .why = text("it speaks for a supervisor of term ", term.value(),
                                 ", of which nobody else has heard (this is term ", term_.value(), ")"),
                     .grants_until = grants_until(host)});
}

void WorkerLinks::watch_claims() {
  loop_.cancel(claims_timer_);
  claims_timer_ = 0;
  if (claims_.next_deadline() == Instant::never()) return;
  claims_timer_ = loop_.at(claims_.next_deadline(), [this] {
    for (const HostId host : claims_.alone(loop_.now())) distrust(host);
    watch_claims();
  });
}

// Is it the worker that we know there that says so?
bool WorkerLinks::is_known(HostId host, std::uint64_t incarnation) {
  if (incarnation == core_.state().hosts[host.value()].incarnation) return true;
  ++drops_.foreign_worker;
  return false;
}

void WorkerLinks::on_goodbye(HostId host, const Goodbye& goodbye) {
  if (is_known(host, goodbye.incarnation) && handlers_.on_goodbye) handlers_.on_goodbye(host, goodbye);
}

// Once for each worker (I22).
void WorkerLinks::on_keeper_gone(HostId host, const KeeperGone& gone) {
  if (!is_known(host, gone.incarnation)) return;
  const HostState& state = core_.state().hosts[host.value()];
  if (state.phase == HostPhase::kJoined && !state.failing) (void)handlers_.decide(WorkerFailing{.host = host});
}

// Who answers with another number of ports than was asked for is refused by the core, which needs no more than one too
// many for that: all of them may be more than a record of the journal holds (I23).
void WorkerLinks::cut_ports(HostId host, Reserved& reserved) const {
  if (reserved.mesh.value() >= core_.spec().meshes.size())
    return reserved.ports.clear();  // a standby gang's: it has none
  const HeldPortsInput input{.mesh = core_.spec().meshes[reserved.mesh.value()],
                             .placement = core_.placement(),
                             .gang = core_.state().meshes[reserved.mesh.value()].gangs[reserved.gang.value()]};
  const Reserve asked = ports_to_hold(input, reserved.mesh, reserved.gang, host);
  const std::size_t enough = asked.count + asked.fixed.size() + 1;
  reserved.ports.resize(std::min(reserved.ports.size(), enough));
}

void WorkerLinks::on_hello(HostId host, const Hello& hello) {
  // One that was given up may live on, and hold the link that it had: it neither joins nor ends in the new one's place.
  if (hello.keeper_pid != core_.state().hosts[host.value()].keeper_pid) {
    ++drops_.foreign_worker;
    return;
  }
  Peer& peer = peers_[host.value()];
  peer.greeted = true;
  if (handlers_.on_greeted) handlers_.on_greeted(host, hello);
  // It only grows, and its keeper stops at a few: more are no starts (I22).
  const bool may_be_so = hello.daemon_starts > 1 && hello.daemon_starts <= kMostStarts;
  if (may_be_so && hello.daemon_starts > core_.state().hosts[host.value()].daemon_starts) {
    (void)handlers_.decide(DaemonStarted{.host = host, .start = hello.daemon_starts});
  }
  peer.daemon_starts = hello.daemon_starts;
  // Virtual hosts share our clock: nothing has to be estimated.
  if (hello.boot_id == boot_id_) liveness_.same_clock(host);
  const HostPhase phase = core_.state().hosts[host.value()].phase;
  if (phase != HostPhase::kLaunched) return;
  (void)handlers_.decide(WorkerJoined{.host = host, .incarnation = hello.incarnation});
  expect(host);
}

void WorkerLinks::on_beat(HostId host, const Beat& beat) {
  if (beat.round_trip > Duration::zero()) liveness_.round_trip(host, beat.round_trip);
  if (const auto back = liveness_.heard(host, beat, loop_.now())) {
    handlers_.on_health(back->host, back->health, back->silence);
  }
  peers_[host.value()].pressure = beat.content.pressure;
  if (beat.content.pressure && handlers_.on_pressure) handlers_.on_pressure(host, *beat.content.pressure);
  if (handlers_.on_output_lost)
    handlers_.on_output_lost(host, beat.content.output_lost_bytes, beat.content.output_failure);
  if (std::exchange(peers_[host.value()].warnings, beat.content.warnings) < beat.content.warnings &&
      handlers_.on_warned) {
    handlers_.on_warned(host);
  }
  note_started(host, beat);
  // Before its ranks: what they say is not durable yet.
  if (handlers_.on_vault) handlers_.on_vault(host, beat.content.vault.value_or(VaultReport{}));
  if (handlers_.on_post) handlers_.on_post(host, beat.content.post.value_or(PostReport{}));
  for (const RankReport& report : beat.content.ranks) {
    // First: a rank that has ended meanwhile had written what it says.
    if (report.commit && handlers_.on_commit) handlers_.on_commit(host, report);
    note_rank(host, report);
    const bool its_own = core_.has_rank(report.process.rank) && core_.where_is(report.process.rank) == host;
    if (handlers_.on_report && its_own && core_.concerns(host, report)) handlers_.on_report(host, report, beat.sent_at);
  }
  const HostState& known = core_.state().hosts[host.value()];
  if (known.awaited && known.phase == HostPhase::kJoined) {
    (void)handlers_.decide(WorkerJoined{.host = host, .incarnation = known.incarnation});
  }
  const Ack ack = ack_of(host, beat);
  if (!ack.granted.empty()) {
    Instant& until = peers_[host.value()].grants_until;
    until = std::max(until, fence_of(loop_.now(), ack.lease));
  }
  send(host, ack);
  resend_lost(host, beat);
}

void WorkerLinks::note_rank(HostId host, const RankReport& report) {
  // The core would drop it, and it would cost a record (I23).
  if (!core_.concerns(host, report)) {
    // Of an earlier generation nothing is left to learn but the rest of its output.
    const bool copies = handlers_.on_written && core_.is_superseded(host, report);
    if (copies && !copied_.contains(report.process)) handlers_.on_written(report);
    return;
  }
  handlers_.on_written ? note_change(host, as_copied(host, report)) : note_change(host, report);
}

// A copy is behind its host: what the host says of the end of a rank's output is held back until the copy has it.
RankReport WorkerLinks::as_copied(HostId host, const RankReport& report) {
  Peer& peer = peers_[host.value()];
  const bool done = copied_.contains(report.process);
  if (!done) handlers_.on_written(report);
  if (!report.output_complete || done) {
    peer.not_copied.erase(report.process.rank);
    return report;
  }
  peer.not_copied[report.process.rank] = report;
  RankReport shown = report;
  shown.output_complete = false;
  return shown;
}

void WorkerLinks::on_copied(const Incarnation& process) {
  copied_.insert(process);
  const std::optional<HostId> host = core_.where_ran(process);
  if (!host) return;
  const auto held = peers_[host->value()].not_copied.find(process.rank);
  if (held == peers_[host->value()].not_copied.end() || held->second.process != process) return;
  const RankReport report = held->second;
  note_rank(*host, report);
}

void WorkerLinks::note_change(HostId host, const RankReport& report) {
  Peer& peer = peers_[host.value()];
  const auto known = peer.ranks.find(report.process.rank);
  if (known != peer.ranks.end() && !advances(known->second.report, report)) {
    RankReport& last = known->second.report;
    const std::uint64_t written = last.stdout_bytes + last.stderr_bytes;
    // A beat with too much to say leaves some ranks' progress out: what they said before stands.
    if (report.progress != RankProgress{}) last.progress = report.progress;
    last.talk_drops = report.talk_drops;
    last.held = report.held;
    last.standstill = report.standstill;
    last.stdout_bytes = report.stdout_bytes;
    last.stderr_bytes = report.stderr_bytes;
    note_step(host, report);
    if (last.stdout_bytes + last.stderr_bytes > written && handlers_.on_output) handlers_.on_output();
    return;
  }
  RankChanged change{.host = host,
                     .report = report,
                     .ended_at = liveness_.to_ours(host, report.ended_at),
                     .uncertainty = liveness_.uncertainty(host)};
  if (report.evidence_at != Instant::never()) change.evidence_at = liveness_.to_ours(host, report.evidence_at);
  if (report.end.kind != EndKind::kNone) {
    RankProgress last = report.progress;
    if (!last.step && known != peer.ranks.end() &&
        known->second.report.process.generation == report.process.generation) {
      last = known->second.report.progress;
    }
    change.step = last.step;
    if (last.step) change.step_at = liveness_.to_ours(host, last.at);
  }
  if (report.phase == RankPhase::kWedged) change.grants_until = peer.grants_until;
  change.report.end.detail = words_of_host(std::move(change.report.end));
  // What a rank says of itself, and whether it stands still, is for status and not for the journal.
  change.report.progress = {};
  change.report.talk_drops = {};
  change.report.held = false;
  change.report.standstill = Standstill::kNone;
  change.report.commit.reset();
  peer.ranks[report.process.rank] = {.report = report, .ticket = handlers_.decide(change)};
  note_step(host, report);
}

// The first of a generation, and the first beyond all that were reached before: two of a generation at most. And what
// was a pause, as there is one in a second at most.
void WorkerLinks::note_step(HostId host, const RankReport& report) {
  const RankProgress& said = report.progress;
  if (!said.first || report.phase != RankPhase::kRunning || !core_.has_rank(report.process.rank)) return;
  const GangId gang = core_.spec().meshes[report.process.rank.mesh.value()].gang_of(report.process.rank.rank);
  const GangState& state = core_.state().meshes[report.process.rank.mesh.value()].gangs[gang.value()];
  if (state.phase != GangPhase::kRunning || state.generation != report.process.generation) return;
  const auto decide = [&](const StepMark& mark) {
    (void)handlers_.decide(GangProgressed{.mesh = report.process.rank.mesh,
                                          .gang = gang,
                                          .generation = report.process.generation,
                                          .step = mark.step,
                                          .at = liveness_.to_ours(host, mark.at)});
  };
  if (!state.first_step) decide(*said.first);
  if (said.past && state.furthest && !state.caught_up && said.past->step > *state.furthest) decide(*said.past);
  if (!said.step) return;
  const auto paused = pauses_.heard(report.process.rank.mesh, gang, report.process.generation, *said.step,
                                    liveness_.to_ours(host, said.at));
  if (paused) (void)handlers_.decide(*paused);
}

void WorkerLinks::tell_steps(HostId host) {
  std::map<std::pair<MeshId, GangId>, GangStep> furthest;
  for (const auto& [id, known] : peers_[host.value()].ranks) {
    const std::optional<std::uint64_t>& step = known.report.progress.step;
    if (!step || !core_.has_rank(id)) continue;
    const GangId gang = core_.spec().meshes[id.mesh.value()].gang_of(id.rank);
    const GangState& state = core_.state().meshes[id.mesh.value()].gangs[gang.value()];
    if (state.generation != known.report.process.generation || state.reached >= step) continue;
    GangStep& heard = furthest[{id.mesh, gang}];
    heard = {.mesh = id.mesh, .gang = gang, .generation = state.generation, .step = std::max(heard.step, *step)};
  }
  if (furthest.empty()) return;
  StepsHeard heard;
  for (const auto& [place, step] : furthest) heard.gangs.push_back(step);
  (void)handlers_.decide(heard);
}

void WorkerLinks::add_progress(JobStatus& status) const {
  for (std::uint32_t m = 0; m < status.meshes.size(); ++m) {
    for (RankStatus& shown : status.meshes[m].ranks) {
      const RankId id{MeshId(m), Rank(shown.rank)};
      const HostId host = core_.placement().host_of(id);
      const auto known = peers_[host.value()].ranks.find(id);
      if (known == peers_[host.value()].ranks.end()) continue;
      const RankReport& report = known->second.report;
      if (report.process.generation.counter != shown.generation) continue;
      const bool suspended =
          report.held || report.standstill == Standstill::kStopped || report.standstill == Standstill::kFrozen;
      if (suspended && shown.phase == "running") shown.phase = "suspended";
      shown.standstill = name_of(report.standstill);
      add(status.hosts[host.value()].talk_drops, report.talk_drops);
      if (report.progress == RankProgress{}) continue;
      shown.progress = report.progress;
      const Duration age = loop_.now() - liveness_.to_ours(host, report.progress.at);
      shown.progress_age_milliseconds = std::max<std::int64_t>(0, age.count_milliseconds());
    }
  }
}

Ack WorkerLinks::ack_of(HostId host, const Beat& beat) const {
  const Peer& peer = peers_[host.value()];
  Ack ack{.seq = beat.seq, .lease = core_.lease_length()};
  ack.say_hello = !peer.greeted;
  for (const RankReport& report : beat.content.ranks) {
    if (core_.concerns(host, report) && core_.grants(report.process)) {
      ack.granted.push_back(report.process);
    }
    const auto known = peer.ranks.find(report.process.rank);
    const bool recorded = known != peer.ranks.end() &&
                          known->second.report.process.generation == report.process.generation &&
                          known->second.report.phase == RankPhase::kEnded && known->second.report.output_complete &&
                          handlers_.is_durable(known->second.ticket);
    // Another generation was decided; until that is durable, who comes back may have to learn of this end (J1).
    const bool old = core_.is_superseded(host, report) && handlers_.all_durable() &&
                     (!handlers_.on_written || copied_.contains(report.process));
    if ((recorded || old) && report.phase == RankPhase::kEnded && report.output_complete) {
      ack.forget.push_back(report.process);
    }
  }
  return ack;
}

// Of verdicts that are held, once.
void WorkerLinks::tell_hold() {
  const auto& hold = liveness_.hold();
  if (!hold || hold->until == hold_told_) return;
  hold_told_ = hold->until;
  (void)handlers_.decide(HostsHeld{.silent = static_cast<std::uint32_t>(hold->silent),
                                   .of = static_cast<std::uint32_t>(hold->of),
                                   .until = hold->until});
}

void WorkerLinks::watch_health() {
  loop_.cancel(health_timer_);
  const Instant due = liveness_.next_deadline();
  if (due == Instant::never()) {
    health_timer_ = 0;
    return;
  }
  health_timer_ = loop_.at(due, [this, due] {
    liveness_.ran_late(loop_.now() - due, loop_.now());
    for (const HostVerdict& verdict : liveness_.turn(loop_.now())) {
      handlers_.on_health(verdict.host, verdict.health, verdict.silence);
      if (verdict.health != HostHealth::kSilent) continue;
      if (claims_.claimed_by(verdict.host)) {
        distrust(verdict.host);
      } else {
        tell_steps(verdict.host);
        (void)handlers_.decide(
            HostSilent{.host = verdict.host, .silence = verdict.silence, .grants_until = grants_until(verdict.host)});
      }
    }
    tell_hold();
    watch_health();
  });
}

}  // namespace monarch
