#include "supervisor/drill/core/drill_core.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "transport/base/text.h"

namespace monarch::drill {
namespace {

constexpr Duration kTick = Duration::milliseconds(100);

FaultEntry fault(const std::string& name) { return {.fault = name}; }

// Two gangs of two ranks on a host each, and a spare; time passes in ticks, and whatever the drill wants is done.
class FakeDrill {
 public:
  explicit FakeDrill(Scenario scenario) : scenario_(std::move(scenario)) {
    scenario_.settle = Duration::seconds(1);
    scenario_.control = Duration::seconds(2);
    DrillPlan plan{.scenario = scenario_, .seed = 42, .meshes = {mesh()}, .times = {}, .meant = nullptr};
    plan.times.lost_after = Duration::seconds(5);
    plan.meant = [](const FaultTarget& target, RankId rank, const std::string& host) {
      const bool by_rank = target.rank.empty() || target.rank == text(rank.rank.value());
      return by_rank && (target.host.empty() || target.host == kRandom || target.host == host);
    };
    core_ = std::make_unique<DrillCore>(std::move(plan));
    for (int gang = 0; gang < 2; ++gang) gangs_.push_back({.host = text("v", gang + 1), .phase = "ready"});
  }

  static DrillMesh mesh() { return {.name = "trainer", .ranks = 4, .ranks_per_gang = 2}; }

  DrillNow now() const { return {now_, {now_.since_boot().count_nanoseconds() + 1'000'000'000'000}}; }
  DrillCore& core() { return *core_; }

  void tell(EventKind kind, std::uint32_t gang, const EventDetails& details = {}) {
    JobEvent event{.kind = kind, .mesh = "trainer", .details = details};
    event.generation = gangs_[gang].generation;
    event.details.emplace_back("gang", text(gang));
    core_->on_event(event, now());
    act();
  }

  JobStatus status() const {
    JobStatus told;
    told.meshes.resize(1);
    for (const Gang& gang : gangs_) {
      told.meshes[0].gangs.push_back({.phase = gang.phase});
      for (int i = 0; i < 2; ++i) {
        const bool runs = gang.phase == "running" || gang.phase == "ready";
        RankStatus rank{.phase = runs ? "running" : "starting", .host = gang.host, .ready = gang.phase == "ready"};
        rank.generation = gang.generation;
        rank.progress.step = gang.step;
        told.meshes[0].ranks.push_back(rank);
      }
      told.hosts.push_back({.name = gang.host, .phase = "ready", .role = "rank"});
    }
    if (has_spare) told.hosts.push_back({.name = "v3", .phase = "ready", .role = "spare"});
    return told;
  }

  void pass(Duration time) {
    for (const Instant end = now_ + time; now_ < end && !core_->over();) {
      now_ = now_ + kTick;
      for (Gang& gang : gangs_) {
        if (gang.phase == "ready") gang.step += steps_per_tick;
      }
      for (auto& [number, until] : lasting_) {
        if (now_ < until) continue;
        until = Instant::never();
        core_->on_taken_back(number, "", felt, now());
      }
      core_->on_status(status(), now());
      act();
    }
  }

  void fail(std::uint32_t gang) {
    tell(EventKind::kGangFailed, gang);
    gangs_[gang].phase = "restarting";
  }
  // Its ranks are ready, and go on from a checkpoint.
  void start(std::uint32_t gang, std::uint64_t from, std::uint64_t furthest) {
    tell(EventKind::kGangStarting, gang, {{"from_step", text(from)}, {"furthest", text(furthest)}});
    gangs_[gang].phase = "ready";
    tell(EventKind::kGangReady, gang);
  }
  // Its program says neither that it is ready nor a step.
  void start_silently(std::uint32_t gang) {
    ++gangs_[gang].generation;
    tell(EventKind::kGangStarting, gang);
    gangs_[gang].phase = "ready";
    tell(EventKind::kGangRunning, gang);
  }
  void recover(std::uint32_t gang) {
    start(gang, 20, 40);
    tell(EventKind::kGangCaughtUp, gang);
  }

  DrillRecord record() const {
    DrillRecord record;
    core_->write(record);
    return record;
  }

  bool has_spare = true;
  bool answers_strikes = true;
  std::uint64_t steps_per_tick = 1;
  std::string refusal;
  std::string no_effect;
  std::optional<bool> felt;
  bool answers_looks = true;
  std::vector<std::string> looked;
  std::vector<std::string> done;
  std::vector<std::string> said;

 private:
  struct Gang {
    std::string host;
    std::string phase;
    std::uint64_t step = 0;
    std::uint64_t generation = 1;
  };

  void act() {
    for (bool more = true; more;) {
      const auto actions = core_->take_actions();
      more = !actions.empty();
      for (const DrillAction& action : actions) perform(action);
    }
  }
  void perform(const DrillAction& action) {
    if (const auto* tell_of = std::get_if<TellOfBlow>(&action)) {
      done.push_back(text("tell ", tell_of->blow.number));
      core_->on_told(tell_of->blow.number, refusal, now());
    } else if (const auto* strike = std::get_if<StrikeNow>(&action)) {
      const Blow& blow = strike->blow;
      done.push_back(text("strike ", blow.fault, " ", blow.target.host, "/", blow.target.rank));
      if (!answers_strikes) return;
      core_->on_struck(blow.number, {no_effect, {100}, now().wall, now().wall, Duration()}, now());
      if (blow.lasts > Duration::zero()) lasting_[blow.number] = now_ + blow.lasts;
    } else if (const auto* back = std::get_if<TakeBack>(&action)) {
      done.push_back(text("take back ", back->number));
      core_->on_taken_back(back->number, "", felt, now());
    } else if (const auto* told = std::get_if<TellTakenBack>(&action)) {
      done.push_back(text("closed ", told->blow.number));
    } else if (const auto* forgive = std::get_if<Forgive>(&action)) {
      done.push_back(text("forgive ", forgive->ranks.size()));
    } else if (const auto* look = std::get_if<LookForRanks>(&action)) {
      done.push_back("look");
      looked = look->hosts;
      if (answers_looks) core_->on_looked(now());
    } else if (const auto* said_now = std::get_if<SayPhase>(&action)) {
      said.push_back(said_now->words);
    }
  }

  Scenario scenario_;
  Instant now_ = Instant::since_boot(Duration::seconds(100));
  std::vector<Gang> gangs_;
  std::map<std::uint32_t, Instant> lasting_;
  std::unique_ptr<DrillCore> core_;
};

std::uint32_t struck_gang(const FakeDrill& drill) { return drill.record().blows.back().target.gangs.front().gang; }

TEST(DrillCore, StrikesNobodyBeforeTheJobHasSettledAndControlIsOver) {
  Scenario scenario;
  scenario.faults = {fault("kill")};
  FakeDrill drill(scenario);
  drill.pass(Duration::milliseconds(2'900));
  EXPECT_TRUE(drill.done.empty());
  drill.pass(Duration::milliseconds(300));
  ASSERT_EQ(drill.done.size(), 2U);
  EXPECT_EQ(drill.done[0], "tell 1");
  EXPECT_EQ(drill.done[1].substr(0, 11), "strike kill");
}

TEST(DrillCore, EndsOnceTheJobIsPastWhereItWas) {
  Scenario scenario;
  scenario.faults = {fault("kill")};
  FakeDrill drill(scenario);
  drill.pass(Duration::seconds(4));
  drill.fail(struck_gang(drill));
  drill.pass(Duration::seconds(10));
  EXPECT_FALSE(drill.core().over());
  drill.recover(struck_gang(drill));
  drill.pass(Duration::seconds(3));
  EXPECT_TRUE(drill.core().over());
  const std::vector<std::string> end(drill.done.begin() + 2, drill.done.end());
  EXPECT_EQ(end, (std::vector<std::string>{"closed 1", "forgive 1", "look"}));
  const DrillRecord record = drill.record();
  ASSERT_EQ(record.blows.size(), 1U);
  EXPECT_EQ(record.blows[0].end, BlowEnd::kEffective);
  EXPECT_LT(record.control_from, record.control_to);
  EXPECT_LT(record.control_to, record.faults_to);
}

TEST(DrillCore, EndsWhereNoStepHasToBeDoneAgain) {
  Scenario scenario;
  scenario.faults = {fault("kill")};
  for (const bool behind : {false, true}) {
    FakeDrill drill(scenario);
    drill.pass(Duration::seconds(4));
    drill.fail(struck_gang(drill));
    drill.start(struck_gang(drill), behind ? 39 : 40, 40);
    drill.pass(Duration::seconds(4));
    EXPECT_EQ(drill.core().over(), !behind);
  }
}

TEST(DrillCore, TakesAProgramThatSaysNothingForReadyOnceItRuns) {
  Scenario scenario;
  scenario.faults = {fault("kill")};
  FakeDrill drill(scenario);
  drill.steps_per_tick = 0;
  drill.pass(Duration::seconds(4));
  drill.tell(EventKind::kGangFailed, struck_gang(drill));
  drill.pass(Duration::seconds(3));  // the status is of before the failure
  EXPECT_FALSE(drill.core().over());
  drill.start_silently(struck_gang(drill));
  drill.pass(Duration::seconds(3));
  EXPECT_TRUE(drill.core().over());
}

TEST(DrillCore, NamesWhoIsMissingAndEndsWhereTheJobDoesNotSettle) {
  Scenario scenario;
  scenario.faults = {fault("kill")};
  FakeDrill drill(scenario);
  drill.pass(Duration::milliseconds(100));
  drill.fail(1);
  drill.pass(Duration::seconds(31));
  ASSERT_EQ(drill.said.size(), 1U);
  EXPECT_EQ(drill.said[0], "the job has not settled yet: gang 1 of trainer is restarting");
  drill.pass(Duration::seconds(300));
  EXPECT_TRUE(drill.core().over());
  EXPECT_EQ(drill.record().cut_short, "the job has not settled within 3m: gang 1 of trainer is restarting");
  EXPECT_TRUE(drill.done.empty());
}

TEST(DrillCore, SaysWhatItWaitsForWhileAFaultIsOpen) {
  Scenario scenario;
  scenario.faults = {fault("kill"), fault("segv")};
  FakeDrill drill(scenario);
  drill.pass(Duration::seconds(4));
  const BlowTarget target = drill.record().blows[0].target;
  const std::string gang = text("gang ", target.gangs.front().gang);
  drill.fail(target.gangs.front().gang);
  drill.said.clear();
  drill.pass(Duration::seconds(58));
  ASSERT_EQ(drill.said.size(), 1U);
  EXPECT_EQ(drill.said[0], text("fault 1 (kill of trainer/", target.rank, ") is not recovered from yet: ", gang,
                                " of trainer is restarting"));
  drill.pass(Duration::seconds(5));
  EXPECT_EQ(drill.said.back(), "fault 2 (segv) is skipped: faults before it were not recovered from for 1m");
  drill.pass(Duration::seconds(60));
  EXPECT_EQ(drill.record().blows[0].why, text("not recovered from within 1m 5s: ", gang, " of trainer is restarting"));
}

TEST(DrillCore, CountsAFaultWhoseEventDidNotComeAsSkipped) {
  Scenario scenario;
  scenario.faults = {fault("kill"), fault("kill")};
  scenario.faults[0].trigger = TriggerKind::kOnEvent;
  scenario.faults[0].event = EventKind::kCheckpointCommitted;
  scenario.faults[0].times = 2;
  scenario.faults[1].trigger = TriggerKind::kOnStep;
  scenario.faults[1].step = 100'000;
  scenario.duration = Duration::seconds(20);
  FakeDrill drill(scenario);
  drill.pass(Duration::seconds(30));
  EXPECT_TRUE(drill.core().over());
  const DrillRecord record = drill.record();
  ASSERT_EQ(record.blows.size(), 2U);
  EXPECT_EQ(record.blows[0].end, BlowEnd::kSkipped);
  EXPECT_EQ(record.blows[0].why, "checkpoint.committed came 0 times of 2");
  EXPECT_EQ(record.blows[1].why, "no gang that is meant came to step 100000");
}

TEST(DrillCore, DoesNotStrikeWhileAnotherFaultIsOpen) {
  Scenario scenario;
  scenario.faults = {fault("kill"), fault("segv")};
  FakeDrill drill(scenario);
  drill.pass(Duration::seconds(4));
  EXPECT_EQ(std::count(drill.done.begin(), drill.done.end(), "tell 2"), 0);
  drill.fail(drill.record().blows[0].target.gangs.front().gang);
  drill.pass(Duration::seconds(5));
  EXPECT_EQ(std::count(drill.done.begin(), drill.done.end(), "tell 2"), 0);
  drill.recover(drill.record().blows[0].target.gangs.front().gang);
  drill.pass(Duration::seconds(1));
  EXPECT_EQ(std::count(drill.done.begin(), drill.done.end(), "tell 2"), 1);
}

TEST(DrillCore, StrikesNobodyWhileHostsAreLookedAt) {
  Scenario scenario;
  scenario.faults = {fault("kill"), fault("segv")};
  FakeDrill drill(scenario);
  drill.answers_looks = false;
  drill.pass(Duration::seconds(4));
  const BlowTarget first = drill.record().blows[0].target;
  drill.fail(first.gangs.front().gang);
  drill.recover(first.gangs.front().gang);
  drill.pass(Duration::seconds(3));
  EXPECT_EQ(drill.looked, (std::vector<std::string>{first.host}));
  EXPECT_EQ(std::count(drill.done.begin(), drill.done.end(), "tell 2"), 0);
  drill.core().on_looked(drill.now());
  drill.pass(kTick);
  EXPECT_EQ(std::count(drill.done.begin(), drill.done.end(), "tell 2"), 1);
}

TEST(DrillCore, WaitsForNobodyWhoHasGoneWithAJobThatEnded) {
  Scenario scenario;
  scenario.faults = {fault("kill"), fault("segv")};
  FakeDrill drill(scenario);
  drill.answers_strikes = false;
  drill.pass(Duration::seconds(4));
  drill.core().on_new_job(drill.now());
  EXPECT_EQ(drill.record().blows[0].end, BlowEnd::kInert);
  drill.answers_strikes = true;
  drill.answers_looks = false;
  drill.pass(Duration::seconds(1));
  ASSERT_EQ(std::count(drill.done.begin(), drill.done.end(), "tell 2"), 1);
  const std::uint32_t gang = drill.record().blows[1].target.gangs.front().gang;
  drill.fail(gang);
  drill.recover(gang);
  drill.pass(Duration::seconds(1));
  drill.core().on_new_job(drill.now());
  drill.pass(Duration::seconds(5));
  EXPECT_TRUE(drill.core().over());
}

TEST(DrillSamples, AreThinnedWhereTheyAreTooManyAndKeepTheEndOfEachJob) {
  std::vector<DrillSample> samples;
  for (int i = 0; i < 1'000; ++i) {
    samples.push_back({.at = {i}, .job = i < 500 ? 0U : 1U, .meshes = {}, .hosts = {}});
  }
  thin(samples, std::size_t{1} << 30U);
  EXPECT_EQ(samples.size(), 1'000U);
  thin(samples, 50'000);
  EXPECT_EQ(samples.size(), 502U);
  EXPECT_EQ(samples.back().at, WallTime{999});
  EXPECT_TRUE(
      std::any_of(samples.begin(), samples.end(), [](const DrillSample& one) { return one.at == WallTime{499}; }));
}

TEST(DrillCore, SkipsAFaultWhoseTargetIsNotWellForTooLong) {
  Scenario scenario;
  scenario.faults = {fault("power-loss")};
  scenario.guard = {.max_gangs_down = 1, .min_spares = 1, .wait = Duration::seconds(5)};
  FakeDrill drill(scenario);
  drill.has_spare = false;
  drill.pass(Duration::seconds(12));
  EXPECT_TRUE(drill.core().over());
  const DrillRecord record = drill.record();
  ASSERT_EQ(record.blows.size(), 1U);
  EXPECT_EQ(record.blows[0].end, BlowEnd::kSkipped);
  EXPECT_EQ(record.blows[0].why, "0 spares of 1 connected (guard.min_spares) for 5s");
}

TEST(DrillCore, TakesWhatHasNoEffectForInertAndGoesOn) {
  Scenario scenario;
  scenario.faults = {fault("kill"), fault("segv")};
  FakeDrill drill(scenario);
  drill.no_effect = "of 1 processes 0 were struck within 5s";
  drill.pass(Duration::seconds(8));
  EXPECT_TRUE(drill.core().over());
  for (const Blow& blow : drill.record().blows) {
    EXPECT_EQ(blow.end, BlowEnd::kInert);
    EXPECT_EQ(blow.why, drill.no_effect);
  }
}

TEST(DrillCore, TakesALimitThatNobodyRanIntoForInert) {
  Scenario scenario;
  scenario.faults = {fault("no-files")};
  scenario.faults[0].lasts = Duration::seconds(2);
  FakeDrill drill(scenario);
  drill.felt = false;
  drill.pass(Duration::seconds(10));
  ASSERT_TRUE(drill.core().over());
  EXPECT_EQ(drill.record().blows[0].end, BlowEnd::kInert);
  EXPECT_TRUE(drill.record().blows[0].undone_at.has_value());
}

TEST(DrillCore, TakesBackWhatLastsWhenTheDrillIsCutShort) {
  Scenario scenario;
  scenario.faults = {fault("hang")};
  scenario.faults[0].lasts = Duration::seconds(60);
  FakeDrill drill(scenario);
  drill.pass(Duration::seconds(4));
  drill.core().cut_short("interrupted", drill.now());
  drill.pass(kTick);
  EXPECT_TRUE(drill.core().over());
  const auto actions = drill.core().take_actions();
  ASSERT_EQ(actions.size(), 1U);
  EXPECT_EQ(std::get<TakeBack>(actions[0]).number, 1U);
  drill.core().on_taken_back(1, "", std::nullopt, drill.now());
  EXPECT_EQ(drill.record().cut_short, "interrupted");
  EXPECT_TRUE(drill.record().blows[0].undone_at.has_value());
}

TEST(DrillCore, TakesBackWhatLastsWhenTheSupervisorIsLostThatItHasNotStruck) {
  for (const bool strikes_it : {false, true}) {
    Scenario scenario;
    scenario.guard.max_gangs_down = 2;
    scenario.faults = {fault("hang"), fault("supervisor-kill")};
    scenario.faults[0].lasts = Duration::seconds(60);
    scenario.faults[1].at = strikes_it ? Duration::zero() : Duration::seconds(50);
    FakeDrill drill(scenario);
    drill.pass(Duration::seconds(4));
    drill.core().on_supervisor_lost();
    drill.pass(kTick);
    EXPECT_EQ(std::count(drill.done.begin(), drill.done.end(), "take back 1"), strikes_it ? 0 : 1);
    EXPECT_EQ(drill.record().blows[0].undone_at.has_value(), !strikes_it);
    EXPECT_FALSE(drill.core().over());
  }
}

TEST(DrillCore, TakesBackWhatIsAboutToLastWhenTheSupervisorIsLost) {
  for (const char* const name : {"hang", "kill"}) {
    Scenario scenario;
    scenario.faults = {fault(name)};
    FakeDrill drill(scenario);
    drill.answers_strikes = false;
    drill.pass(Duration::seconds(4));
    drill.core().on_supervisor_lost();
    drill.pass(kTick);
    EXPECT_EQ(std::count(drill.done.begin(), drill.done.end(), "take back 1"), name == std::string("hang") ? 1 : 0);
  }
}

TEST(DrillCore, EndsWhereTheSupervisorRefusesABlow) {
  Scenario scenario;
  scenario.faults = {fault("kill")};
  FakeDrill drill(scenario);
  drill.refusal = "the drill was stopped by monarch drill --stop";
  drill.pass(Duration::seconds(4));
  EXPECT_TRUE(drill.core().over());
  EXPECT_EQ(drill.record().cut_short, drill.refusal);
  EXPECT_EQ(drill.record().blows[0].end, BlowEnd::kSkipped);
}

TEST(DrillCore, StrikesAfterEachEventAndOnceAtAStep) {
  Scenario scenario;
  FaultEntry on_commit = fault("slow");
  on_commit.trigger = TriggerKind::kOnEvent;
  on_commit.event = EventKind::kCheckpointCommitted;
  on_commit.times = 2;
  FaultEntry on_step = fault("flood");
  on_step.trigger = TriggerKind::kOnStep;
  on_step.step = 60;
  for (FaultEntry* entry : {&on_commit, &on_step}) entry->lasts = Duration::milliseconds(200);
  scenario.faults = {on_commit, on_step};
  FakeDrill drill(scenario);
  const auto struck = [&](const std::string& name) {
    return std::count_if(drill.done.begin(), drill.done.end(),
                         [&](const std::string& line) { return line.find("strike " + name) == 0; });
  };
  drill.tell(EventKind::kCheckpointCommitted, 0);  // before the faults
  drill.pass(Duration::seconds(4));
  EXPECT_EQ(struck("slow"), 0);
  for (int i = 0; i < 3; ++i) {
    drill.tell(EventKind::kCheckpointCommitted, 0);
    drill.pass(Duration::seconds(2));
  }
  EXPECT_EQ(struck("slow"), 2);
  EXPECT_EQ(struck("flood"), 1);
  EXPECT_TRUE(drill.core().over());
}

TEST(DrillCore, StrikesAgainAndAgainForAsLongAsTheFaultsLast) {
  Scenario scenario;
  FaultEntry every = fault("slow");
  every.trigger = TriggerKind::kEvery;
  every.every = Duration::seconds(3);
  every.lasts = Duration::milliseconds(200);
  scenario.faults = {every};
  scenario.duration = Duration::seconds(60);
  FakeDrill drill(scenario);
  drill.pass(Duration::seconds(70));
  EXPECT_TRUE(drill.core().over());
  const std::size_t blows = drill.record().blows.size();
  EXPECT_GE(blows, 10U);
  EXPECT_LE(blows, 40U);
  std::set<std::string> hosts;
  for (const Blow& blow : drill.record().blows) hosts.insert(blow.target.host);
  EXPECT_EQ(hosts, (std::set<std::string>{"v1", "v2"}));
}

TEST(DrillCore, StopsWhereNothingGetsOnAnyMore) {
  Scenario scenario;
  scenario.faults = {fault("kill")};
  scenario.guard.stop_below_goodput = 0.2;
  FakeDrill drill(scenario);
  drill.pass(Duration::seconds(4));
  drill.steps_per_tick = 0;
  drill.pass(Duration::seconds(30));
  EXPECT_TRUE(drill.core().over());
  EXPECT_EQ(drill.record().cut_short.substr(0, 26), "guard.stop_below_goodput: ");
}

}  // namespace
}  // namespace monarch::drill
