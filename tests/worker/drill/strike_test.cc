// A process of a job, struck by `monarch-worker check`: the effect, its way back, and what cannot be done.

#include "worker/drill/strike.h"

#include <algorithm>

#include "tests/worker/drill/strike_fixture.h"

namespace monarch {
namespace {

TEST_F(Struck, StandsStillUntilTheStrikeIsTakenBack) {
  begin();
  const StrikeSeen seen = strike({.what = StrikeWhat::kStop});
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.struck, std::vector<std::int32_t>{victim_->pid()});
  EXPECT_EQ(state(), 'T');
  EXPECT_EQ(undo().error, "");
  EXPECT_NE(state(), 'T');
  end_victim();
}

TEST_F(Struck, GoesOnWhenTheTalkEndsAndAlsoWhenItsCheckIsKilled) {
  begin();
  EXPECT_EQ(strike({.what = StrikeWhat::kStop}).error, "");
  EXPECT_EQ(state(), 'T');
  to_.reset();
  EXPECT_EQ(end_of(child_).value, 0);
  EXPECT_NE(state(), 'T');

  CheckProcess::begin();
  EXPECT_EQ(strike({.what = StrikeWhat::kStop}).error, "");
  kill_check();
  EXPECT_TRUE(until([&] { return state() != 'T'; }));
  end_victim();
}

TEST_F(Struck, GoesOnWhenTheLifeOfItsTalkIsOver) {
  begin();
  const CheckAnswer answer = ask({.life = Duration::milliseconds(300),
                                  .strike = StrikeOrder{.what = StrikeWhat::kStop, .job_uuid = kUuid, .host = "gpu7"}});
  EXPECT_EQ(answer.struck.value_or(StrikeSeen{"no answer", {}}).error, "");
  EXPECT_EQ(end_of(child_).value, 0) << "nobody has told it anything";
  EXPECT_NE(state(), 'T');
  end_victim();
}

TEST_F(Struck, IsGoneAfterAKill) {
  begin();
  const StrikeSeen seen = strike({.what = StrikeWhat::kKill});
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.struck, std::vector<std::int32_t>{victim_->pid()});
  EXPECT_EQ(end_of(victim_).value, SIGKILL);
}

TEST_F(Struck, IsGoneAfterATerm) {
  begin();
  const WallTime before = wall_now();
  const StrikeSeen seen = strike({.what = StrikeWhat::kTerm});
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.struck, std::vector<std::int32_t>{victim_->pid()});
  EXPECT_EQ(end_of(victim_).value, SIGTERM);
  EXPECT_GE(seen.struck_at, before);
  EXPECT_GE(seen.seen_at, seen.struck_at);
  EXPECT_LE(seen.seen_at, wall_now());
}

TEST_F(Struck, HasTheLimitsAgainThatItHad) {
  begin();
  const std::string before = limits();
  const auto is_as_before = [&] { return limits() == before; };
  for (const StrikeWhat what : {StrikeWhat::kNoFiles, StrikeWhat::kNoMemory}) {
    EXPECT_EQ(strike({.what = what}).error, "");
    EXPECT_FALSE(is_as_before());
    const StrikeSeen undone = undo();
    EXPECT_EQ(undone.error, "");
    EXPECT_EQ(undone.felt, false);
    EXPECT_TRUE(is_as_before());

    EXPECT_EQ(strike({.what = what}).struck, std::vector<std::int32_t>{victim_->pid()});
    EXPECT_FALSE(is_as_before());
    kill_check();
    EXPECT_TRUE(until(is_as_before)) << "its check was killed";
    CheckProcess::begin();
  }
  end_victim();
}

TEST_F(Struck, HasFeltItsLimitWhereItHasEnded) {
  begin();
  EXPECT_EQ(strike({.what = StrikeWhat::kNoFiles}).error, "");
  end_victim();
  EXPECT_EQ(undo().felt, true);
  EXPECT_EQ(undo().felt, std::nullopt) << "there is nothing to take back";
}

TEST_F(Struck, HostIsBusyUntilTheStrikeIsTakenBackOrItsCheckIsKilled) {
  begin();
  StrikeSeen seen = strike({.what = StrikeWhat::kBusy, .processes = 3});
  EXPECT_EQ(seen.error, "");
  ASSERT_EQ(seen.struck.size(), 3U);
  for (const std::int32_t pid : seen.struck) EXPECT_TRUE(until([&] { return read_process(pid)->state == 'R'; }));
  EXPECT_EQ(undo().error, "");
  for (const std::int32_t pid : seen.struck) EXPECT_FALSE(read_process(pid).has_value());

  seen = strike({.what = StrikeWhat::kBusy, .processes = 2});
  kill_check();
  EXPECT_TRUE(until([&] {
    return std::none_of(seen.struck.begin(), seen.struck.end(), [](std::int32_t pid) {
      const auto now = read_process(pid);
      return now && !now->dead();
    });
  }));
  end_victim();
}

TEST_F(Struck, SaysWhoIsNotThereAndWhatMakesNoSense) {
  begin();
  EXPECT_EQ(strike({.what = StrikeWhat::kStop, .whom = StrikeWhom::kKeeper}).error,
            "no keeper of the job is on this host");
  EXPECT_EQ(strike({.what = StrikeWhat::kBusy}).error, "1 to 4096 processes keep a host busy");
  EXPECT_EQ(strike({.what = StrikeWhat::kCut, .address = "h1", .ports = {1}}).error,
            "what is cut is named by a numeric address");
  EXPECT_EQ(undo().error, "") << "there is nothing to take back";
  end_victim();
}

// What runs under the name of a supervisor, of a job that has this directory.
class StruckSupervisor : public Struck {
 protected:
  void begin() {
    write("supervise", "sleep 100 & wait", 0644);
    std::filesystem::create_directory(path("job"));
    SpawnOptions options = program({"monarch", "supervise", "--job-dir", path("job"), "--ready-fd", "9"});
    options.executable = "/bin/sh";
    options.workdir = path("");
    begin_with(options);
  }
  StrikeOrder order(StrikeWhat what) const {
    return {.what = what,
            .whom = StrikeWhom::kSupervisor,
            .supervisor_pid = victim_->pid(),
            .job_directory = path("job/../job")};
  }
};

TEST_F(StruckSupervisor, StandsStillUntilTheStrikeIsTakenBackOrItsCheckIsKilled) {
  begin();
  const StrikeSeen seen = strike(order(StrikeWhat::kStop));
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.struck, std::vector<std::int32_t>{victim_->pid()});
  EXPECT_EQ(state(), 'T');
  EXPECT_EQ(undo().error, "");
  EXPECT_NE(state(), 'T');

  EXPECT_EQ(strike(order(StrikeWhat::kStop)).error, "");
  EXPECT_EQ(state(), 'T');
  kill_check();
  EXPECT_TRUE(until([&] { return state() != 'T'; }));

  CheckProcess::begin();
  EXPECT_EQ(strike(order(StrikeWhat::kKill)).error, "");
  EXPECT_EQ(end_of(victim_).value, SIGKILL);
}

TEST_F(StruckSupervisor, IsNoneWhoseCommandLineNamesAnotherJobOrNone) {
  begin();
  const std::string none = "no supervisor of the job is on this host";
  StrikeOrder other = order(StrikeWhat::kKill);
  other.job_directory = path("");
  EXPECT_EQ(strike(other).error, none);
  other = order(StrikeWhat::kKill);
  other.supervisor_pid = child_->pid();
  EXPECT_EQ(strike(other).error, none);
  EXPECT_EQ(strike(order(StrikeWhat::kSlow)).error,
            "a supervisor is killed or stopped, and nothing else is done to it");
  EXPECT_NE(state(), 'T');
  end_victim();
}

}  // namespace
}  // namespace monarch
