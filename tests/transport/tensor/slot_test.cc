// Slots: what a reader may believe of what he has read while it was written, and what he cannot do.

#include "transport/tensor/slot.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/base/sanitizers.h"
#include "transport/tensor/core/index.h"
#include "transport/tensor/row_copy.h"

namespace monarch::tensor {
namespace {

constexpr std::uint64_t kBytes = 256U << 10U;

std::unique_ptr<SlotView> view_of(const Slot& slot) {
  auto fd = slot.reader();
  EXPECT_TRUE(fd.ok());
  auto view = SlotView::open(*fd, slot.bytes());
  EXPECT_TRUE(view.ok()) << view.error().message;
  return view.ok() ? std::move(*view) : nullptr;
}

TEST(Slot, HoldsWhatWasCommitted) {
  const auto slot = Slot::make(kBytes);
  ASSERT_TRUE(slot.ok()) << slot.error().message;
  const auto view = view_of(**slot);
  EXPECT_EQ(view->word(), 0U);
  (*slot)->begin();
  std::memset((*slot)->start() + kSlotHeaderBytes, 7, 100);
  EXPECT_EQ(view->word(), 0U);
  (*slot)->commit(0);
  EXPECT_EQ(view->word(), word_of(0)) << "a version may be 0";
  EXPECT_EQ(view->start()[kSlotHeaderBytes + 99], 7);
  (*slot)->begin();
  EXPECT_EQ(view->word(), 0U);
}

TEST(Slot, KnowsWhoHasIt) {
  const auto slot = Slot::make(kBytes);
  ASSERT_TRUE(slot.ok());
  EXPECT_TRUE((*slot)->is_alone());
  auto view = view_of(**slot);
  EXPECT_FALSE((*slot)->is_alone());
  view.reset();
  EXPECT_TRUE((*slot)->is_alone());
  auto fd = (*slot)->reader();
  EXPECT_EQ(SlotView::open(*fd, kBytes - 1).error().message, "memory of 262144 bytes for a slot that has 262143");
  const auto huge = Slot::make(std::uint64_t{1} << 60U);
  ASSERT_FALSE(huge.ok());
  EXPECT_EQ(huge.error().code, ErrorCode::kBusy);
  EXPECT_NE(huge.error().message.find("no memory of 1048576TiB for a slot"), std::string::npos) << huge.error().message;
}

TEST(Slot, IsMappedWritableByWhoMayPinItAlone) {
  const auto may_write = [](const Result<UniqueFd>& fd) {
    void* const start = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0);
    if (start == MAP_FAILED) return false;
    (void)::munmap(start, kBytes);
    return true;
  };
  const auto sealed = Slot::make(kBytes).value();
  EXPECT_FALSE(may_write(sealed->reader()));
  EXPECT_FALSE(sealed->pinning_reader().ok());
  const auto open = Slot::make(kBytes, LentMemory::Readers::kMayPin).value();
  EXPECT_FALSE(may_write(open->reader())) << "who does not ask for it";
  EXPECT_TRUE(may_write(open->pinning_reader()));
}

// A publisher that writes as fast as it can; whoever found the word again has one version.
TEST(Slot, GivesNoHalfOfTwoVersions) {
  if (kThreadSanitizer) GTEST_SKIP() << "it knows nothing of a lock between processes";
  auto made = Slot::make(kBytes);
  ASSERT_TRUE(made.ok());
  Slot& slot = **made;
  const auto view = view_of(slot);
  std::atomic<bool> stop{false};
  std::atomic<int> tries{0};
  std::thread publisher([&] {
    for (std::uint64_t version = 0; !stop; ++version) {
      slot.begin();
      const std::string bytes(slot.bytes() - kSlotHeaderBytes, static_cast<char>(version));
      copy_row(slot.start() + kSlotHeaderBytes, bytes.data(), bytes.size(), CopyWay::kStreaming);
      slot.commit(version);
      // Every other one is left alone until it was tried.
      const int before = tries;
      while (version % 2 == 1 && tries < before + 2 && !stop) std::this_thread::yield();
    }
  });
  std::vector<char> mine(slot.bytes() - kSlotHeaderBytes);
  int whole = 0;
  int again = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(5);
  while ((whole < 50 || again < 3) && std::chrono::steady_clock::now() < end) {
    const std::uint64_t word = view->word();
    ++tries;
    if (word == 0) continue;
    std::memcpy(mine.data(), view->start() + kSlotHeaderBytes, mine.size());
    if (view->word() != word) {
      ++again;
      continue;
    }
    ++whole;
    const std::string wanted(mine.size(), static_cast<char>(word - 1));
    ASSERT_EQ(std::memcmp(mine.data(), wanted.data(), mine.size()), 0) << "version " << word - 1;
  }
  stop = true;
  publisher.join();
  EXPECT_GT(whole, 0);
}

}  // namespace
}  // namespace monarch::tensor
