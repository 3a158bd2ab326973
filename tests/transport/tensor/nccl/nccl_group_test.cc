// How a group of NCCL's begins and ends.

#include "transport/tensor/nccl/nccl_group.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/transport/tensor/nccl/nccl_members.h"
#include "transport/base/clock.h"

namespace monarch::tensor {
namespace {

using fake_nccl::FakeEvent;

TEST(NcclGroup, EndsInOrderWithOneAbortEach) {
  const int before = aborted();
  const int begun_before = begun();
  const int finalized_before = finalized();
  auto made = make(3);
  each(*made, [&](Member& member) {
    EXPECT_EQ(words_of(member.group->close(kPatience)), "ok");
    std::int32_t value = 0;
    EXPECT_EQ(words_of(member, {.from = &value, .to = &value, .count = 1, .dtype = kInt32}),
              "gone: group sync: it was closed");
    EXPECT_EQ(words_of(member.group->close(kPatience)), "gone: group sync: it was closed");
    EXPECT_EQ(member.tie->left(), std::vector<std::string>()) << "the others close theirs";
    member.group.reset();
  });
  EXPECT_EQ(begun() - begun_before, 3);
  EXPECT_EQ(finalized() - finalized_before, 3) << "what others still have to get is sent";
  EXPECT_EQ(aborted() - before, 3);
  EXPECT_EQ(made->lines, std::vector<std::string>());
}

TEST(NcclGroup, EndsAlthoughNotAllCloseIt) {
  const int before = aborted();
  auto made = make(2);
  Member& late = made->members[0];
  late.tie->fail_to_finish({ErrorCode::kTimeout, "generator/1 has not closed it"});
  EXPECT_EQ(words_of(late.group->close(kPatience)),
            "timeout: group sync: member 0 of 2, on GPU 0: generator/1 has not closed it");
  EXPECT_EQ(late.tie->left(),
            std::vector<std::string>{"group sync: close has failed in member 0: generator/1 has not closed it"});
  Member& lost = made->members[1];
  lost.tie->fail_to_finish({ErrorCode::kGone, "given up"});
  lost.tie->lose("trainer/0 has left the group");
  EXPECT_EQ(words_of(lost.group->close(kPatience)), "gone: group sync: trainer/0 has left the group");
  EXPECT_EQ(aborted() - before, 2);
}

TEST(NcclGroup, TellsTheOthersWhereItIsLeftWithoutAClose) {
  auto made = make(2);
  made->members[0].group.reset();
  EXPECT_EQ(made->members[0].tie->left(), std::vector<std::string>{"group sync: this member has left it"});
}

TEST(NcclGroup, IsMadeByWhoHasAnIdAndAPlace) {
  const auto open = [&](const NcclPlace& place, int device) {
    const auto made = NcclGroup::open({.nccl = nccl(),
                                       .cuda = std::make_shared<FakeDriver>(device),
                                       .tie = std::make_shared<TestTie>(),
                                       .say = [](const std::string&) {}},
                                      {.group = "sync", .place = place, .device = device}, kPatience);
    return made.ok() ? "ok" : text(error_code_name(made.error().code), ": ", made.error().message);
  };
  EXPECT_EQ(open({"short", 0, 1}, 0), "invalid: group sync: member 0 of 1, with an id of 5 bytes");
  const std::string id = *nccl()->make_id();
  EXPECT_EQ(open({id, 2, 2}, 0), "invalid: group sync: member 2 of 2, with an id of 128 bytes");
  EXPECT_EQ(open({id, 0, 1}, 9),
            "invalid: group sync: member 0 of 1, on GPU 9: there is no GPU 9: CUDA_ERROR_INVALID_DEVICE");
  EXPECT_EQ(open({id, 0, 1}, 0), "ok");
}

TEST(NcclGroup, PassesOnWhatNcclSaysOfTwoMembersOnOneGpu) {
  const auto made = make(2, kPatience, {3, 3});
  for (const Member& member : made->members) {
    EXPECT_EQ(member.group, nullptr);
    EXPECT_EQ(member.refused.code, ErrorCode::kInvalid);
    EXPECT_EQ(
        member.refused.message,
        text("group sync: member ", member.rank,
             " of 2, on GPU 3: ncclCommGetAsyncError: invalid usage (run "
             "with NCCL_DEBUG=WARN for details): Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 3"));
    EXPECT_EQ(member.tie->left().size(), 1U) << "the others are told";
  }
}

TEST(NcclGroup, EndsWhereAPeerNeverComes) {
  const int before = aborted();
  const std::string id = *nccl()->make_id();
  const auto tie = std::make_shared<TestTie>();
  std::vector<std::string> said;
  const auto made = NcclGroup::open({.nccl = nccl(),
                                     .cuda = std::make_shared<FakeDriver>(0),
                                     .tie = tie,
                                     .say = [&](const std::string& line) { said.push_back(line); },
                                     .waiting_every = Duration::milliseconds(15)},
                                    {.group = "sync", .place = {id, 0, 2}, .device = 0}, Duration::milliseconds(50));
  ASSERT_FALSE(made.ok());
  ASSERT_GE(said.size(), 1U);
  EXPECT_EQ(said.front().find("group sync: member 0 of 2, on GPU 0: joining has not ended since "), 0U) << said.front();
  EXPECT_EQ(made.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(made.error().message, "group sync: member 0 of 2, on GPU 0: joining was not done by its deadline");
  EXPECT_EQ(tie->left(), std::vector<std::string>{"group sync: joining was not done by its deadline in member 0"});
  EXPECT_EQ(aborted() - before, 1);
}

TEST(NcclGroup, EndsWithAStreamThatHasFailed) {
  const auto made = make(2);
  Member& member = made->members[0];
  EXPECT_EQ(words_of(member.group->wait(FakeEvent::kFailedStream, kPatience)),
            "device: group sync: member 0 of 2, on GPU 0: GPU 0: CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(words_of(member.group->wait(1, kPatience)),
            "gone: group sync: wait has failed in member 0: GPU 0: CUDA_ERROR_ILLEGAL_ADDRESS");
  EXPECT_EQ(member.tie->left().size(), 1U);
}

// A peer's death as NCCL sees it, and the roster a little later: the cause is the roster's.
TEST(NcclGroup, WaitsForTheCauseOfWhatNcclCallsARemoteError) {
  const Set told("FAKE_NCCL_DEATH", "told");
  for (const bool roster : {true, false}) {
    SCOPED_TRACE(roster);
    auto made = make(2);
    Member& left = made->members[0];
    const std::int32_t from = 1;
    const std::uint64_t stream = new_stream();
    std::int32_t to = 0;
    ASSERT_TRUE(
        left.group->run({.from = &from, .to = &to, .count = 1, .dtype = kInt32, .stream = stream}, kPatience).ok());
    made->members[1].group.reset();
    std::thread verdict([&] {
      if (roster) left.tie->lose("generator/0 has ended");
    });
    EXPECT_EQ(words_of(left.group->wait(stream, kPatience)),
              roster ? "gone: group sync: generator/0 has ended"
                     : "gone: group sync: member 0 of 2, on GPU 0: ncclCommGetAsyncError: remote process exited or "
                       "there was a network error: socketProgress: Connection closed by remote peer");
    verdict.join();
    EXPECT_EQ(left.tie->left().size(), roster ? 0U : 1U);
  }
}

TEST(NcclGroup, IsAbortedWhileNobodyAsks) {
  const auto made = make(2);
  const int before = aborted();
  for (Member& member : made->members) member.tie->lose("generator/0 has ended");
  const Instant until = boot_now() + kPatience;
  while (aborted() - before < 2 && boot_now() < until) std::this_thread::yield();
  EXPECT_EQ(aborted() - before, 2);
}

TEST(NcclGroup, IsNotAbortedWhileSomebodyIsInACall) {
  const auto made = make(2);
  Member& member = made->members[0];
  const int before = aborted();
  member.driver->hold_next();
  std::thread caller([&] {
    const std::int32_t from = 1;
    std::int32_t to = 0;
    EXPECT_EQ(words_of(member.group->run({.from = &from, .to = &to, .count = 1, .dtype = kInt32}, kPatience)),
              "gone: group sync: generator/0 has ended");
  });
  member.driver->wait_until_held();
  member.tie->lose("generator/0 has ended");
  // Time for it to be done wrong: the call goes on then, and the fake ends the process.
  const Instant until = boot_now() + Duration::milliseconds(50);
  while (aborted() == before && boot_now() < until) std::this_thread::yield();
  EXPECT_EQ(aborted(), before);
  member.driver->let_go();
  caller.join();
  EXPECT_EQ(aborted() - before, 1);
}

TEST(NcclGroup, LeavesBehindAnAbortThatDoesNotComeBack) {
  std::unique_ptr<Made> made = make(1, kPatience, {}, Duration::milliseconds(100));
  const Set hangs("FAKE_NCCL_HANG", "abort");
  made->members[0].group.reset();
  EXPECT_EQ(made->lines,
            std::vector<std::string>{"group sync: NCCL has not ended it within 100ms: its thread is left behind"});
  // The place of its lines is that of a thread which never goes on.
  static const Made* left_behind = nullptr;
  left_behind = made.release();
  ASSERT_NE(left_behind, nullptr);
}

}  // namespace
}  // namespace monarch::tensor
