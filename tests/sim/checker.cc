#include "tests/sim/checker.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "tests/sim/guard.h"
#include "tests/sim/incarnation_text.h"
#include "tests/sim/journal.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

constexpr Duration kLeaseSlack = Duration::milliseconds(200);
constexpr Duration kOrphanMargin = Duration::seconds(5);
constexpr Duration kSettle = Duration::seconds(15);

}  // namespace

Checker::Checker(World& world)
    : world_(world),
      hosts_(world.hosts.size()),
      slots_(world.scenario.spec),
      stages_(world.scenario.spec),
      commits_(world.scenario.spec, durable_, world.scenario.continues),
      claims_(world, durable_),
      hangs_(world),
      drills_(world),
      heard_(world.scenario.remote) {
  for (std::size_t i = 0; i < job_.bytes.size(); ++i) job_.bytes[i] = static_cast<std::uint8_t>(world.random.next());
}

void Checker::violated(const char* label, const std::string& message) const { throw Violation{label, message}; }

Instant Checker::now() const { return world_.scheduler.now(); }

bool Checker::settled() const { return healed_at_ && world_.scheduler.now() - *healed_at_ > kSettle; }

void Checker::healed() { healed_at_ = world_.scheduler.now(); }

// ---- ranks ----

void Checker::forked(RankProcess& process) {
  const Incarnation& key = process.key;
  const auto twice = [&](const RankProcess* other) {
    return other->key.generation == key.generation ||
           (other->key.generation > key.generation && other->host == process.host);
  };
  const auto& others = processes_[key.rank];
  // The START of an earlier generation may lie on a host that stood still: what it begins stays at its gate.
  check(std::none_of(others.begin(), others.end(), twice), "I4",
        text("a second process of ", incarnation_text(key), " on host ", process.host.value()));
  check(started_.contains(key), "I5", text(incarnation_text(key), " was forked and never journalled"));
  check(started_.at(key) == process.host, "slots",
        text(incarnation_text(key), " was forked on host ", process.host.value(), ", which does not have its slot"));
  if (is_of_spec(key.rank)) check_order_of_start(key.rank);
  check_predecessors(process);
  if (is_of_spec(key.rank)) commits_.started(key);
  processes_[key.rank].push_back(&process);
}

// A mesh never starts before what it waits for was ready, or is done.
void Checker::check_order_of_start(RankId rank) {
  for (const MeshId first : stages_.waits_for(rank.mesh)) {
    const MeshSpec& mesh = world_.scenario.spec.meshes[first.value()];
    if (mesh.idle) continue;
    for (std::uint32_t r = 0; r < mesh.size(); ++r) {
      const RankId other{first, Rank(r)};
      const auto& processes = processes_[other];
      const bool done =
          !mesh.sidecar && std::any_of(processes.begin(), processes.end(), [](const RankProcess* process) {
            return !process->alive() && process->end.kind == EndKind::kExited && process->end.value == 0;
          });
      const bool parked = parked_.contains({first, mesh.gang_of(other.rank)});
      check(done || parked || ready_.contains(other), "order",
            text("mesh ", rank.mesh.value(), " starts before ", first.value(), "/", r, " was ready"));
    }
  }
}

// Stages go down from the last to the first, unless everything is killed.
void Checker::check_order_of_stop(const JobCore& core, const Action& action) const {
  const auto* stop = std::get_if<SendStop>(&action);
  if (stop == nullptr || stop->message.ranks.empty() || core.state().kill_ordered) return;
  const RankId rank = stop->message.ranks.front();
  if (!is_of_spec(rank)) return;
  const GangState& gang = state_parts::gang_with(core, rank);
  if (gang.phase != GangPhase::kStopping || core.facts().crew_with(rank).generation != stop->message.generation) return;
  if (!gang.asked.empty()) return;  // to be started again, for which nobody else is stopped
  // Let go, whatever the others do.
  const MeshSpec& mesh = core.spec().meshes[rank.mesh.value()];
  if (mesh.idle && claims_.life_of(core, rank.mesh, mesh.gang_of(rank.rank)) == 0) return;
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    if (stages_.stage_of(MeshId(m)) <= stages_.stage_of(rank.mesh)) continue;
    check(!core.crews().any_lives(MeshId(m)), "order",
          text("mesh ", rank.mesh.value(), " is stopped while mesh ", m, " lives"));
  }
}

void Checker::check_ports(const SendStart& start) const {
  if (start.message.mesh.value() >= world_.scenario.spec.meshes.size()) return;
  const MeshSpec& mesh = world_.scenario.spec.meshes[start.message.mesh.value()];
  for (const RankStart& rank : start.message.ranks) {
    check(rank.ports.size() == mesh.ports.size() && std::count(rank.ports.begin(), rank.ports.end(), 0) == 0, "ports",
          text("rank ", rank.rank.rank.value(), " of mesh ", mesh.name, " starts without its ports"));
  }
}

void Checker::executes(RankProcess& process) {
  const Instant now = world_.scheduler.now();
  check(process.leased_until + kLeaseSlack > now, "I1",
        text(incarnation_text(process.key), " executes without a lease"));
  for (const RankProcess* other : processes_[process.key.rank]) {
    if (!is_of_spec(process.key.rank)) break;  // until it has a place it does nothing of the job's
    check(other == &process || !other->executes() || other->leased_until < now, "I1",
          text(incarnation_text(process.key), " and ", incarnation_text(other->key), " both hold leases"));
  }
  check_company(process);
  watch_lease(process);
  writes(process);
}

// At the end of what was granted, counted in the world's own time from the send of the answered beat.
void Checker::watch_lease(RankProcess& process) {
  if (world_.scenario.spec.supervision.orphan == OrphanPolicy::kRun) return;
  if (std::exchange(process.lease_watched, true)) return;
  world_.scheduler.at(process.leased_until + kLeaseSlack, [this, &process] {
    const Instant now = world_.scheduler.now();
    process.lease_watched = false;
    if (!process.executes()) return;
    if (process.leased_until + kLeaseSlack > now) return watch_lease(process);
    Host& host = world_.host(process.host);
    if (host.off) return;
    if (host.frozen()) {
      world_.scheduler.after(kLeaseSlack, [this, &process] { watch_lease(process); });
      return;
    }
    violated("I1", text(incarnation_text(process.key), " runs on after its lease"));
  });
}

void Checker::forgotten(const RankProcess& process) {
  // Once its successor is decided, nothing of it is wanted any more.
  const bool beside = !is_of_spec(process.key.rank);
  if (beside && is_superseded_beside(process)) return;
  const GangId gang =
      beside ? GangId() : world_.scenario.spec.meshes[process.key.rank.mesh.value()].gang_of(process.key.rank.rank);
  // Of several, any: the newest may be decided after somebody was told that this one is not wanted.
  const auto& decided = decided_gangs_[{process.key.rank.mesh, gang}];
  const bool superseded = std::any_of(decided.upper_bound(process.key.generation), decided.end(),
                                      [this](const auto& successor) { return is_durable(successor.second); });
  if (superseded) return;
  const auto end = recorded_ends_.find(process.key);
  check(end != recorded_ends_.end() && is_durable(end->second), "J1",
        text(incarnation_text(process.key), " was forgotten before its end was durable"));
}

// ---- daemons ----

void Checker::beats(HostId host, const Beat& beat) {
  account(host).beats[beat.seq] = world_.scheduler.now();
  if (account(host).beats.size() > 512) account(host).beats.erase(account(host).beats.begin());
}

// What the supervisor granted, counted in the world's own time from the send of the answered beat.
void Checker::hears(HostId host, const daemon::FrameHeard& frame) {
  HostAccount& mine = account(host);
  mine.heard_term = frame.term;
  if (frame.term >= mine.promised) may_stay(host);
  const auto* ack = std::get_if<Ack>(&frame.message);
  if (ack == nullptr || frame.term < mine.promised) return;
  const auto sent = mine.beats.find(ack->seq);
  if (sent == mine.beats.end()) return;
  // A host's clock may be slow by 200 ppm against the world's.
  const Instant until = sent->second + ack->lease + ack->lease / 2000;
  for (const Incarnation& key : ack->granted) {
    Instant& granted = mine.granted[key];
    granted = std::max(granted, until);
  }
}

// One that was started again has heard nobody yet, and waits as long.
void Checker::daemon_starts(HostId host) { may_stay(host); }

void Checker::may_stay(HostId host) {
  const Supervision& policy = world_.scenario.spec.supervision;
  const Duration lease = std::max(policy.lease, policy.orphan_ttl);
  HostAccount& mine = account(host);
  const Duration stood_still = world_.host(host).stood_still;
  mine.worker_may_stay = std::max(mine.worker_may_stay + (stood_still - mine.stays_stood_still),
                                  world_.scheduler.now() + lease + lease / 1000);
  mine.stays_stood_still = stood_still;
}

void Checker::obeys(HostId host, const daemon::Event& event, const daemon::Action& action) {
  HostAccount& mine = account(host);
  const auto* told = std::get_if<daemon::TellKeeper>(&action);
  if (told == nullptr) return;
  // Frames that waited for a promise are obeyed with it.
  if (std::holds_alternative<daemon::FrameHeard>(event)) {
    check(mine.heard_term >= mine.promised, "I7",
          text("host ", host.value(), " obeyed term ", mine.heard_term.value(), " and has promised ",
               mine.promised.value()));
  }
  contact(host);
  const auto* lease = std::get_if<KeeperLease>(&told->message);
  if (lease == nullptr) return;
  for (const Incarnation& key : lease->processes) {
    const auto granted = mine.granted.find(key);
    check(granted != mine.granted.end(), "I1", text("a lease for ", incarnation_text(key), " that nobody granted"));
    for (RankProcess* process : processes_[key.rank]) {
      if (process->key.generation != key.generation || process->host != host) continue;
      process->leased_until = std::max(process->leased_until, granted->second);
      if (process->executes()) watch_lease(*process);
    }
  }
}

void Checker::promised(HostId host, Term term) { account(host).promised = std::max(account(host).promised, term); }

void Checker::says_hello(const Hello& hello) {
  const HostAccount& mine = account(HostId(hello.host));
  check(hello.promised >= mine.promised, "I7",
        text("host ", hello.host, " promised term ", mine.promised.value(), " and now knows ", hello.promised.value()));
  contact(HostId(hello.host));
}

void Checker::contact(HostId host) {
  HostAccount& mine = account(host);
  mine.last_contact = world_.scheduler.now();
  mine.stood_still = world_.host(host).stood_still;
  watch_contact(host);
}

void Checker::watch_contact(HostId host) {
  if (std::exchange(account(host).contact_watched, true)) return;
  orphan_due(host);
}

// I16: everything of a host ends within lease, orphan_ttl and a margin of its last contact, not counting the time in
// which it stood still; the worker itself when the ends of its ranks had their time to be heard.
void Checker::orphan_due(HostId id) {
  const Supervision& policy = world_.scenario.spec.supervision;
  const Duration lease = std::max(policy.lease, policy.orphan_ttl);
  const Instant now = world_.scheduler.now();
  Host& host = world_.host(id);
  const Duration stood_still = host.stood_still - account(id).stood_still;
  const Instant due = account(id).last_contact + lease + lease / 1000 + stood_still + kOrphanMargin;
  if (host.off) return;
  const Duration again = host.frozen() ? Duration::seconds(1) : std::max(due - now, Duration::milliseconds(500));
  if (now >= due && !host.frozen() && policy.orphan != OrphanPolicy::kRun) {
    for (const auto& worker : host.workers) {
      for (const auto& [key, process] : worker->ranks().processes()) {
        check(!process.alive() || process.killed, "I16", text(incarnation_text(key), " outlives its orphan time"));
      }
    }
  }
  const bool gone = host.worker() != nullptr && host.worker()->gone();
  Instant& may_stay = account(id).worker_may_stay;
  // What was killed and is in the kernel keeps it.
  const bool kept = host.worker() != nullptr && host.worker()->ranks().anything_left();
  if (kept || host.frozen()) may_stay = std::max(may_stay, now + kOrphanMargin);
  const Instant stays = may_stay + (host.stood_still - account(id).stays_stood_still);
  const Instant leaves = std::max(stays, due) + std::min(policy.suspect_after, policy.orphan_ttl) + kOrphanMargin;
  check(gone || now < leaves || policy.orphan == OrphanPolicy::kRun, "I16",
        text("the worker of host ", id.value(), " outlives its orphan time"));
  if (gone) {
    account(id).contact_watched = false;
    return;
  }
  world_.scheduler.after(again, [this, id] { orphan_due(id); });
}

void Checker::acks(HostId host, const Ack& ack, const JobCore& core) {
  heard_.answered(ack);
  for (const Incarnation& key : ack.granted) {
    check(started_.contains(key), "I8", text("a lease for ", incarnation_text(key), ", which was never started"));
    check(!recorded_ends_.contains(key), "I8", text("a lease for ", incarnation_text(key), ", which has ended"));
    check(where_ran(core.facts(), key) == host, "I8",
          text("a lease for ", incarnation_text(key), " on the wrong host"));
  }
}

void Checker::launches(HostId host) {
  HostAccount& mine = account(host);
  ++mine.launches;
  // Of its own worker nothing is known yet.
  mine.heard = false;
  mine.joined = false;
  mine.out.reset();
  mine.named.reset();
  mine.beats.clear();
  mine.last_good_beat.reset();
  const std::optional<Instant> back_at = std::exchange(mine.back_at, std::nullopt);
  // A machine that nobody reaches is tried in vain; what was cut off or stood still until a moment ago finds its leases
  // at their ends. Of a virtual host the end is proven, always.
  Host& where = world_.host(host);
  const bool unheard = now() - mine.last_good_at >= world_.scenario.spec.supervision.lease;
  // A supervisor that was away or stood still meanwhile has had no time to end it.
  const bool just_back = back_at && now() - std::max(*back_at, goes_on_since_) < kSettle;
  const bool stood_still = !world_.reachable(host) || unheard || just_back || now() - where.thawed_at < kSettle;
  if (world_.scenario.remote && stood_still) return;
  for (const auto& worker : where.workers) {
    check(!worker->keeper_alive(), "I19", text("host ", host.value(), " is launched while a worker of it lives"));
  }
}

// I3: an end that is told is proven.
void Checker::worker_ended(HostId host, const Worker* worker) {
  check(worker == nullptr || world_.host(host).off || !worker->keeper_alive(), "I3",
        text("the worker of host ", host.value(), " is said to have ended"));
}

void Checker::watch_claims() {
  world_.scheduler.after(Duration::seconds(1), [this] {
    const Supervisor* supervisor = world_.guard->supervisor();
    const bool runs = supervisor != nullptr && supervisor->open();
    const bool calm = settled() && now() - goes_on_since_ > kSettle;
    if (runs) claims_.look(supervisor->core(), calm);
    if (!world_.exit_code()) watch_claims();
  });
}

void Checker::supervisor_died() {
  ++deaths_;
  hangs_.supervisor_died();
}

}  // namespace monarch::sim
