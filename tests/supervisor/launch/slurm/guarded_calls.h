#pragma once

// Commands that a supervisor has its guard run, where a test plays the guard.
//
// Thread: the test's.

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "supervisor/launch/slurm/slurm_calls.h"
#include "supervisor/launch/talk/guarded_programs.h"
#include "tests/supervisor/launch/slurm/played_guard.h"
#include "tests/transport/loop/loop_fixture.h"

namespace monarch {

class GuardedCallsTest : public LoopTest {
 protected:
  void open_calls(Duration deadline = SlurmCalls::kDeadline) {
    auto [ours, theirs] = guard_sockets();
    played_ = std::make_unique<PlayedGuard>(loop(), std::move(theirs));
    auto guard = Guard::create(loop(), std::move(ours), JobUuid{},
                               {.on_hello = [](const KeeperHello&) {},
                                .on_changed = [this](const RankReport& report) { programs_->on_changed(report); },
                                .on_lost = [this](const Error&) { programs_->on_guard_lost(); }});
    ASSERT_TRUE(guard.ok());
    guard_ = std::move(*guard);
    programs_ = std::make_unique<GuardedPrograms>(*guard_, Term(1));
    calls_ = std::make_unique<SlurmCalls>(loop(), *programs_, deadline);
  }

  std::unique_ptr<PlayedGuard> played_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<GuardedPrograms> programs_;
  std::unique_ptr<SlurmCalls> calls_;
};

}  // namespace monarch
