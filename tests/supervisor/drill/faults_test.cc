#include "supervisor/drill/faults.h"

#include <gtest/gtest.h>

#include <set>

namespace monarch::drill {
namespace {

TEST(DrillFaults, AreKnownByOneNameEach) {
  std::set<std::string_view> names;
  for (const Fault& fault : faults()) {
    EXPECT_TRUE(names.insert(fault.name).second) << fault.name;
    EXPECT_EQ(find_fault(fault.name), &fault);
  }
  EXPECT_EQ(find_fault("earthquake"), nullptr);
}

TEST(DrillFaults, LastWhereTheyCanBeTakenBack) {
  for (const Fault& fault : faults()) {
    const bool done = fault.what == StrikeWhat::kKill || fault.what == StrikeWhat::kSegv ||
                      fault.what == StrikeWhat::kAbort || fault.what == StrikeWhat::kTerm;
    EXPECT_EQ(fault.lasts, !done) << fault.name;
  }
}

}  // namespace
}  // namespace monarch::drill
