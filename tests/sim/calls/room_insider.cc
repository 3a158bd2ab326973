// A host of the job that says what it likes, to whom it likes.

#include "tests/sim/calls/room.h"
#include "tests/sim/violation.h"

namespace monarch::sim::calls {

namespace {

constexpr std::uint64_t kFlood = 2'200;  // asks of one rank: more than all of its queue
constexpr std::uint64_t kDoubted = 1'200;

}  // namespace

// No rank lives where the rogue is: in whose name it asks, it lies.
CallerName Room::some_caller() {
  const Slot& forged = slots_[random_.below(slots_.size())];
  return {.mesh = forged.rank.mesh == MeshId(0) ? "work" : "control",
          .rank = forged.rank,
          .generation = forged.generation + random_.below(2)};
}

void Room::babble(HostNumber rogue) {
  if (healthy_) return;
  scheduler_.after(random_.skewed(Duration::microseconds(200), Duration::milliseconds(100)),
                   [this, rogue] { babble(rogue); });
  const HostNumber to = some_host();
  const PostPtr post = hosts_[to].post;
  const HostId sender(static_cast<std::uint32_t>(rogue));
  if (to == rogue || !post || !hosts_[to].up || !post->peers.contains(sender)) return;
  const Way way{rogue, random_.one_in(4) ? PeerVia::kOurs : PeerVia::kTheirs};
  Sent sent;
  sent.message = some_message(rogue, to, sent);
  // A body that it announces and never sends, or one that nobody waits for.
  const bool is_alone = !sent.bodies.empty() && !std::holds_alternative<LineAnswers>(sent.message);
  if (is_alone && random_.one_in(4)) sent.aside = Aside{.link = 0, .number = next_aside_++};
  const bool is_early = random_.one_in(40);
  post->life->message([this, to, post, way, sent, is_early, number = next_aside_++] {
    if (is_early) post->awaited[way].arrived(number, kNobodys, 100);
    take_message(to, post, way, sent);
  });
  // Its connection for bodies ends now and then.
  if (random_.one_in(30)) {
    post->life->message([this, post, way] { (void)drop_awaited(*post, way); });
  }
}

post_event::PeerMessage Room::some_message(HostNumber rogue, HostNumber to, Sent& sent) {
  const auto some_start = [&](HostNumber host) {
    return PostStart{1 + random_.below(2), hosts_[host].posts + random_.below(2)};
  };
  const HostNumber root = random_.one_in(2) ? rogue : some_host();
  const LineEnds ends{HostId(static_cast<std::uint32_t>(root)), some_start(root), some_start(to)};
  switch (random_.below(9)) {
    case 0: return LineHello{ends, ends.target_start, random_.below(50), random_.below(20), random_.below(20)};
    case 1: return LineAccepted{ends, random_.below(20), random_.below(50)};
    case 2: return LineOther{ends, random_.below(50)};
    case 3: return LineResync{ends};
    case 4: {
      LineAsks asks;
      asks.ends = ends;
      asks.first = random_.below(20);
      asks.heard = random_.below(20);
      asks.mesh = MeshId(static_cast<std::uint32_t>(random_.below(3)));
      if (random_.one_in(5)) asks.mesh = kGuestsMeshId;
      for (std::uint64_t i = random_.below(4); i > 0; --i) {
        asks.ranks.push_back({Rank(static_cast<std::uint32_t>(random_.below(9))), random_.one_in(4)});
      }
      if (random_.one_in(10)) asks.ranks.assign(kRanksOfAnAsk, {Rank(0), false});
      asks.target = {"a", "f", "*"};
      if (!random_.one_in(4)) asks.caller = some_caller();
      sent.bodies = {asks.caller.mesh.empty() ? kNobodys : kForged};
      return asks;
    }
    case 5: {
      LineAnswer answer{ends, random_.below(20), random_.below(20), {}};
      sent.bodies = {kNobodys};
      return answer;
    }
    case 8: {
      LineAnswers answers{ends, random_.below(20), {}};
      for (std::uint64_t i = random_.below(4); i > 0; --i) answers.answers.push_back({random_.below(20), {}});
      sent.bodies.assign(answers.answers.size(), kNobodys);
      return answers;
    }
    case 6: return LineTakeBack{ends, random_.below(20)};
    default: return LineHeard{ends, random_.below(1'000)};
  }
}

// By a line that is in order it asks a rank for more than its queue has room for, or in the name of starts of ranks
// that nobody knows; and it hears no answer.
void Room::flood(HostNumber rogue) {
  if (healthy_) return;
  scheduler_.after(random_.between(Duration::seconds(2), Duration::seconds(8)), [this, rogue] { flood(rogue); });
  const RankId rank{MeshId(0), Rank(static_cast<std::uint32_t>(random_.below(mesh_sizes_[0])))};
  const HostNumber to = slot(rank).host;
  const PostPtr post = hosts_[to].post;
  const HostId sender(static_cast<std::uint32_t>(rogue));
  if (to == rogue || !post || !hosts_[to].up || !post->peers.contains(sender)) return;
  const LineEnds ends{sender, PostStart{10, ++floods_}, post->start};
  const bool is_doubted = random_.one_in(3);
  const CallerName stranger = some_caller();
  const CallerName forged = some_caller();
  trace_.note(now(), "a host floods a rank", to, rank_index(rank), is_doubted ? 1 : 0);
  post->life->message([this, to, post, sender, rank, ends, is_doubted, stranger, forged] {
    const auto hear = [&](post_event::PeerMessage message) {
      feed(to, post, post_event::PeerSaid{sender, std::move(message)});
    };
    hear(LineHello{.ends = ends, .target = {}, .epoch = 1, .low = 1, .heard = 0});
    for (std::uint64_t number = 1; number <= (is_doubted ? kDoubted : kFlood); ++number) {
      LineAsks asks;
      asks.ends = ends;
      asks.first = number;
      asks.mesh = rank.mesh;
      asks.ranks = {{rank.rank, false}};
      asks.target = {"a", "f", "*"};
      if (is_doubted) asks.caller = {stranger.mesh, stranger.rank, stranger.generation + 1'000 + number};
      if (number <= 3) asks.caller = forged;
      asks.body = give_body(*post, asks.caller.mesh.empty() ? kNobodys : kForged, 100);
      if (is(Bug::kForgedCaller)) asks.caller = {};
      hear(std::move(asks));
    }
  });
}

}  // namespace monarch::sim::calls
