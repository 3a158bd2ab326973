#include "tests/sim/posts.h"

#include <algorithm>
#include <string>
#include <utility>

#include "tests/sim/guard.h"
#include "tests/sim/supervisor.h"
#include "tests/sim/violation.h"
#include "tests/sim/world.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

constexpr std::uint64_t kMostOfAHost = 2;
constexpr std::uint16_t kPort = 8'000;
constexpr std::size_t kMostUnanswered = 3;
constexpr Duration kActsSoonest = Duration::milliseconds(100);
constexpr Duration kActsLatest = Duration::seconds(4);
constexpr Duration kFindsDoor = Duration::seconds(4);  // once there is a post again; ClaimDesk::kComesBack is longer
constexpr Duration kLongestAway = Duration::seconds(20);
constexpr Duration kHiccup = Duration::milliseconds(300);
constexpr Duration kBetweenHiccups = Duration::seconds(5);
constexpr Duration kPostRestarts = Duration::seconds(1);
constexpr Duration kSettles = Duration::seconds(20);

}  // namespace

Posts::Posts(World& world) : world_(world), posts_(world.hosts.size()) {}

void Posts::begin() {
  for (std::uint32_t i = 0; i < posts_.size(); ++i) {
    for (std::uint64_t n = 1 + world_.random.below(kMostOfAHost); n > 0; --n) settle_in(HostId(i));
  }
}

void Posts::settle_in(HostId host) { later(move_in(host), world_.random.skewed(kActsSoonest, Duration::seconds(10))); }

Claimant& Posts::move_in(HostId host) {
  all_.push_back(std::make_unique<Claimant>());
  all_.back()->self = {host, ClaimOwner(++last_owner_)};
  return *all_.back();
}

// With its machine.
void Posts::later(Claimant& who, Duration wait) {
  send_after(world_.scheduler, wait, world_.host(who.self.host).kernel, [this, &who] { act(who); });
}

// Half of them end, so that what they had must be found to be nobody's; the others stay as they are.
void Posts::heal() {
  for (const auto& who : all_) {
    if (world_.random.one_in(2)) leave(*who, Duration::forever());
  }
}

void Posts::crash() {
  const HostId host(static_cast<std::uint32_t>(world_.random.below(posts_.size())));
  if (!is_up(host) || world_.host(host).frozen()) return;
  world_.note("post dies", host.value());
  stop(host);
  const Duration wait = world_.random.skewed(Duration::milliseconds(10), kPostRestarts);
  send_after(world_.scheduler, wait, world_.host(host).kernel, [this, host] { look_at(host); });
}

bool Posts::is_up(HostId host) {
  const Post& post = posts_[host.value()];
  return post.start != 0 && post.worker == world_.host(host).worker() && post.worker->keeper_alive();
}

void Posts::start(HostId host) {
  posts_[host.value()] = Post{.worker = world_.host(host).worker(),
                              .start = ++last_start_,
                              .said_at = posts_[host.value()].said_at,
                              .roster_term = {},
                              .roster = 0,
                              .table = {}};
  world_.note("post starts", host.value(), last_start_);
  for (const auto& who : all_) {
    if (who->self.host != host || who->gone || who->strays) continue;
    Claimant& comes = *who;
    send_after(world_.scheduler, world_.random.skewed(Duration::milliseconds(5), kFindsDoor), world_.host(host).kernel,
               [this, &comes] { come(comes); });
  }
}

void Posts::stop(HostId host) {
  posts_[host.value()].start = 0;
  for (const auto& who : all_) {
    if (who->self.host == host) who->door.reset();
  }
}

// A worker has one post, whichever daemon it has.
void Posts::look_at(HostId host) {
  if (is_up(host)) return;
  stop(host);
  const Worker* worker = world_.host(host).worker();
  if (worker != nullptr && worker->keeper_alive()) start(host);
}

std::optional<PostReport> Posts::report(HostId host, const Worker& worker) {
  Post& post = posts_[host.value()];
  if (post.worker != &worker) look_at(host);
  if (post.worker != &worker || !is_up(host)) return std::nullopt;
  PostReport report{.port = kPort, .roster_term = post.roster_term, .roster_number = post.roster, .start = post.start};
  report.wishes = post.table.reported();
  report.owners = post.table.owners();
  return report;
}

void Posts::hears_roster(HostId host, const Roster& roster) {
  Post& post = posts_[host.value()];
  if (std::pair(roster.term, roster.number) < std::pair(post.roster_term, post.roster)) return;
  post.roster_term = roster.term;
  post.roster = roster.number;
}

void Posts::answered(HostId host, const ClaimAnswer& answer) {
  if (!is_up(host)) return;
  posts_[host.value()].table.answered(answer);
  hand_out(host);
}

void Posts::hand_out(HostId host) {
  for (const auto& [door, granted] : posts_[host.value()].table.take_answers()) {
    const auto found =
        std::find_if(all_.begin(), all_.end(), [door = door](const auto& who) { return who->door == door; });
    if (found == all_.end()) continue;
    Claimant& who = **found;
    const bool waited = who.unanswered.erase(granted.number) > 0;
    must(waited, "claims", text("wish ", granted.number, " is answered twice"));
    const PostWish& wish = who.said.at(granted.number);
    world_.note("answered", host.value(), who.self.owner.value(), granted.number, granted.error.empty() ? 1 : 0);
    if (granted.error.empty() && wish.let_go == 0) who.has.insert(granted.number);
  }
}

const Claimant* Posts::find(const ClaimHolder& holder) const {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const auto& who) { return who->self == holder; });
  return found == all_.end() ? nullptr : found->get();
}

bool Posts::lost(const ClaimHolder& holder, std::uint64_t number) {
  return std::any_of(all_.begin(), all_.end(),
                     [&](const auto& who) { return who->self == holder && who->has.erase(number) > 0; });
}

void Posts::has_again(const ClaimHolder& holder, std::uint64_t number) {
  for (const auto& who : all_) {
    if (who->self == holder) who->has.insert(number);
  }
}

bool Posts::is_settled(const Claimant& who) const {
  const Host& host = world_.host(who.self.host);
  const Instant then = posts_[who.self.host.value()].said_at;
  const bool woke_lately = host.stood_still > Duration::zero() && then - host.thawed_at < kSettles;
  return !who.gone && !who.strays && then - who.back_at >= kSettles && !host.off && !host.frozen() && !woke_lately;
}

// ---- what they do ----

void Posts::act(Claimant& who) {
  if (who.gone || world_.exit_code()) return;
  if (world_.healed()) {
    who.strays = false;
    return come(who);
  }
  look_at(who.self.host);
  if (who.door) {
    act_here(who);
  } else {
    come(who);
  }
  if (who.gone || !who.strays) later(who, world_.random.skewed(kActsSoonest, kActsLatest));
}

void Posts::come(Claimant& who) {
  if (who.gone || who.door || !is_up(who.self.host)) return;
  if (std::exchange(who.strays, false)) who.back_at = world_.scheduler.now();
  who.door = DoorId(++last_door_);
  world_.note("comes", who.self.host.value(), who.self.owner.value());
  Post& post = posts_[who.self.host.value()];
  if (who.last_wish != 0) post.table.came(*who.door, who.self.owner);
  for (const std::uint64_t number : who.unanswered) post.table.said(*who.door, who.said.at(number));
  hand_out(who.self.host);
}

void Posts::leave(Claimant& who, Duration away) {
  if (who.gone) return;
  world_.note("leaves", who.self.host.value(), who.self.owner.value(), away == Duration::forever() ? 1 : 0);
  who.strays = true;
  if (who.door) posts_[who.self.host.value()].table.left(*std::exchange(who.door, std::nullopt));
  who.gone = away == Duration::forever();
  if (!who.gone) later(who, away);
}

void Posts::act_here(Claimant& who) {
  Random& random = world_.random;
  const std::uint64_t what = random.below(20);
  const auto any_of = [&random](const std::set<std::uint64_t>& numbers) {
    return *std::next(numbers.begin(), static_cast<std::ptrdiff_t>(random.below(numbers.size())));
  };
  if (what < 9) {
    if (who.unanswered.size() < kMostUnanswered) wish(who);
  } else if (what < 14) {
    if (!who.has.empty()) let_go(who, any_of(who.has));
  } else if (what < 15) {
    // Before it is known whether it was granted, or once more.
    const std::uint64_t number = who.last_wish == 0 ? 0 : 1 + random.below(who.last_wish);
    if (number != 0 && who.said.at(number).let_go == 0) let_go(who, number);
  } else if (what < 17) {
    // Two of them in a row may be just when its post is asked.
    const Duration hiccup = random.between(Duration::zero(), kHiccup);
    if (world_.scheduler.now() - who.hiccup_at < kBetweenHiccups) return;
    who.hiccup_at = world_.scheduler.now();
    if (who.door) posts_[who.self.host.value()].table.left(*std::exchange(who.door, std::nullopt));
    send_after(world_.scheduler, hiccup, world_.host(who.self.host).kernel, [this, &who] { come(who); });
  } else if (what < 18) {
    leave(who, random.skewed(Duration::milliseconds(10), kLongestAway));
  } else if (what < 19 && random.one_in(4)) {
    const HostId host = who.self.host;
    leave(who, Duration::forever());
    settle_in(host);
  }
}

// Mostly of those that have slots, in any order.
std::vector<std::string> Posts::some_hosts() {
  const Supervisor* supervisor = world_.guard->supervisor();
  if (supervisor == nullptr || !supervisor->open()) return {};
  const JobCore& core = supervisor->core();
  std::vector<std::string> with_slots;
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    for (std::uint32_t i = 0; core.spec().meshes[m].idle && i < posts_.size(); ++i) {
      const bool any = core.placement().gangs_on(MeshId(m), HostId(i)).count > 0;
      if (any || world_.random.one_in(20)) with_slots.push_back(core.hosts()[i].name);
    }
  }
  std::vector<std::string> names;
  for (std::uint64_t n = world_.random.below(4); n > 0 && !with_slots.empty(); --n) {
    const std::string& other = with_slots[world_.random.below(with_slots.size())];
    if (std::find(names.begin(), names.end(), other) == names.end()) names.push_back(other);
  }
  return names;
}

SlotWish Posts::draw_wish(const Claimant& who) {
  Random& random = world_.random;
  SlotWish what;
  what.count = random.one_in(3) ? static_cast<std::uint32_t>(random.between(2, 3)) : 1;
  if (!random.one_in(3)) what.hosts = some_hosts();
  if (random.one_in(8)) {
    const auto& meshes = world_.scenario.spec.meshes;
    what.mesh = meshes[random.below(meshes.size())].name;
  }
  if (random.one_in(2)) what.name = "workers";
  what.env = {{"CLAIM", text(who.self.owner.value(), ".", who.last_wish)}, {"OF_ALL", "claim"}};
  if (random.one_in(2)) {
    const std::size_t ranks = what.count * std::max<std::size_t>(what.hosts.size(), 1);
    for (std::size_t i = 0; i < ranks; ++i) what.rank_env.push_back({{"OF_ALL", text("rank ", i)}});
  }
  return what;
}

void Posts::wish(Claimant& who) {
  PostWish wish{.number = ++who.last_wish, .owner = who.self.owner, .let_go = 0, .what = {}};
  wish.what = draw_wish(who);
  say(who, std::move(wish));
}

void Posts::let_go(Claimant& who, std::uint64_t number) {
  who.has.erase(number);
  say(who, {.number = ++who.last_wish, .owner = who.self.owner, .let_go = number, .what = {}});
}

void Posts::say(Claimant& who, PostWish wish) {
  world_.note("wishes", who.self.host.value(), who.self.owner.value(), wish.number, wish.let_go);
  who.unanswered.insert(wish.number);
  who.said.emplace(wish.number, wish);
  posts_[who.self.host.value()].table.said(*who.door, wish);
  hand_out(who.self.host);
}

}  // namespace monarch::sim
