#pragma once

// Struck: a process of a job, and what a `check` of the same user is asked to do to it. Both are of an ordinary user,
// also where the test is not.
//
// Thread: the test's.

#include <grp.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/errand/check_fixture.h"
#include "transport/messages/strike.h"
#include "transport/process/process_scan.h"
#include "transport/process/read_small.h"

namespace monarch {

inline constexpr uid_t kOrdinaryUser = 65'534;

inline std::optional<StepFailure> become_ordinary(std::vector<std::string>& /*environment*/) {
  const bool done = ::geteuid() != 0 ||
                    (::setgroups(0, nullptr) == 0 && ::setresgid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) == 0 &&
                     ::setresuid(kOrdinaryUser, kOrdinaryUser, kOrdinaryUser) == 0);
  return done ? std::nullopt : std::optional(StepFailure{errno, "becoming an ordinary user"});
}

class Struck : public CheckProcess {
 protected:
  void SetUp() override {
    CheckProcess::SetUp();
    prepare_ = become_ordinary;
    std::filesystem::permissions(path(""), std::filesystem::perms::others_exec | std::filesystem::perms::others_read,
                                 std::filesystem::perm_options::add);
  }
  void begin() { begin_with(program({"/bin/sleep", "100"})); }
  // With the marks of the job.
  void begin_with(SpawnOptions victim) {
    CheckProcess::begin();
    victim.environment = {"PATH=/usr/bin:/bin", "MONARCH_JOB_UUID=" + kUuid, "MONARCH_HOST=gpu7"};
    victim.prepare = prepare_;
    victim_ = start(victim);
    EXPECT_TRUE(until([&] { return ask({.worker = WorkerMarks{kUuid, "gpu7"}}).worker->processes >= 1; }));
  }
  StrikeSeen strike(StrikeOrder order, Duration patience = Duration::seconds(4)) {
    order.job_uuid = kUuid;
    order.host = "gpu7";
    return ask({.patience = patience, .strike = order}).struck.value_or(StrikeSeen{"no answer", {}});
  }
  StrikeSeen undo() { return ask({.undo = true}).struck.value_or(StrikeSeen{"no answer", {}}); }
  void kill_check() {
    ASSERT_EQ(::kill(child_->pid(), SIGKILL), 0);
    (void)end_of(child_);
  }
  char state() const { return read_process(victim_->pid())->state; }
  // Its limits, soft and hard, as proc_pid_limits(5) has them.
  std::string limits() const { return read_small(text("/proc/", victim_->pid(), "/limits")).value_or(""); }
  void end_victim() {
    EXPECT_EQ(::kill(victim_->pid(), SIGKILL), 0);
    (void)end_of(victim_);
  }

  const std::string kUuid = "0123456789abcdef0123456789abcdef";
  Child* victim_ = nullptr;
};

}  // namespace monarch
