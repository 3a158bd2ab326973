// Five vaults under random faults: messages lost and hosts killed while two gangs save, commit and move, at times for
// many steps one rank without the other. Whatever happens, a step that was committed is found again as long as one of
// those that had it lives on, and old ones are given up everywhere.

#include <gtest/gtest.h>

#include <random>
#include <set>
#include <string>

#include "tests/worker/core/vault/vault_world.h"
#include "transport/base/sanitizers.h"

namespace monarch {
namespace {

constexpr std::uint32_t kHosts = 5;
constexpr std::uint32_t kGangs = 2;
constexpr std::uint32_t kGangSize = 2;
constexpr std::uint64_t kMemory = 4'000;
constexpr int kTurns = 1'500;

struct Saved {
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  std::string content;
  std::vector<HostId> hosts;
  std::vector<std::uint64_t> lives;  // of those hosts, as they were then
};

struct Asking {
  VaultClient client;
  std::string content;
};

struct Gang {
  HostId host;
  std::uint64_t generation = 1;
  std::uint64_t step = 0;                       // that is being saved; 0: none
  std::uint64_t highest = 0;                    // that was
  std::uint64_t ailing = 0;                     // so many steps are saved by one rank alone, by chance which
  std::map<std::uint32_t, std::uint64_t> said;  // by rank, the last beyond `committed`
  std::optional<std::uint64_t> committed;
  std::optional<std::uint64_t> resumed;
  std::map<std::uint32_t, Asking> saving;
  std::map<std::uint32_t, Saved> saved;     // of `step`, by rank
  std::map<std::uint32_t, Saved> last;      // of `committed`
  std::map<std::uint32_t, Asking> loading;  // after a move
};

class Story {
 public:
  explicit Story(std::uint64_t seed) : world_(kHosts, kMemory), random_(seed) {
    world_.by_bodies = seed % 2 == 0;
    for (std::uint32_t i = 0; i < kGangs; ++i) gangs_.push_back({.host = HostId(i)});
    tell();
  }

  void run() {
    for (int turn = 0; turn < kTurns; ++turn) {
      one_turn(true);
      if (HasFatalFailure()) return;
    }
    // Healed: whatever is under way comes to its end.
    for (const HostId host : dead_) revive(host);
    dead_.clear();
    for (int turn = 0; turn < 4'000; ++turn) one_turn(false);
    for (const Gang& gang : gangs_) EXPECT_TRUE(gang.loading.empty());
    EXPECT_GT(commits_, 2U);
    check_bounded();
  }

  std::size_t found() const { return found_; }
  std::size_t moves() const { return moves_; }

 private:
  static bool HasFatalFailure() { return ::testing::Test::HasFatalFailure(); }
  std::uint64_t below(std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random_); }

  void one_turn(bool faults) {
    if (!world_.flights.empty()) {
      // In order on each connection; of which is chance.
      // A body is lost with all of its connection, which is more seldom.
      if (faults && below(world_.flights.front().number == 0 ? 50 : 400) == 0) {
        world_.lose(0);
      } else {
        world_.deliver(0);
      }
    }
    if (below(10) == 0 || world_.flights.empty())
      world_.tick(Duration::milliseconds(static_cast<std::int64_t>(below(700))));
    if (faults && below(150) == 0) kill(HostId(static_cast<std::uint32_t>(below(kHosts))));
    if (faults && !dead_.empty() && below(60) == 0) {
      const HostId host = *dead_.begin();
      dead_.erase(host);
      revive(host);
    }
    for (Gang& gang : gangs_) go_on(gang);
  }

  void go_on(Gang& gang) {
    const std::uint32_t first = static_cast<std::uint32_t>(&gang - gangs_.data()) * kGangSize;
    look_at_loads(gang, first);
    if (!gang.loading.empty()) return;
    if (gang.step == 0) {
      if (below(8) != 0) return;
      gang.step = ++gang.highest;
      if (gang.ailing == 0 && below(60) == 0) gang.ailing = 40;
      const auto alone = gang.ailing > 0 ? std::optional(first + below(kGangSize)) : std::nullopt;
      if (alone) --gang.ailing;
      for (std::uint32_t rank = first; rank < first + kGangSize; ++rank) {
        if (alone && rank != *alone) continue;
        const std::string content = text("r", rank, "g", gang.generation, "s", gang.step, std::string(below(150), 'x'));
        gang.saving[rank] = {world_.save(gang.host, rank, gang.generation, gang.step, content), content};
      }
      return;
    }
    for (auto asking = gang.saving.begin(); asking != gang.saving.end();) {
      const std::string said = world_.answer(gang.host.value(), asking->second.client);
      if (said.empty()) {
        ++asking;
        continue;
      }
      ASSERT_NE(said.find("\"ok\":true"), std::string::npos) << said;
      gang.saved[asking->first] = saved_of(gang, asking->second.content, said);
      asking = gang.saving.erase(asking);
    }
    if (!gang.saving.empty()) return;
    if (gang.saved.size() == kGangSize) {
      gang.committed = gang.step;
      gang.last = gang.saved;
      gang.said.clear();
      ++commits_;
    } else {
      for (const auto& [rank, saved] : gang.saved) gang.said[rank] = gang.step;
    }
    gang.saved.clear();
    gang.step = 0;
    tell();
  }

  Saved saved_of(const Gang& gang, const std::string& content, const std::string& said) {
    Saved saved{.generation = gang.generation, .step = gang.step, .content = content, .hosts = {}, .lives = {}};
    for (std::size_t at = said.find('[') + 1; said[at] != ']'; ++at) {
      if (said[at] == ',') continue;
      saved.hosts.emplace_back(static_cast<std::uint32_t>(said[at] - '0'));
      saved.lives.push_back(lives_[saved.hosts.back()]);
    }
    return saved;
  }

  bool somebody_has(const Saved& saved) {
    for (std::size_t i = 0; i < saved.hosts.size(); ++i) {
      if (!dead_.contains(saved.hosts[i]) && lives_[saved.hosts[i]] == saved.lives[i]) return true;
    }
    return false;
  }

  void look_at_loads(Gang& gang, std::uint32_t) {
    for (auto asking = gang.loading.begin(); asking != gang.loading.end();) {
      const std::string said = world_.answer(gang.host.value(), asking->second.client);
      const Saved& saved = gang.last.at(asking->first);
      if (said.empty()) {
        ++asking;
      } else if (said.find("\"ok\":true") != std::string::npos) {
        ASSERT_EQ(world_.at(gang.host.value()).given.at(asking->second.client), saved.content);
        ++found_;
        asking = gang.loading.erase(asking);
      } else if (somebody_has(saved)) {
        load(gang, asking->first);  // as a rank does until its time is over
        ++asking;
      } else {
        return begin_anew(gang);
      }
    }
  }

  // All copies are lost with their hosts: as a job whose checkpoints are gone.
  void begin_anew(Gang& gang) {
    gang.loading.clear();
    gang.committed.reset();
    gang.resumed.reset();
    gang.last.clear();
    start_again(gang);
    tell();
  }

  void start_again(Gang& gang) {
    ++gang.generation;
    gang.step = 0;
    gang.highest = gang.committed.value_or(0);
    gang.said.clear();
    gang.saving.clear();
    gang.saved.clear();
    gang.loading.clear();
  }

  void load(Gang& gang, std::uint32_t rank) {
    const Saved& saved = gang.last.at(rank);
    gang.loading[rank] = {world_.load(gang.host, rank, saved.generation, saved.step, saved.content, saved.hosts),
                          saved.content};
  }

  void kill(HostId host) {
    if (dead_.contains(host) || dead_.size() + 3 > kHosts) return;
    world_.kill(host);
    dead_.insert(host);
    ++lives_[host];
    for (Gang& gang : gangs_) {
      if (gang.host != host) continue;
      do gang.host = HostId(static_cast<std::uint32_t>(below(kHosts)));
      while (dead_.contains(gang.host));
      ++moves_;
      start_again(gang);
      gang.resumed = gang.committed;
      for (const auto& [rank, saved] : gang.last) load(gang, rank);
    }
    tell();
  }

  void revive(HostId host) {
    world_.start(host);
    tell();
  }

  void tell() {
    ++version_;
    for (std::uint32_t i = 0; i < kHosts; ++i) {
      std::vector<VaultGang> gangs;
      for (std::uint32_t g = 0; g < kGangs; ++g) {
        std::vector<HostId> targets;
        for (std::uint32_t next = 1; next < kHosts && targets.size() < 2; ++next) {
          const HostId target((gangs_[g].host.value() + next) % kHosts);
          if (!dead_.contains(target)) targets.push_back(target);
        }
        gangs.push_back({.mesh = MeshId(0),
                         .gang = GangId(g),
                         .generation = gangs_[g].generation,
                         .committed = gangs_[g].committed,
                         .resumed = gangs_[g].resumed,
                         .targets = targets,
                         .passed = passed(gangs_[g]),
                         .sources = {{gangs_[g].host, Rank(g * kGangSize), kGangSize}}});
      }
      world_.tell(HostId(i), VaultWorld::table_of(version_, gangs, kGangSize));
    }
  }

  static std::optional<std::uint64_t> passed(const Gang& gang) {
    if (gang.said.size() < kGangSize) return std::nullopt;
    std::uint64_t lowest = gang.said.begin()->second;
    for (const auto& [rank, step] : gang.said) lowest = std::min(lowest, step);
    return lowest;
  }

  void check_bounded() {
    for (std::uint32_t i = 0; i < kHosts; ++i) {
      // Of each rank the last two, the one it began with, and the one under way; and of one those that the other has
      // not passed.
      EXPECT_LE(world_.at(i).blobs.size(), 8U * kGangs * kGangSize) << "host " << i;
    }
  }

  VaultWorld world_;
  std::mt19937_64 random_;
  std::vector<Gang> gangs_;
  std::set<HostId> dead_;
  std::map<HostId, std::uint64_t> lives_;
  std::uint64_t version_ = 0;
  std::size_t found_ = 0;
  std::size_t moves_ = 0;
  std::size_t commits_ = 0;
};

TEST(VaultSeeds, FindWhatWasCommittedWhateverHappens) {
  constexpr std::uint64_t kSeeds = kSanitized ? 12 : 40;
  std::size_t found = 0;
  std::size_t moves = 0;
  for (std::uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE(seed);
    Story story(seed);
    story.run();
    ASSERT_FALSE(::testing::Test::HasFailure());
    found += story.found();
    moves += story.moves();
  }
  // Else it shows nothing.
  EXPECT_GT(found, kSeeds);
  EXPECT_GT(moves, kSeeds / 2);
}

}  // namespace
}  // namespace monarch
