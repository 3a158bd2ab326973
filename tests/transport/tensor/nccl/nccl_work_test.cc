// What a group of NCCL's does while it is whole.

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

TEST(NcclWork, ReducesInAllMembers) {
  const auto made = make(3);
  const auto expect = [&](NcclOp op, std::vector<std::int32_t> wanted) {
    each(*made, [&](Member& member) {
      const auto rank = static_cast<std::int32_t>(member.rank);
      const std::vector<std::int32_t> from{rank, 10 * rank, -rank, 3};
      std::vector<std::int32_t> to(from.size());
      EXPECT_EQ(words_of(member, {.call = NcclCall::kAllReduce,
                                  .from = from.data(),
                                  .to = to.data(),
                                  .count = from.size(),
                                  .dtype = kInt32,
                                  .op = op}),
                "ok");
      EXPECT_EQ(to, wanted);
    });
  };
  expect(NcclOp::kSum, {3, 30, -3, 9});
  expect(NcclOp::kProduct, {0, 0, 0, 27});
  expect(NcclOp::kMax, {2, 20, 0, 3});
  expect(NcclOp::kMin, {0, 0, -2, 3});
  expect(NcclOp::kAverage, {1, 10, -1, 3});
}

TEST(NcclWork, BroadcastsElementsOfAnyKind) {
  const auto made = make(3);
  each(*made, [&](Member& member) {
    const std::string from = "float8 pairs and the like";
    std::string to(from.size() - 1, '-');
    EXPECT_EQ(words_of(member, {.call = NcclCall::kBroadcast,
                                .from = member.rank == 1 ? from.data() : nullptr,
                                .to = to.data(),
                                .count = to.size() / 2,
                                .dtype = kInt8Pair,
                                .peer = 1}),
              "ok");
    EXPECT_EQ(to, from.substr(0, to.size()));
  });
}

TEST(NcclWork, GathersInTheOrderOfItsMembers) {
  const auto made = make(3);
  each(*made, [&](Member& member) {
    const std::vector<std::int32_t> from{static_cast<std::int32_t>(member.rank), 7};
    std::vector<std::int32_t> to(6);
    EXPECT_EQ(
        words_of(member,
                 {.call = NcclCall::kAllGather, .from = from.data(), .to = to.data(), .count = 2, .dtype = kInt32}),
        "ok");
    EXPECT_EQ(to, (std::vector<std::int32_t>{0, 7, 1, 7, 2, 7}));
  });
}

TEST(NcclWork, ScattersWhatItReduces) {
  const auto made = make(3);
  each(*made, [&](Member& member) {
    std::vector<std::int32_t> from(6);
    std::iota(from.begin(), from.end(), static_cast<std::int32_t>(member.rank));
    std::vector<std::int32_t> to(2);
    EXPECT_EQ(
        words_of(member,
                 {.call = NcclCall::kReduceScatter, .from = from.data(), .to = to.data(), .count = 2, .dtype = kInt32}),
        "ok");
    const auto first = static_cast<std::int32_t>(3 + 6 * member.rank);
    EXPECT_EQ(to, (std::vector<std::int32_t>{first, first + 3}));
  });
}

TEST(NcclWork, SendsFromOneMemberToAnother) {
  const auto made = make(3);
  each(*made, [&](Member& member) {
    const std::vector<std::int32_t> from(200'000, 42);
    std::vector<std::int32_t> to(from.size());
    const auto with = [&](NcclCall call, std::uint32_t peer) {
      return words_of(
          member,
          {.call = call, .from = from.data(), .to = to.data(), .count = from.size(), .dtype = kInt32, .peer = peer});
    };
    if (member.rank == 0) {
      EXPECT_EQ(with(NcclCall::kSend, 2), "ok");
    }
    if (member.rank == 2) {
      EXPECT_EQ(with(NcclCall::kReceive, 0), "ok");
      EXPECT_EQ(to, from);
    }
  });
}

TEST(NcclWork, RefusesWhatIsWrongWithoutAskingNccl) {
  const auto made = make(2);
  Member& member = made->members[1];
  std::int32_t value = 0;
  const std::string where = "group sync: member 1 of 2, on GPU 1: ";
  const auto refused = [&](NcclWork work) { return words_of(member.group->run(work, kPatience)); };
  const NcclWork good{.from = &value, .to = &value, .count = 1, .dtype = kInt32};
  NcclWork work = good;
  work.dtype = {6, 8, 1};
  EXPECT_EQ(refused(work), "unsupported: " + where + "all_reduce: NCCL reduces no elements of bool");
  work.dtype = {0, 3, 1};
  EXPECT_EQ(refused(work).substr(0, 8 + 1 + where.size()), "invalid: " + where);
  work = good;
  work.count = std::uint64_t{1} << 61U;
  EXPECT_EQ(refused(work),
            "invalid: " + where + "all_reduce: 2305843009213693952 elements of int32 are more than there can be");
  work = good;
  work.from = nullptr;
  EXPECT_EQ(refused(work), "invalid: " + where + "all_reduce: from: the driver knows no memory at 0");
  work = good;
  member.driver->give_to_another(&value);
  EXPECT_EQ(refused(work), "invalid: " + where + "all_reduce: from: its memory is of GPU 2");
  member.driver->give_to_another(nullptr);
  work = good;
  work.call = NcclCall::kBroadcast;
  work.peer = 2;
  EXPECT_EQ(refused(work), "invalid: " + where + "broadcast: there is no member 2");
  work.call = NcclCall::kSend;
  work.peer = 1;
  EXPECT_EQ(refused(work), "invalid: " + where + "send: that is this member itself");
  EXPECT_EQ(words_of(member.group->wait(FakeDriver::kCaptured, kPatience)),
            "invalid: the stream is captured into a graph");
  // The group goes on.
  each(*made, [&](Member& one) {
    const std::int32_t from = 4;
    std::int32_t to = 0;
    EXPECT_EQ(words_of(one, {.from = &from, .to = &to, .count = 1, .dtype = kInt32}), "ok");
    EXPECT_EQ(to, 8);
  });
}

TEST(NcclWork, IsWaitedForAgainWhereAStreamIsLate) {
  const auto made = make(2);
  const std::int32_t from = 1;
  const std::uint64_t stream = new_stream();
  std::int32_t to = 0;
  const NcclWork work{.from = &from, .to = &to, .count = 1, .dtype = kInt32, .stream = stream};
  Member& early = made->members[0];
  ASSERT_EQ(words_of(early.group->run(work, kPatience)), "ok") << "it is enqueued, and waits for the other";
  EXPECT_EQ(words_of(early.group->wait(stream, Duration::milliseconds(20))),
            "timeout: group sync: member 0 of 2, on GPU 0: what is enqueued has not ended by the deadline");
  std::int32_t other = 0;
  EXPECT_EQ(words_of(made->members[1], {.from = &from, .to = &other, .count = 1, .dtype = kInt32}), "ok");
  EXPECT_EQ(words_of(early.group->wait(stream, kPatience)), "ok");
  EXPECT_EQ(to, 2);
}

TEST(NcclWork, ServesThreadsOneAfterTheOther) {
  const auto made = make(2);
  each(*made, [&](Member& member) {
    std::vector<std::int32_t> to(8);
    const std::int32_t from = 1;
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < to.size(); ++i) {
      threads.emplace_back(
          [&, i] { EXPECT_EQ(words_of(member, {.from = &from, .to = &to[i], .count = 1, .dtype = kInt32}), "ok"); });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(to, std::vector<std::int32_t>(8, 2));
  });
}

}  // namespace
}  // namespace monarch::tensor
