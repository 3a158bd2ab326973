// Bodies as a process has them: what it lends, what it keeps mapped, and when it says that it reads no more.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <monarch/codec.hpp>

#include "transport/wire/lent_memory.h"
#include "transport/wire/sealed_memory.h"
#include "worker/rank/bodies/door_body.h"
#include "worker/rank/bodies/door_memory.h"

namespace monarch {
namespace {

constexpr std::size_t kLarge = codec::Writer::kNotedBytes;
constexpr std::size_t kLeast = kBodyHereBytes + 1;  // that is not within its message
constexpr std::size_t kBlock = 256U << 10U;

std::string lent_bytes(const DoorMemory::Lent& lent, std::size_t size) {
  std::string bytes(size, '\0');
  EXPECT_EQ(::pread(lent.memory.get(), bytes.data(), size, static_cast<off_t>(lent.from)), static_cast<ssize_t>(size));
  return bytes;
}

UniqueFd again(const UniqueFd& fd) { return UniqueFd(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 0)); }

std::uint64_t faults() {
  rusage usage{};
  EXPECT_EQ(::getrusage(RUSAGE_SELF, &usage), 0);
  return static_cast<std::uint64_t>(usage.ru_minflt);
}

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

CallBody body_of(const DoorMemory::Lent& lent, std::size_t size) {
  CallBody body;
  body.bytes = size;
  body.way = BodyWay::kBeside;
  body.from = lent.from;
  body.block = lent.block;
  return body;
}

DoorBody taken(const DoorMemory::Lent& lent, std::size_t size, KeptMappings& kept) {
  std::vector<UniqueFd> beside;
  beside.push_back(again(lent.memory));
  auto body = DoorBody::take(body_of(lent, size), beside, &kept);
  EXPECT_TRUE(body.ok()) << body.error().message;
  return body.ok() ? std::move(*body) : DoorBody();
}

// Three pieces, of which the plugin has made the second.
struct MadeBody {
  explicit MadeBody(DoorMemory& memory, std::size_t size) : memory_(memory), start(memory.make(size)) {
    if (start != nullptr) std::memset(start, 'm', size);
    set("before", size, "behind");
  }
  ~MadeBody() { memory_.made().drop(start); }
  void set(std::string head, std::size_t size, std::string tail) {
    before = std::move(head);
    behind = std::move(tail);
    pieces = {{before.data(), before.size()}, {start, size}, {behind.data(), behind.size()}};
    whole = before + std::string(size, 'm') + behind;
  }
  BodyPieces body() const { return {pieces.data(), pieces.size()}; }

  DoorMemory& memory_;
  char* const start;
  std::string before;
  std::string behind;
  std::vector<monarch_bytes_v1> pieces;
  std::string whole;
};

TEST(BodyPieces, AreCopiedInTheirOrder) {
  const std::vector<monarch_bytes_v1> three{{"one", 3}, {nullptr, 0}, {"two", 3}};
  const BodyPieces pieces(three.data(), three.size());
  EXPECT_EQ(pieces.bytes(), 6U);
  EXPECT_EQ(pieces.joined(), "onetwo");
  EXPECT_EQ(BodyPieces("text").joined(), "text");
  EXPECT_EQ(BodyPieces().bytes(), 0U);
  EXPECT_EQ(BodyPieces(nullptr, 0).joined(), "");
}

TEST(DoorMemory, CopiesABodyIntoABlockThatIsUsedAgainOnceItIsFree) {
  DoorMemory memory;
  const std::string bytes(kBlock, 'a');
  const auto first = memory.lend(bytes, true);
  ASSERT_TRUE(first.ok());
  EXPECT_NE(first->block, 0U);
  EXPECT_EQ(lent_bytes(*first, kBlock), bytes);
  const auto second = memory.lend(std::string(kBlock, 'b'), true);
  ASSERT_TRUE(second.ok());
  EXPECT_NE(second->block, first->block);
  EXPECT_EQ(lent_bytes(*first, kBlock), bytes) << "who reads the first one sees nothing of the second";
  memory.freed(first->block);
  const auto third = memory.lend(std::string(kBlock, 'c'), true);
  ASSERT_TRUE(third.ok());
  EXPECT_EQ(third->block, first->block);
}

TEST(DoorMemory, WritesNothingAgainThatWasLentByAConnectionThatHasEnded) {
  DoorMemory memory;
  const auto first = memory.lend(std::string(kBlock, 'a'), true);
  ASSERT_TRUE(first.ok());
  memory.give_up_lent();
  memory.freed(first->block);  // too late: who would say so is not who was told
  for (int i = 0; i < 4; ++i) {
    const auto more = memory.lend(std::string(kBlock, 'b'), true);
    ASSERT_TRUE(more.ok());
    memory.freed(more->block);
  }
  EXPECT_EQ(lent_bytes(*first, kBlock), std::string(kBlock, 'a'));
}

TEST(DoorMemory, GoesOnInNewMemoryWhereAllBlocksAreKept) {
  DoorMemory memory;
  std::vector<DoorMemory::Lent> kept;
  for (std::size_t i = 0; i < MemoryPool::kBlocks + 8; ++i) {
    auto lent = memory.lend(std::string(kBlock, static_cast<char>('a' + i % 26)), true);
    ASSERT_TRUE(lent.ok());
    EXPECT_EQ(lent->block == 0, i >= MemoryPool::kBlocks);
    kept.push_back(std::move(*lent));
  }
  for (std::size_t i = 0; i < kept.size(); ++i) {
    EXPECT_EQ(lent_bytes(kept[i], kBlock), std::string(kBlock, static_cast<char>('a' + i % 26)));
  }
  EXPECT_LE(memory.pool().bytes(), MemoryPool::kMostBytes);
}

// What a process says of its blocks, by a clock that the test sets.
class ShortOfBlocks : public ::testing::Test {
 protected:
  static constexpr std::size_t kHuge = 8U << 20U;

  ShortOfBlocks() {
    now_ = Instant() + Duration::seconds(1);
    do {
      kept_.push_back(memory_.make(kHuge));
    } while (memory_.made().is_in_block(kept_.back()));
    testing::internal::CaptureStderr();
  }
  ~ShortOfBlocks() override {
    for (const char* const start : kept_) memory_.made().drop(start);
  }
  void pass_a_second() { now_ = now_ + Duration::seconds(1); }
  static std::size_t lines() {
    const std::string said = testing::internal::GetCapturedStderr();
    std::size_t lines = 0;
    for (std::size_t at = said.find("goes in new memory"); at != std::string::npos; ++lines) {
      at = said.find("goes in new memory", at + 1);
    }
    return lines;
  }

  static inline Instant now_;
  DoorMemory memory_{[] { return now_; }};
  std::vector<const char*> kept_;  // all that fit into blocks, and one more
};

TEST_F(ShortOfBlocks, SaysSoOnceWhateverBecomesOfSmallerBodies) {
  for (int i = 0; i < 30; ++i) {
    pass_a_second();
    const auto small = memory_.lend(std::string(kLarge, 's'), true);
    ASSERT_TRUE(small.ok());
    EXPECT_NE(small->block, 0U);
    memory_.freed(small->block);
    const char* const own = memory_.make(kHuge);
    ASSERT_NE(own, nullptr);
    EXPECT_FALSE(memory_.made().is_in_block(own));
    memory_.made().drop(own);
  }
  EXPECT_EQ(lines(), 1U);
  EXPECT_LE(memory_.pool().bytes(), MemoryPool::kMostBytes);
}

TEST_F(ShortOfBlocks, SaysNothingWhereTheyComeBack) {
  for (int i = 0; i < 30; ++i) {
    pass_a_second();
    memory_.made().drop(memory_.make(kHuge));
    memory_.made().drop(std::exchange(kept_.front(), nullptr));
    kept_.front() = memory_.make(kHuge);
    EXPECT_TRUE(memory_.made().is_in_block(kept_.front()));
  }
  EXPECT_EQ(lines(), 0U);
}

TEST(MadeMemory, GoesAsItIs) {
  DoorMemory memory;
  const MadeBody made(memory, kBlock);
  ASSERT_NE(made.start, nullptr);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(made.start) % 4096, 0U);
  const auto lent = memory.lend(made.body(), true);
  ASSERT_TRUE(lent.ok());
  EXPECT_EQ(lent->from, MadeMemory::kBefore - made.before.size());
  EXPECT_EQ(lent_bytes(*lent, made.whole.size()), made.whole);
}

TEST(MadeMemory, IsCopiedWhereAnotherWouldSeeItChange) {
  DoorMemory memory;
  MadeBody made(memory, kBlock);
  const auto first = memory.lend(made.body(), true);
  ASSERT_TRUE(first.ok());
  const std::string as_first = made.whole;
  const auto same = memory.lend(made.body(), true);
  ASSERT_TRUE(same.ok());
  EXPECT_EQ(same->block, first->block) << "the same bytes may be read by others at once";
  made.set("other ", kBlock, "behind");
  const auto other = memory.lend(made.body(), true);
  ASSERT_TRUE(other.ok());
  EXPECT_EQ(other->from, 0U);
  EXPECT_EQ(lent_bytes(*other, made.whole.size()), made.whole);
  EXPECT_EQ(lent_bytes(*first, as_first.size()), as_first);
  memory.freed(first->block);
  EXPECT_EQ(memory.lend(made.body(), true)->from, 0U) << "the second is read still";
  memory.freed(first->block);
  EXPECT_NE(memory.lend(made.body(), true)->from, 0U);
}

TEST(MadeMemory, IsCopiedWhereItIsNotTheOnlyLargePieceOrNobodyCounts) {
  DoorMemory memory;
  MadeBody made(memory, kLeast);
  EXPECT_EQ(memory.lend(made.body(), false)->from, 0U) << "who speaks version 2 knows no `from`";
  const std::string large(kLarge, 'l');
  made.set(large, kLeast, "");
  const auto lent = memory.lend(made.body(), true);
  ASSERT_TRUE(lent.ok());
  EXPECT_EQ(lent->from, 0U);
  EXPECT_EQ(lent_bytes(*lent, made.whole.size()), made.whole);
  made.set("before", kLeast - 1, "");
  EXPECT_EQ(memory.lend(made.body(), true)->from, 0U) << "a part of it";
}

TEST(MadeMemory, IsNoLargerThanAPostTakes) {
  for (const std::size_t around : {kBlock - 8192, kBlock - 4096, kBlock, kBlock + 4096}) {
    for (const std::size_t size : {around - 1, around, around + 1}) {
      DoorMemory memory;
      const MadeBody made(memory, size);
      const auto lent = memory.lend(made.body(), true);
      ASSERT_TRUE(lent.ok());
      EXPECT_EQ(lent_bytes(*lent, made.whole.size()), made.whole);
      EXPECT_LE(lent_memory_size(lent->memory.get()).value(), MemoryPool::block_bytes(lent->from + made.whole.size()));
    }
  }
}

TEST(MadeMemory, IsNotWrittenAgainAfterItsConnection) {
  DoorMemory memory;
  MadeBody made(memory, kBlock);
  const auto first = memory.lend(made.body(), true);
  const std::string as_first = made.whole;
  memory.give_up_lent();
  made.set("other ", kBlock, "behind");
  EXPECT_EQ(memory.lend(made.body(), true)->from, 0U);
  EXPECT_EQ(lent_bytes(*first, as_first.size()), as_first);
}

TEST(MadeMemory, IsNotWrittenAgainWhereNobodyIsSureThatItIsFree) {
  DoorMemory memory;
  MadeBody made(memory, kBlock);
  const auto first = memory.lend(made.body(), true);
  ASSERT_TRUE(first.ok());
  memory.freed(first->block, MemoryPool::Word::kUnsure);
  EXPECT_NE(memory.lend(made.body(), true)->from, 0U) << "the same bytes";
  made.set("other ", kBlock, "behind");
  EXPECT_EQ(memory.lend(made.body(), true)->from, 0U);
}

TEST(MadeMemory, IsNoneForWhatGoesWithinItsMessage) {
  DoorMemory memory;
  EXPECT_EQ(memory.make(kLeast - 1), nullptr);
  EXPECT_EQ(memory.pool().bytes(), 0U);
}

TEST(MadeMemory, LeavesDescriptorsToOthers) {
  DoorMemory memory;
  const std::size_t before = open_descriptors();
  std::vector<const char*> made;
  for (const char* start = memory.make(kLeast); start != nullptr; start = memory.make(kLeast)) made.push_back(start);
  EXPECT_EQ(made.size(), MadeMemory::kMost);
  EXPECT_LE(open_descriptors(), before + MadeMemory::kMost);
  memory.made().drop(made.back());
  made.back() = memory.make(kLeast);
  EXPECT_NE(made.back(), nullptr);
  for (const char* const start : made) memory.made().drop(start);
}

// Of so many Buffers that are there at once, while one of them is sent again and again: nanoseconds of a processor.
double cost_of_each(std::size_t count) {
  DoorMemory memory;
  std::vector<const char*> made;
  timespec begun{};
  timespec ended{};
  EXPECT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begun), 0);
  for (std::size_t i = 0; i < count; ++i) {
    made.push_back(memory.make(kLeast));
    const monarch_bytes_v1 piece{made.front(), kLeast};
    const auto lent = memory.lend(BodyPieces(&piece, 1), true);
    EXPECT_TRUE(lent.ok());
    if (lent.ok()) memory.freed(lent->block);
  }
  EXPECT_EQ(::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ended), 0);
  for (const char* const start : made) memory.made().drop(start);
  const auto seconds = static_cast<double>(ended.tv_sec - begun.tv_sec);
  return (seconds * 1e9 + static_cast<double>(ended.tv_nsec - begun.tv_nsec)) / static_cast<double>(count);
}

TEST(MadeMemory, CostsNoMoreEachWhereThereAreTwentyThousand) {
  const double few = cost_of_each(2'000);
  EXPECT_LT(cost_of_each(20'000), 3 * few);
}

TEST(KeptMappings, MapABlockOnce) {
  DoorMemory lender;
  KeptMappings kept;
  const auto lent = lender.lend(std::string(kBlock, 'a'), true);
  ASSERT_TRUE(lent.ok());
  const char* const first = taken(*lent, kBlock, kept).bytes().data();
  const DoorBody second = taken(*lent, kBlock, kept);
  EXPECT_EQ(second.bytes().data(), first);
  EXPECT_EQ(second.bytes(), std::string(kBlock, 'a'));
  kept.clear();
  EXPECT_EQ(kept.bytes(), kBlock) << "somebody reads it";
}

TEST(KeptMappings, LetGoWhatWasReadLongestAgo) {
  KeptMappings kept;
  std::vector<std::unique_ptr<DoorMemory>> lenders;
  const auto lend = [&](std::size_t size) {
    lenders.push_back(std::make_unique<DoorMemory>());
    auto lent = lenders.back()->lend(std::string(size, 'a'), true);
    EXPECT_TRUE(lent.ok());
    return std::move(*lent);
  };
  const auto held = lend(kBlock);
  const DoorBody reads = taken(held, kBlock, kept);
  for (std::size_t i = 0; i < KeptMappings::kMostMappings + 4; ++i) (void)taken(lend(kBlock), kBlock, kept);
  EXPECT_EQ(kept.bytes(), KeptMappings::kMostMappings * kBlock);
  EXPECT_EQ(taken(held, kBlock, kept).bytes().data(), reads.bytes().data()) << "not what somebody reads";
  constexpr std::size_t kHuge = 64U << 20U;
  for (int i = 0; i < 6; ++i) (void)taken(lend(kHuge), kHuge, kept);
  EXPECT_LE(kept.bytes(), KeptMappings::kMostBytes);
}

TEST(KeptMappings, KeepNothingThatIsNotLent) {
  KeptMappings kept;
  const std::string bytes(kBlock, 's');
  auto sealed = make_sealed_memory("own", bytes);
  ASSERT_TRUE(sealed.ok());
  const DoorMemory::Lent own{.memory = std::move(*sealed)};
  EXPECT_EQ(taken(own, kBlock, kept).bytes(), bytes);
  EXPECT_EQ(kept.bytes(), 0U);
}

TEST(DoorBody, RefusesWhatLiesBeyondItsMemory) {
  DoorMemory lender;
  KeptMappings kept;
  const auto lent = lender.lend(std::string(kBlock, 'a'), true);
  for (const auto& [from, bytes] : std::vector<std::pair<std::uint64_t, std::uint64_t>>{
           {0, kBlock + 1}, {1, kBlock}, {kBlock, 1}, {~std::uint64_t{0}, 2}, {2, ~std::uint64_t{0}}, {0, 0}}) {
    for (const std::uint64_t block : {std::uint64_t{0}, lent->block}) {
      CallBody body = body_of(*lent, kBlock);
      body.from = from;
      body.bytes = bytes;
      body.block = block;
      std::vector<UniqueFd> beside;
      beside.push_back(again(lent->memory));
      EXPECT_FALSE(DoorBody::take(body, beside, &kept).ok()) << from << ' ' << bytes;
    }
  }
}

TEST(DoorBody, TellsOnceThatNobodyReadsIt) {
  DoorMemory lender;
  KeptMappings kept;
  const auto lent = lender.lend(std::string(kBlock, 'a'), true);
  int told = 0;
  auto body = std::make_unique<DoorBody>(taken(*lent, kBlock, kept));
  const auto readers = body->readers();
  ASSERT_TRUE(readers->is_lent());
  auto buffer = std::make_unique<BodyReading>(readers);
  readers->when_none([&told] { ++told; });
  body->reading()->end();
  EXPECT_EQ(told, 0);
  body.reset();
  EXPECT_EQ(told, 0) << "it has ended already";
  EXPECT_TRUE(readers->any());
  buffer.reset();
  EXPECT_EQ(told, 1);
  readers->when_none([&told] { ++told; });
  EXPECT_EQ(told, 2) << "at once";
}

// What a call of 64 MiB costs in pages once its block is warm.
TEST(DoorBody, TouchesNoNewPageWhereItsBlockIsWarm) {
  constexpr std::size_t kBytes = (64U << 20U) - 64;
  constexpr std::uint64_t kMostFaults = 100;
  DoorMemory lender;
  KeptMappings kept;
  const std::string bytes(kBytes, 'w');
  const std::vector<monarch_bytes_v1> pieces{{"head", 4}, {bytes.data(), bytes.size()}};
  const auto call = [&] {
    const auto lent = lender.lend(BodyPieces(pieces.data(), pieces.size()), true);
    const DoorBody body = taken(*lent, 4 + kBytes, kept);
    const bool same = std::memcmp(body.bytes().data() + 4, bytes.data(), bytes.size()) == 0;
    lender.freed(lent->block);
    return same;
  };
  ASSERT_TRUE(call());
  const std::uint64_t before = faults();
  EXPECT_TRUE(call());
  EXPECT_LE(faults() - before, kMostFaults);
}

}  // namespace
}  // namespace monarch
