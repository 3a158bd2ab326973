#include "supervisor/drill/core/faults.h"

#include <gtest/gtest.h>

#include <set>

#include "supervisor/core/health/own_stall.h"

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
    EXPECT_EQ(fault.can_last(), !done && fault.what != StrikeWhat::kReset) << fault.name;
  }
}

TEST(DrillFaults, LastLongEnoughToBeToldOf) {
  const Duration told_after = OwnStall::kTurn + OwnStall::kStall;
  EXPECT_GE(find_fault("supervisor-hang")->lasts, told_after + told_after);
}

TEST(DrillFaults, HaveTellersWhereNobodyMayOverlookThem) {
  for (const Fault& fault : faults()) {
    EXPECT_FALSE(fault.does.empty()) << fault.name;
    EXPECT_TRUE(!fault.needs_seeing || !fault.told_by.empty()) << fault.name;
    EXPECT_EQ(fault.of == FaultClass::kSupervisor, fault.whom == StrikeWhom::kSupervisor) << fault.name;
  }
}

}  // namespace
}  // namespace monarch::drill
