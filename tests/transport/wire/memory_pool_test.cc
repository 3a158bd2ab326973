// Memory that is lent: what a reader sees, what he cannot do, and when it is used again.

#include "transport/wire/memory_pool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/transport/base/lower_limit.h"
#include "transport/base/text.h"
#include "transport/wire/mapped_memory.h"
#include "transport/wire/sealed_memory.h"

namespace monarch {
namespace {

constexpr std::size_t kLarge = 200U << 10U;

UniqueFd lent(MemoryPool& pool, std::string_view bytes) {
  auto fd = pool.lend(bytes);
  EXPECT_TRUE(fd.ok()) << fd.error().message;
  return fd.ok() ? std::move(*fd) : UniqueFd();
}

std::string read(const UniqueFd& fd, std::size_t size) {
  const auto mapped = MappedMemory::map(fd.get(), size);
  return mapped.ok() ? std::string((*mapped)->bytes()) : std::string();
}

ino_t which(const UniqueFd& fd) {
  struct stat status {};
  EXPECT_EQ(::fstat(fd.get(), &status), 0);
  return status.st_ino;
}

TEST(MemoryPool, LendsWhatItsReaderCannotChange) {
  MemoryPool pool;
  const std::string bytes(kLarge, 'x');
  const UniqueFd fd = lent(pool, bytes);
  EXPECT_EQ(read(fd, bytes.size()), bytes);
  EXPECT_EQ(lent_memory_size(fd.get()).value(), 256U << 10U) << "a power of two";
  EXPECT_EQ(::write(fd.get(), "y", 1), -1);
  EXPECT_EQ(::mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0), MAP_FAILED);
  EXPECT_EQ(::ftruncate(fd.get(), 0), -1);
  const UniqueFd again(::open(text("/proc/self/fd/", fd.get()).c_str(), O_RDWR | O_CLOEXEC));
  ASSERT_TRUE(again.valid());
  EXPECT_EQ(::write(again.get(), "y", 1), -1);
  EXPECT_EQ(::mmap(nullptr, 1, PROT_READ | PROT_WRITE, MAP_SHARED, again.get(), 0), MAP_FAILED);
  EXPECT_EQ(::ftruncate(again.get(), 0), -1);
}

TEST(MemoryPool, UsesABlockAgainOnceNobodyHasIt) {
  MemoryPool pool;
  const std::string first(kLarge, 'a');
  const std::string second(kLarge, 'b');
  UniqueFd fd = lent(pool, first);
  const ino_t block = which(fd);
  const UniqueFd beside = lent(pool, second);
  EXPECT_NE(which(beside), block) << "the first has its reader";
  auto mapped = MappedMemory::map(fd.get(), first.size());
  ASSERT_TRUE(mapped.ok());
  fd.reset();
  EXPECT_NE(which(lent(pool, second)), block) << "a mapping is a reader, too";
  EXPECT_EQ((*mapped)->bytes(), first);
  mapped->reset();
  bool again = false;
  for (int i = 0; i < 4; ++i) again = again || which(lent(pool, second)) == block;
  EXPECT_TRUE(again);
  EXPECT_EQ(read(beside, second.size()), second);
}

TEST(MemoryPool, TakesNoMoreThanItMay) {
  MemoryPool pool;
  std::vector<UniqueFd> readers;
  for (std::size_t i = 0; i < MemoryPool::kBlocks + 3; ++i) readers.push_back(lent(pool, "small"));
  EXPECT_EQ(pool.bytes(), MemoryPool::kBlocks * MemoryPool::kLeastBytes);
  EXPECT_EQ(*read_sealed_memory(readers.back().get(), 5), "small") << "memory of its own";
  EXPECT_EQ(*lent_memory_size(readers.back().get()), 5U);
  readers.clear();
  const UniqueFd large = lent(pool, std::string(MemoryPool::kMostBytes, 'x'));
  EXPECT_EQ(pool.bytes(), MemoryPool::kMostBytes) << "what nobody had gave way";
  EXPECT_EQ(*lent_memory_size(lent(pool, "small").get()), 5U);
  const std::string too_large(MemoryPool::kMostBytes + 1, 'x');
  EXPECT_EQ(*sealed_memory_size(lent(pool, too_large).get()), too_large.size());
}

TEST(MemoryPool, WorksAgainAfterDescriptorsWereShort) {
  MemoryPool pool;
  const std::string bytes(kLarge, 'x');
  {
    const LowerLimit none(RLIMIT_NOFILE, 0);
    EXPECT_FALSE(pool.lend(bytes).ok());
  }
  EXPECT_EQ(*lent_memory_size(lent(pool, bytes).get()), 256U << 10U) << "a block of the pool";
}

TEST(MemoryPool, OutlivesNoReader) {
  const std::string bytes(kLarge, 'x');
  UniqueFd fd;
  {
    MemoryPool pool;
    fd = lent(pool, bytes);
  }
  EXPECT_EQ(read(fd, bytes.size()), bytes);
}

MemoryPool::Lent counted(MemoryPool& pool, std::string_view bytes) {
  auto lent = pool.lend_counted(bytes);
  EXPECT_TRUE(lent.ok()) << lent.error().message;
  return lent.ok() ? std::move(*lent) : MemoryPool::Lent();
}

TEST(MemoryPool, WritesACountedBlockOnlyOnceItIsFreeThoughNobodyHasItOpen) {
  MemoryPool pool;
  const std::string bytes(kLarge, 'a');
  auto first = counted(pool, bytes);
  const ino_t block = which(first.memory);
  EXPECT_GT(first.block, 0U);
  const auto mapped = MappedMemory::map(first.memory.get(), bytes.size());
  first.memory.reset();
  const auto second = counted(pool, bytes);
  EXPECT_NE(which(second.memory), block);
  EXPECT_NE(second.block, first.block);
  pool.free(first.block);
  EXPECT_EQ(which(counted(pool, std::string(kLarge, 'b')).memory), block) << "a mapping that is kept is no reader";
  EXPECT_EQ((*mapped)->bytes().front(), 'b');
}

TEST(MemoryPool, AsksTheKernelWhereNobodyIsSure) {
  MemoryPool pool;
  const std::string bytes(kLarge, 'a');
  auto lent = counted(pool, bytes);
  const ino_t block = which(lent.memory);
  auto mapped = MappedMemory::map(lent.memory.get(), bytes.size());
  lent.memory.reset();
  pool.free(lent.block, MemoryPool::Word::kUnsure);
  const auto other = counted(pool, std::string(kLarge, 'b'));
  EXPECT_NE(which(other.memory), block);
  EXPECT_EQ((*mapped)->bytes(), bytes);
  mapped->reset();
  EXPECT_EQ(which(counted(pool, bytes).memory), block);
}

TEST(MemoryPool, FreesABlockThatWasLentTwiceByTheSecondWord) {
  MemoryPool pool;
  auto filled = pool.fill(kLarge);
  ASSERT_TRUE(filled.ok());
  filled->block->start()[0] = 'x';
  const auto one = pool.lend_counted(*filled);
  const auto two = pool.lend_counted(*filled);
  ASSERT_TRUE(one.ok() && two.ok());
  EXPECT_EQ(one->block, two->block);
  const std::string bytes(kLarge, 'y');
  const auto is_used = [&] { return which(lent(pool, bytes)) == which(one->memory); };
  pool.free(one->block);
  pool.give_back(std::move(*filled));
  EXPECT_FALSE(is_used());
  EXPECT_EQ(read(two->memory, 1), "x");
  pool.free(two->block);
  EXPECT_TRUE(is_used());
  pool.free(two->block);
  pool.free(1'000);
}

TEST(MemoryPool, WritesNothingThatIsHeldThoughItIsFree) {
  MemoryPool pool;
  auto filled = pool.fill(kLarge);
  const auto out = pool.lend_counted(*filled);
  pool.free(out->block);
  EXPECT_NE(which(lent(pool, std::string(kLarge, 'y'))), which(out->memory));
  pool.give_back(std::move(*filled));
  EXPECT_EQ(which(lent(pool, std::string(kLarge, 'y'))), which(out->memory));
}

TEST(MemoryPool, GivesUpWhatIsLentAndKeepsTheRest) {
  MemoryPool pool;
  const std::string bytes(kLarge, 'a');
  const auto out = counted(pool, bytes);
  const auto back = counted(pool, bytes);
  pool.free(back.block);
  auto held = pool.fill(kLarge);
  ASSERT_EQ(held->number, back.block);
  const auto also = pool.lend_counted(*held);
  pool.give_up_lent();
  EXPECT_EQ(pool.bytes(), 0U);
  held->block->start()[0] = 'h';
  EXPECT_EQ(read(also->memory, 1), "h") << "who fills it has it still";
  EXPECT_EQ(pool.lend_counted(*held)->block, 0U) << "memory of its own";
  pool.give_back(std::move(*held));
  pool.free(out.block);
  for (int i = 0; i < 4; ++i) {
    const auto next = counted(pool, std::string(kLarge, 'b'));
    EXPECT_GT(next.block, back.block);
    EXPECT_NE(which(next.memory), which(out.memory));
  }
  EXPECT_EQ(read(out.memory, bytes.size()), bytes);
}

TEST(MemoryPool, CountsABlockFromLaterOn) {
  MemoryPool pool;
  auto filled = pool.fill(kLarge);
  const std::uint64_t block = filled->number;
  const auto memory = pool.lend(std::move(*filled));
  pool.count(block);
  const auto mapped = MappedMemory::map(memory->get(), kLarge);
  EXPECT_NE(counted(pool, std::string(kLarge, 'x')).block, block);
  pool.free(block);
  EXPECT_EQ(counted(pool, std::string(kLarge, 'x')).block, block);
}

TEST(MemoryPool, LendsMemoryOfItsOwnWhileAllIsCounted) {
  MemoryPool pool;
  std::vector<MemoryPool::Lent> all;
  for (std::size_t i = 0; i < MemoryPool::kBlocks + 2; ++i) all.push_back(counted(pool, "small"));
  EXPECT_EQ(all.back().block, 0U);
  EXPECT_EQ(*read_sealed_memory(all.back().memory.get(), 5), "small");
  EXPECT_EQ(pool.bytes(), MemoryPool::kBlocks * MemoryPool::kLeastBytes);
  pool.free(all.front().block);
  EXPECT_EQ(counted(pool, "small").block, all.front().block);
}

// A batch system's shell has a limit, and a process that does not care about SIGXFSZ dies of it.
TEST(MemoryPool, HasBlocksForWhatIsALittleMoreThanAPowerOfTwo) {
  constexpr std::uint64_t kPower = 1U << 20U;
  MemoryPool pool;
  const auto size_of = [&pool](std::uint64_t bytes) {
    auto filling = pool.fill(bytes);
    const std::uint64_t size = filling->block->size();
    pool.give_back(std::move(*filling));
    return size;
  };
  EXPECT_EQ(size_of(kPower), kPower);
  EXPECT_EQ(size_of(kPower + 1), kPower + 8192);
  EXPECT_EQ(size_of(kPower + 8192), kPower + 8192);
  EXPECT_EQ(size_of(kPower + 8193), 2 * kPower);
  EXPECT_EQ(size_of(1), MemoryPool::kLeastBytes);
  for (const std::uint64_t bytes : {kPower, kPower + 1, kPower + 8193}) {
    EXPECT_LE(size_of(bytes), MemoryPool::block_bytes(bytes));
  }
}

TEST(MemoryPool, NamesTheLimitOfFileSizeAndLives) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit limit{.rlim_cur = 1U << 20U, .rlim_max = 1U << 20U};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    MemoryPool pool;
    const auto lent = pool.lend(std::string(4U << 20U, 'x'));
    if (lent.ok()) ::_exit(2);
    if (lent.error().message.find("1048576 bytes at most, of shared memory, too: ulimit -f") == std::string::npos) {
      ::_exit(3);
    }
    if (!pool.lend(std::string(1U << 19U, 'x')).ok()) ::_exit(4);
    sigset_t left;
    if (::sigpending(&left) != 0 || sigismember(&left, SIGXFSZ) != 0) ::_exit(5);
    if (pthread_sigmask(SIG_SETMASK, nullptr, &left) != 0 || sigismember(&left, SIGXFSZ) != 0) ::_exit(6);
    ::_exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(LentMemory, IsWhatNobodyCanShrink) {
  const UniqueFd open_one(::memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(lent_memory_size(open_one.get()).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(lent_memory_size(STDERR_FILENO).error().code, ErrorCode::kInvalid);
  const auto sealed = make_sealed_memory("sealed", "123");
  EXPECT_EQ(*lent_memory_size(sealed->get()), 3U);
}

}  // namespace
}  // namespace monarch
