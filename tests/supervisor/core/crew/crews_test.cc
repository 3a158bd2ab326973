#include "supervisor/core/crew/crews.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/facts/reports.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

struct Kind final : CrewKind {
  std::optional<Reserve> reserve_of(const CrewKey& key, std::size_t) const override {
    if (!asks) return std::nullopt;
    return Reserve{.mesh = key.mesh, .gang = key.gang, .count = 1};
  }
  Start start_of(const CrewKey& key, std::size_t) const override { return {.mesh = key.mesh, .gang = key.gang}; }
  bool stands_by() const override { return at_gate; }
  std::string name_of(const CrewKey&) const override { return "crew"; }

  bool asks = true;
  bool at_gate = false;
};

// One crew of four members on two hosts.
class CrewsTest : public ::testing::Test {
 protected:
  CrewsTest() {
    state.hosts.resize(3);
    for (HostState& host : state.hosts) host.phase = HostPhase::kJoined;
    state.term = Term(1);
    Crew crew;
    crew.members.resize(4);
    state.crews = {{crew}};
    crews.serve(kKey.mesh, kind);
  }
  void begin() { crews.begin(kKey, {HostId(0), HostId(1)}, Instant::never()); }
  void start() {
    begin();
    for (std::uint32_t host = 0; host < 2; ++host) holds(host);
    crews.start(kKey);
  }
  void holds(std::uint32_t host) {
    crews.holds(HostId(host), {.mesh = kKey.mesh, .gang = kKey.gang, .ports = {29'500}});
  }
  RankReport report(std::uint32_t index, RankPhase phase, bool at_gate = false) const {
    RankReport told;
    told.process = {{kKey.mesh, Rank(index)}, crew().generation};
    told.phase = phase;
    told.pid = 7;
    told.at_gate = at_gate;
    return told;
  }
  bool hears(std::uint32_t index, RankPhase phase, bool at_gate = false) {
    return crews.heard({kKey, index}, report(index, phase, at_gate));
  }
  void all_run() {
    for (std::uint32_t i = 0; i < 4; ++i) hears(i, RankPhase::kRunning);
    EXPECT_EQ(crews.look(kKey), Crews::Turn::kUp);
  }
  bool stop(bool again = false) {
    return crews.stop(kKey, {.signal = 15, .grace = kCrewGrace, .deadline = now + kCrewGrace, .again = again});
  }
  const Crew& crew() const { return crews.at(kKey); }
  std::vector<Action> outstanding(std::uint32_t host, const std::vector<RankReport>& reported = {}) const {
    std::vector<Action> missing;
    crews.add_outstanding(HostId(host), reported, missing);
    return missing;
  }
  template <class T>
  std::size_t said() const {
    return static_cast<std::size_t>(std::count_if(
        actions.begin(), actions.end(), [](const Action& action) { return std::holds_alternative<T>(action); }));
  }

  static constexpr CrewKey kKey{MeshId(0), GangId(0)};
  JobSpec spec = fixtures::job_of(2, 2);
  std::vector<PoolHost> pool = pool_of(spec);
  JobCoreOptions options;
  Placement placement{spec};
  Resources resources{spec, placement};
  std::vector<MeshTexts> texts;
  JobState state;
  Instant now = Instant::since_boot(Duration::seconds(100));
  std::vector<Action> actions;
  Stages stages{spec};
  bool waits_due = false;
  CoreBasis basis{{.spec = spec,
                   .hosts = pool,
                   .options = options,
                   .placement = placement,
                   .stages = stages,
                   .resources = resources,
                   .texts = texts,
                   .state = state,
                   .now = now},
                  actions,
                  state.next_event,
                  waits_due};
  Kind kind;
  Crews crews{basis, state.crews};
};

TEST_F(CrewsTest, AskEachHostAndStartOnceAllHold) {
  begin();
  EXPECT_EQ(said<SendReserve>(), 2U);
  EXPECT_EQ(crew().generation, (Generation{Term(1), 1}));
  EXPECT_TRUE(crews.awaits(HostId(0), {.mesh = kKey.mesh, .gang = kKey.gang, .generation = crew().generation}));
  EXPECT_FALSE(crews.awaits(HostId(2), {.mesh = kKey.mesh, .gang = kKey.gang, .generation = crew().generation}));
  holds(0);
  EXPECT_FALSE(crews.awaits(HostId(0), {.mesh = kKey.mesh, .gang = kKey.gang, .generation = crew().generation}));
  EXPECT_FALSE(crews.all_held(kKey));
  holds(1);
  ASSERT_TRUE(crews.all_held(kKey));
  crews.start(kKey);
  EXPECT_EQ(said<SendStart>(), 2U);
  EXPECT_EQ(crew().phase, CrewPhase::kStarting);
}

TEST_F(CrewsTest, AskNobodyWhoNeedsToHoldNothing) {
  kind.asks = false;
  begin();
  EXPECT_EQ(said<SendReserve>(), 0U);
  EXPECT_TRUE(crews.all_held(kKey));
}

TEST_F(CrewsTest, SayAgainWhatABeatShowsToBeLost) {
  begin();
  ASSERT_EQ(outstanding(1).size(), 1U);
  EXPECT_TRUE(std::holds_alternative<SendReserve>(outstanding(1)[0]));
  holds(1);
  EXPECT_TRUE(outstanding(1).empty());
  holds(0);
  crews.start(kKey);
  ASSERT_EQ(outstanding(1).size(), 1U);
  EXPECT_TRUE(std::holds_alternative<SendStart>(outstanding(1)[0]));
  EXPECT_TRUE(outstanding(1, {report(2, RankPhase::kGated), report(3, RankPhase::kGated)}).empty());
  stop();
  ASSERT_EQ(outstanding(0).size(), 1U);
  EXPECT_EQ(std::get<SendStop>(outstanding(0)[0]).message.ranks.size(), 2U);
  EXPECT_TRUE(outstanding(0, {report(0, RankPhase::kStopping), report(1, RankPhase::kStopping)}).empty());
}

TEST_F(CrewsTest, AreUpOnceEachMemberHasBegunAndOverOnceNoneLives) {
  start();
  for (std::uint32_t i = 0; i < 3; ++i) hears(i, RankPhase::kRunning);
  EXPECT_EQ(crews.look(kKey), Crews::Turn::kNone);
  hears(3, RankPhase::kEnded);
  EXPECT_EQ(crews.look(kKey), Crews::Turn::kUp);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_TRUE(hears(i, RankPhase::kEnded));
  EXPECT_FALSE(hears(0, RankPhase::kEnded)) << "it was over before";
  EXPECT_EQ(crews.look(kKey), Crews::Turn::kOver);
  std::vector<RankId> ranks;
  crews.add_output_on_its_way(ranks);
  EXPECT_EQ(ranks.size(), 4U);
  crews.forget_output({kKey, 2});
  ranks.clear();
  crews.add_output_on_its_way(ranks);
  EXPECT_EQ(ranks.size(), 3U);
}

TEST_F(CrewsTest, ThatStandByAreUpAtTheirGates) {
  kind.at_gate = true;
  start();
  for (std::uint32_t i = 0; i < 4; ++i) hears(i, RankPhase::kRunning);
  EXPECT_EQ(crews.look(kKey), Crews::Turn::kNone);
  for (std::uint32_t i = 0; i < 4; ++i) hears(i, RankPhase::kRunning, true);
  EXPECT_EQ(crews.look(kKey), Crews::Turn::kUp);
  crews.lose_member(kKey, 0);
  EXPECT_FALSE(hears(0, RankPhase::kEnded));
  EXPECT_EQ(crew().members[0].stage, RankStage::kEnded) << "its last words as what it was are on their way";
}

TEST_F(CrewsTest, AreStoppedOnceAndAgainWhereThatIsAskedFor) {
  start();
  all_run();
  EXPECT_TRUE(stop());
  EXPECT_EQ(said<SendStop>(), 2U);
  EXPECT_EQ(crew().deadline, now + kCrewGrace);
  EXPECT_FALSE(stop());
  EXPECT_TRUE(stop(true));
  EXPECT_EQ(said<SendStop>(), 4U);
  EXPECT_EQ(crews.overdue(kKey).size(), 4U);
  EXPECT_EQ(crew().deadline, Instant::never());
}

TEST_F(CrewsTest, LetGoOfWhatIsHeldByALaterGeneration) {
  begin();
  const Generation before = crew().generation;
  EXPECT_TRUE(stop());
  EXPECT_GT(crew().generation, before);
  EXPECT_EQ(said<SendReserve>(), 4U);
  EXPECT_EQ(said<SendStop>(), 0U);
  EXPECT_EQ(crews.look(kKey), Crews::Turn::kOver);
}

TEST_F(CrewsTest, JudgeByGenerationAndHost) {
  start();
  const Generation first = crew().generation;
  const auto judged = [this](HostId host, Generation generation) {
    return judge_beside(basis, {kKey, 2}, host, generation);
  };
  EXPECT_EQ(judged(HostId(1), first).of, ReportOf::kOfNow);
  EXPECT_TRUE(judged(HostId(1), first).granted);
  EXPECT_EQ(judged(HostId(0), first).of, ReportOf::kStranger);
  for (std::uint32_t i = 0; i < 4; ++i) hears(i, RankPhase::kEnded);
  EXPECT_FALSE(judged(HostId(1), first).granted);
  crews.look(kKey);
  crews.begin(kKey, {HostId(0), HostId(2)}, Instant::never());
  EXPECT_EQ(judged(HostId(1), first).of, ReportOf::kSuperseded);
  EXPECT_EQ(judged(HostId(2), first).of, ReportOf::kStranger);
}

TEST_F(CrewsTest, LoseTheMembersOfALostHost) {
  start();
  all_run();
  EXPECT_FALSE(crews.lose(kKey, HostId(2)));
  EXPECT_TRUE(crews.lose(kKey, HostId(1)));
  EXPECT_EQ(crew().members[1].stage, RankStage::kRunning);
  EXPECT_EQ(crew().members[2].stage, RankStage::kLost);
  EXPECT_FALSE(crews.lose(kKey, HostId(1))) << "nothing lives there any more";
}

}  // namespace
}  // namespace monarch
