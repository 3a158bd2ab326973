// The daemon's beat thread: what it says and when; and the beats of one that lies.

#include <tuple>
#include <utility>

#include "tests/sim/checker.h"
#include "tests/sim/daemon.h"
#include "tests/sim/guard.h"
#include "tests/sim/posts.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

constexpr std::uint64_t kLater = 1'000;       // terms
constexpr std::uint64_t kMadeUp = 1'000'000;  // beyond the numbers of questions that ranks ask

}  // namespace

void Daemon::new_content(std::vector<RankReport> ranks, bool at_once) {
  beat_->message([this, ranks = std::move(ranks), at_once] {
    if (at_once || !content_) schedule_->hurry(host_.now());
    content_ = ranks;
    beat_if_due();
  });
}

void Daemon::owe_hello(bool again) {
  hello_.promised = core_->promised();
  beat_->message([this, again, hello = hello_] {
    if (again) {
      hello_owed_ = true;
      schedule_->hurry(host_.now());
    }
    hello_content_ = hello;
    beat_if_due();
  });
}

void Daemon::beat_if_due() {
  if (!has_link() || !world_.network->connected(host_.id) || !content_ || !hello_content_) return;
  const Instant now = host_.now();
  if (schedule_->due(now)) {
    const bool claims = world_.scenario.insider == host_.id && world_.random.permille(world_.faults().claims);
    const bool later = claims && world_.random.one_in(2);
    const Term term = later ? Term(hello_content_->promised.value() + kLater) : hello_content_->promised;
    if (std::exchange(hello_owed_, false)) {
      world_.checker->says_hello(*hello_content_);
      world_.network->send_up({.host = host_.id, .link = 0, .term = term, .message = *hello_content_});
    }
    Beat beat;
    beat.sent_at = now;
    beat.acked_seq = schedule_->highest_answered();
    const double jitter = static_cast<double>(world_.random.between(-1000, 1000)) / 1000.0;
    beat.seq = schedule_->send(now, jitter);
    beat.loop_age = std::max(Duration::zero(), now - turn_);
    if (!hangs_ && main_->waiting() == 0) beat.loop_age = Duration::zero();  // an idle loop turns for its pings
    beat.content.ranks = *content_;
    if (world_.posts != nullptr) beat.content.post = world_.posts->report(host_.id, worker_);
    if (world_.random.permille(world_.faults().lies)) lie(beat);
    if (claims && !later) make_up(beat);
    world_.checker->beats(host_.id, beat);
    if (world_.random.permille(world_.faults().floods)) flood(beat, term);
    world_.network->send_up({.host = host_.id, .link = 0, .term = term, .message = std::move(beat)});
  }
  beat_alarm_.set(std::max(schedule_->next_due(), now + daemon::BeatSchedule::kFloor));
}

// Of a rank that runs elsewhere: that it has failed, or that it runs here.
void Daemon::lie(Beat& beat) const {
  const Supervisor* supervisor = world_.guard->supervisor();
  if (supervisor == nullptr || !supervisor->open()) return;
  const JobCore& core = supervisor->core();
  const MeshId mesh(static_cast<std::uint32_t>(world_.random.below(core.spec().meshes.size())));
  const MeshSpec& spec = core.spec().meshes[mesh.value()];
  const RankId rank{mesh, Rank(static_cast<std::uint32_t>(world_.random.below(spec.size())))};
  RankReport report;
  report.process.rank = rank;
  report.process.generation = core.facts().crew_with(rank).generation;
  if (where_ran(core.facts(), report.process) == host_.id) return;
  report.phase = world_.random.one_in(2) ? RankPhase::kEnded : RankPhase::kRunning;
  report.pid = 1;
  report.ready = true;
  if (report.phase == RankPhase::kEnded) {
    report.end.kind = EndKind::kExited;
    report.end.value = 7;
    report.output_complete = true;
  }
  beat.content.ranks.push_back(std::move(report));
}

// Of a rank, its own or another: that it is here, in a generation that nobody has decided, and has written a
// checkpoint.
void Daemon::make_up(Beat& beat) const {
  const Supervisor* supervisor = world_.guard->supervisor();
  if (supervisor == nullptr || !supervisor->open()) return;
  Random& random = world_.random;
  const JobCore& core = supervisor->core();
  MeshId mesh(static_cast<std::uint32_t>(random.below(core.spec().meshes.size())));
  Rank rank(static_cast<std::uint32_t>(random.below(core.spec().meshes[mesh.value()].size())));
  if (!beat.content.ranks.empty() && random.one_in(2)) {
    const RankId own = beat.content.ranks[random.below(beat.content.ranks.size())].process.rank;
    if (world_.checker->is_of_spec(own)) std::tie(mesh, rank) = std::tuple(own.mesh, own.rank);
  }
  RankReport report;
  report.process.rank = {mesh, rank};
  const Generation now = core.facts().crew_with({mesh, rank}).generation;
  report.process.generation = {Term(now.term.value() + random.below(3)), now.counter + 1 + random.below(5)};
  report.phase = static_cast<RankPhase>(random.below(5));
  report.pid = 1;
  report.ready = true;
  if (report.phase == RankPhase::kEnded) report.end.kind = EndKind::kExited;
  if (random.one_in(2)) {
    report.commit = CommitRequest{.number = kMadeUp + (random.next() >> 1U), .step = random.below(1'000), .what = "x"};
  }
  beat.content.ranks.push_back(std::move(report));
}

// Of its own ranks: whatever may change from beat to beat, many times a second.
void Daemon::flood(const Beat& beat, Term term) {
  Random& random = world_.random;
  for (std::uint64_t more = random.below(12); more > 0; --more) {
    Beat said = beat;
    for (RankReport& report : said.content.ranks) {
      if (report.phase != RankPhase::kRunning || !world_.checker->is_of_spec(report.process.rank)) continue;
      report.standstill = static_cast<Standstill>(random.below(5));
      report.held = random.one_in(4);
      if (random.one_in(3)) report.pid = static_cast<std::int32_t>(random.below(3));
      report.progress = {.step = random.below(1'000), .phase = text("phase-", random.below(1'000)), .at = said.sent_at};
      report.commit =
          CommitRequest{.number = kMadeUp + (random.next() >> 1U), .step = random.below(1'000), .what = "x"};
      world_.checker->wrote(report.process, *report.commit);
    }
    world_.network->send_up({.host = host_.id, .link = 0, .term = term, .message = std::move(said)});
  }
}

}  // namespace monarch::sim
