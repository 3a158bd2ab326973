// Groups whose members are threads of this process, on the fake libnccl.so.2, which is found by its name.

#include "transport/tensor/nccl/nccl_group.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "tests/nccl/nccl_world.h"
#include "tests/transport/tensor/nccl/member_process.h"
#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/tensor/nccl/load.h"

namespace monarch::tensor {
namespace {

using fake_nccl::FakeDriver;
using fake_nccl::FakeEvent;
using fake_nccl::TestTie;

constexpr Duration kPatience = Duration::seconds(20);
constexpr Dtype kInt32{0, 32, 1};
constexpr Dtype kInt8Pair{0, 8, 2};

SharedNccl nccl() {
  static const SharedNccl loaded = [] {
    auto found = load_nccl(nullptr);
    MONARCH_ASSERT_BECAUSE(found.ok() && fake_nccl::find<fake_nccl::Count>(fake_nccl::kBegun) != nullptr,
                           "LD_LIBRARY_PATH names the folder of the fake libnccl.so.2");
    return std::move(found).value();
  }();
  return loaded;
}

int aborted() { return fake_nccl::find<fake_nccl::Count>(fake_nccl::kAborted)(); }
int begun() { return fake_nccl::find<fake_nccl::Count>(fake_nccl::kBegun)(); }

// One on which nothing was ever enqueued: the fake counts for as long as the process runs.
std::uint64_t new_stream() {
  static std::uint64_t last = 1'000;
  return ++last;
}

// A variable of the environment for as long as a test.
class Set {
 public:
  Set(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Set() { ::unsetenv(name_); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  const char* const name_;
};

struct Member {
  std::unique_ptr<NcclGroup> group;
  Error refused;  // where there is none
  std::shared_ptr<FakeDriver> driver;
  std::shared_ptr<TestTie> tie = std::make_shared<TestTie>();
  std::uint32_t rank = 0;
};

struct Made {
  std::vector<Member> members;
  std::vector<std::string> lines;  // that they said
  std::mutex mutex;
};

// Each in a thread of its own, one on each GPU.
void each(Made& made, const std::function<void(Member& member)>& run) {
  std::vector<std::thread> threads;
  for (Member& member : made.members) threads.emplace_back([&run, &member] { run(member); });
  for (std::thread& thread : threads) thread.join();
}

std::unique_ptr<Made> make(std::uint32_t size, Duration timeout = kPatience, const std::vector<int>& devices = {},
                           Duration abort_patience = Duration::seconds(10)) {
  auto made = std::make_unique<Made>();
  made->members.resize(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) made->members[rank].rank = rank;
  const std::string id = *nccl()->make_id();
  each(*made, [&](Member& member) {
    const int device = devices.empty() ? static_cast<int>(member.rank) : devices[member.rank];
    member.driver = std::make_shared<FakeDriver>(device);
    const auto say = [&](const std::string& line) {
      const std::lock_guard lock(made->mutex);
      made->lines.push_back(line);
    };
    auto opened = NcclGroup::open(
        {.nccl = nccl(), .cuda = member.driver, .tie = member.tie, .say = say, .abort_patience = abort_patience},
        {.group = "sync", .place = {id, member.rank, size}, .device = device}, timeout);
    if (opened.ok()) {
      member.group = std::move(opened).value();
    } else {
      member.refused = opened.error();
    }
  });
  return made;
}

std::string words_of(const Status& status) {
  return status.ok() ? "ok" : text(error_code_name(status.error().code), ": ", status.error().message);
}

// Run and waited for, on a stream of the member's own.
std::string words_of(Member& member, const NcclWork& work) {
  NcclWork on_stream = work;
  on_stream.stream = 100 + member.rank;
  const Status status = member.group->run(on_stream, kPatience);
  return words_of(status.ok() ? member.group->wait(on_stream.stream, kPatience) : status);
}

TEST(NcclGroup, ReducesInAllMembers) {
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

TEST(NcclGroup, BroadcastsElementsOfAnyKind) {
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

TEST(NcclGroup, GathersInTheOrderOfItsMembers) {
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

TEST(NcclGroup, ScattersWhatItReduces) {
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

TEST(NcclGroup, SendsFromOneMemberToAnother) {
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

TEST(NcclGroup, EndsInOrderWithOneAbortEach) {
  const int before = aborted();
  const int begun_before = begun();
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

TEST(NcclGroup, RefusesWhatIsWrongWithoutAskingNccl) {
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
  const auto made = NcclGroup::open(
      {.nccl = nccl(), .cuda = std::make_shared<FakeDriver>(0), .tie = tie, .say = [](const std::string&) {}},
      {.group = "sync", .place = {id, 0, 2}, .device = 0}, Duration::milliseconds(50));
  ASSERT_FALSE(made.ok());
  EXPECT_EQ(made.error().code, ErrorCode::kTimeout);
  EXPECT_EQ(made.error().message, "group sync: member 0 of 2, on GPU 0: joining was not done by its deadline");
  EXPECT_EQ(tie->left(), std::vector<std::string>{"group sync: joining was not done by its deadline in member 0"});
  EXPECT_EQ(aborted() - before, 1);
}

TEST(NcclGroup, IsWaitedForAgainWhereAStreamIsLate) {
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

TEST(NcclGroup, ServesThreadsOneAfterTheOther) {
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

TEST(NcclGroup, LeavesBehindAnAbortThatDoesNotComeBack) {
  std::unique_ptr<Made> made = make(1, kPatience, {}, Duration::milliseconds(100));
  const Set hangs("FAKE_NCCL_HANG", "abort");
  made->members[0].group.reset();
  EXPECT_EQ(made->lines,
            std::vector<std::string>{"group sync: NCCL has not ended it within 100ms: its thread is left behind"});
  // The line's place is that of a thread which never goes on.
  (void)made.release();
}

}  // namespace
}  // namespace monarch::tensor
