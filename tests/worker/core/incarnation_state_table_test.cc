// IncarnationState's whole table: every phase against every event.

#include <gtest/gtest.h>

#include <csignal>
#include <string>
#include <vector>

#include "tests/worker/core/incarnation_state_driver.h"

namespace monarch::incarnation_state_test {
namespace {

struct Row {
  IncarnationPhase from;
  const char* event;
  const char* ordered;
  IncarnationPhase to;
};

std::string apply(Driver& driver, const std::string& event) {
  if (event == "executed") return driver.executed();
  if (event == "exec_failed") return driver.exec_failed();
  if (event == "exited") return driver.exited();
  if (event == "tree_empty") return driver.tree_empty();
  if (event == "tree_busy") return driver.tree_busy();
  if (event == "lease") return driver.lease_until(9'000);
  if (event == "stop") return driver.stop(kGrace);
  if (event == "kill") return driver.stop(Duration::zero());
  if (event == "signal") return driver.signal(SIGUSR1);
  if (event == "await") return driver.await_end();
  ADD_FAILURE() << "no event " << event;
  return "";
}

using P = IncarnationPhase;

// Every phase against every event but those of the fork, which have tests of their own.
const std::vector<Row> kTable = {
    {P::kForking, "executed", "", P::kForking},
    {P::kForking, "exec_failed", "", P::kForking},
    {P::kForking, "tree_empty", "", P::kForking},
    {P::kForking, "tree_busy", "", P::kForking},
    {P::kForking, "lease", "", P::kForking},
    {P::kForking, "stop", "", P::kForking},
    {P::kForking, "kill", "", P::kForking},
    {P::kForking, "signal", "", P::kForking},
    {P::kForking, "await", "", P::kForking},
    {P::kGated, "executed", "", P::kGated},
    {P::kGated, "exec_failed", "", P::kGated},
    {P::kGated, "exited", "check", P::kKilling},
    {P::kGated, "tree_empty", "", P::kGated},
    {P::kGated, "tree_busy", "", P::kGated},
    {P::kGated, "lease", "open", P::kStarting},
    {P::kGated, "stop", "kill stopping", P::kKilling},
    {P::kGated, "kill", "kill stopping", P::kKilling},
    {P::kGated, "signal", "", P::kGated},
    {P::kGated, "await", "kill stopping", P::kKilling},
    {P::kStarting, "executed", "running", P::kRunning},
    {P::kStarting, "exec_failed", "", P::kStarting},
    {P::kStarting, "exited", "check", P::kKilling},
    {P::kStarting, "tree_empty", "", P::kStarting},
    {P::kStarting, "tree_busy", "", P::kStarting},
    {P::kStarting, "lease", "", P::kStarting},
    {P::kStarting, "stop", "signal18 signal15 stopping", P::kGrace},
    {P::kStarting, "kill", "kill_rank stopping", P::kKilling},
    {P::kStarting, "signal", "", P::kStarting},
    {P::kStarting, "await", "stopping", P::kGrace},
    {P::kRunning, "executed", "", P::kRunning},
    {P::kRunning, "exec_failed", "", P::kRunning},
    {P::kRunning, "exited", "check", P::kKilling},
    {P::kRunning, "tree_empty", "", P::kRunning},
    {P::kRunning, "tree_busy", "", P::kRunning},
    {P::kRunning, "lease", "", P::kRunning},
    {P::kRunning, "stop", "signal18 signal15 stopping", P::kGrace},
    {P::kRunning, "kill", "kill_rank stopping", P::kKilling},
    {P::kRunning, "signal", "signal10", P::kRunning},
    {P::kRunning, "await", "stopping", P::kGrace},
    {P::kHeld, "executed", "", P::kHeld},
    {P::kHeld, "exec_failed", "", P::kHeld},
    {P::kHeld, "exited", "kill check", P::kKilling},
    {P::kHeld, "tree_empty", "", P::kHeld},
    {P::kHeld, "tree_busy", "", P::kHeld},
    {P::kHeld, "lease", "thaw running", P::kRunning},
    {P::kHeld, "stop", "kill stopping", P::kKilling},
    {P::kHeld, "kill", "kill stopping", P::kKilling},
    {P::kHeld, "signal", "", P::kHeld},
    {P::kHeld, "await", "kill stopping", P::kKilling},
    {P::kGrace, "executed", "", P::kGrace},
    {P::kGrace, "exec_failed", "", P::kGrace},
    {P::kGrace, "exited", "check", P::kGrace},
    {P::kGrace, "tree_empty", "", P::kGrace},
    {P::kGrace, "tree_busy", "", P::kGrace},
    {P::kGrace, "lease", "", P::kGrace},
    {P::kGrace, "stop", "", P::kGrace},
    {P::kGrace, "kill", "kill_rank stopping", P::kKilling},
    {P::kGrace, "signal", "signal10", P::kGrace},
    {P::kGrace, "await", "", P::kGrace},
    {P::kKilling, "executed", "", P::kKilling},
    {P::kKilling, "exec_failed", "", P::kKilling},
    {P::kKilling, "exited", "check", P::kKilling},
    {P::kKilling, "tree_empty", "", P::kKilling},
    {P::kKilling, "tree_busy", "", P::kKilling},
    {P::kKilling, "lease", "", P::kKilling},
    {P::kKilling, "stop", "", P::kKilling},
    {P::kKilling, "kill", "", P::kKilling},
    {P::kKilling, "signal", "", P::kKilling},
    {P::kKilling, "await", "", P::kKilling},
    {P::kWedged, "executed", "", P::kWedged},
    {P::kWedged, "exec_failed", "", P::kWedged},
    {P::kWedged, "exited", "check", P::kWedged},
    {P::kWedged, "tree_empty", "", P::kWedged},
    {P::kWedged, "tree_busy", "", P::kWedged},
    {P::kWedged, "lease", "", P::kWedged},
    {P::kWedged, "stop", "", P::kWedged},
    {P::kWedged, "kill", "", P::kWedged},
    {P::kWedged, "signal", "", P::kWedged},
    {P::kWedged, "await", "", P::kWedged},
    {P::kEnded, "executed", "", P::kEnded},
    {P::kEnded, "exec_failed", "", P::kEnded},
    {P::kEnded, "exited", "", P::kEnded},
    {P::kEnded, "tree_empty", "", P::kEnded},
    {P::kEnded, "tree_busy", "", P::kEnded},
    {P::kEnded, "lease", "", P::kEnded},
    {P::kEnded, "stop", "", P::kEnded},
    {P::kEnded, "kill", "", P::kEnded},
    {P::kEnded, "signal", "", P::kEnded},
    {P::kEnded, "await", "", P::kEnded},
};

TEST(IncarnationState, AnswersEveryEventInEveryPhase) {
  for (const Row& row : kTable) {
    Driver driver = in(row.from);
    EXPECT_EQ(apply(driver, row.event), row.ordered) << "phase " << int(row.from) << ", event " << row.event;
    EXPECT_EQ(driver.state().phase(), row.to) << "phase " << int(row.from) << ", event " << row.event;
  }
}

}  // namespace
}  // namespace monarch::incarnation_state_test
