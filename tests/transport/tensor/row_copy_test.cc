// Rows from memory to memory: that each byte arrives, that none beside them is written, and that none is read or
// written where a page ends.

#include "transport/tensor/row_copy.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <ostream>
#include <vector>

#include "transport/tensor/core/plan.h"

namespace monarch::tensor {
namespace {

constexpr std::size_t kLongest = 4'097;
constexpr std::size_t kRows = 7;  // of which three have one four further on

struct Kind {
  CopyWay way = CopyWay::kCached;
  StoreWidth width = StoreWidth::kNone;
};

std::ostream& operator<<(std::ostream& out, const Kind& kind) {
  if (kind.way == CopyWay::kCached) return out << "cached";
  return out << "streaming, " << (kind.width == StoreWidth::k32Bytes ? "32 bytes" : "16 bytes");
}

// Those that this processor has.
std::vector<Kind> kinds() {
  std::vector<Kind> found = {{CopyWay::kCached, store_width()}};
  for (const StoreWidth width : {StoreWidth::k16Bytes, StoreWidth::k32Bytes}) {
    if (width <= store_width()) found.push_back({CopyWay::kStreaming, width});
  }
  return found;
}

// Memory whose last byte is the last of a page, behind which there is none.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::size_t size) : size_(size) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    usable_ = (size + page - 1) / page * page;
    void* const mapped = ::mmap(nullptr, usable_ + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(mapped, MAP_FAILED);
    mapped_ = static_cast<char*>(mapped);
    EXPECT_EQ(::mprotect(mapped_ + usable_, page, PROT_NONE), 0);
    page_ = page;
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { (void)::munmap(mapped_, usable_ + page_); }

  char* end() const { return mapped_ + usable_; }
  char* start() const { return end() - size_; }
  std::size_t size() const { return size_; }

 private:
  char* mapped_ = nullptr;
  std::size_t size_ = 0;
  std::size_t usable_ = 0;
  std::size_t page_ = 0;
};

// So many rows that end where the memory of both does; the space between rows, and what lies before them, stays as it
// is.
struct Case {
  std::size_t row = 0;
  std::size_t source_gap = 0;
  std::size_t destination_gap = 0;
};

void expect_rows(const GuardedBytes& from, const GuardedBytes& to, const Case& one, const Kind& kind) {
  const std::size_t source_pitch = one.row + one.source_gap;
  const std::size_t destination_pitch = one.row + one.destination_gap;
  const char* const source = from.end() - (kRows - 1) * source_pitch - one.row;
  const std::size_t span = (kRows - 1) * destination_pitch + one.row;
  constexpr std::size_t kBefore = 64;
  char* const written = to.end() - span - kBefore;
  std::memset(written, 'x', span + kBefore);
  std::vector<char> wanted(span + kBefore, 'x');
  for (std::size_t row = 0; row < kRows; ++row) {
    std::memcpy(wanted.data() + kBefore + row * destination_pitch, source + row * source_pitch, one.row);
  }
  copy_run({.from = source,
            .to = written + kBefore,
            .row = one.row,
            .rows = kRows,
            .source_pitch = source_pitch,
            .destination_pitch = destination_pitch},
           kind.way, kind.width);
  finish_rows();
  ASSERT_EQ(std::memcmp(written, wanted.data(), wanted.size()), 0)
      << kind << ", rows of " << one.row << ", gaps " << one.source_gap << " and " << one.destination_gap;
}

class RowCopy : public testing::Test {
 protected:
  RowCopy() {
    for (std::size_t i = 0; i < from_.size(); ++i) from_.start()[i] = static_cast<char>(i * 31 + i / 251);
  }

  GuardedBytes from_{kRows * (kLongest + 64) + 64};
  GuardedBytes to_{kRows * (kLongest + 64) + 64};
};

// Both ends are at the end of a page, so each length begins elsewhere; gaps shift each row against the one before.
TEST_F(RowCopy, CopiesRowsOfEachLength) {
  for (const Kind& kind : kinds()) {
    for (std::size_t row = 1; row <= kLongest; ++row) {
      expect_rows(from_, to_, {.row = row, .source_gap = row % 7, .destination_gap = row % 5}, kind);
      if (HasFatalFailure()) return;
    }
  }
}

TEST_F(RowCopy, CopiesRowsThatBeginAnywhere) {
  for (const Kind& kind : kinds()) {
    for (const std::size_t row : {512U, 513U, 1'000U, 1'024U, 4'096U, 4'097U}) {
      for (std::size_t source_gap = 0; source_gap < 64; source_gap += 3) {
        for (std::size_t destination_gap = 0; destination_gap < 33; ++destination_gap) {
          expect_rows(from_, to_, {.row = row, .source_gap = source_gap, .destination_gap = destination_gap}, kind);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST(RowCopyOfOne, CopiesWhatIsLongerThanAPiece) {
  const GuardedBytes from(100'003);
  const GuardedBytes to(100'003);
  for (std::size_t i = 0; i < from.size(); ++i) from.start()[i] = static_cast<char>(i * 31 + i / 251);
  for (const CopyWay way : {CopyWay::kCached, CopyWay::kStreaming}) {
    std::memset(to.start(), 'x', to.size());
    copy_row(to.start(), from.start(), from.size(), way);
    finish_rows();
    EXPECT_EQ(std::memcmp(to.start(), from.start(), from.size()), 0);
  }
}

// Two loops: planes of 5 rows, of which each row is 600 of 640 bytes.
TEST(RowCopyOfAPlan, CopiesEachRun) {
  constexpr std::size_t kPlanes = 3;
  constexpr std::size_t kOfPlane = 5;
  Copy copy{.source = 3, .destination = 1, .row = 600};
  copy.loops[0] = {.count = kPlanes, .source = kOfPlane * 640 + 9, .destination = kOfPlane * 600 + 2};
  copy.loops[1] = {.count = kOfPlane, .source = 640, .destination = 600};
  copy.depth = 2;
  std::vector<char> from(kPlanes * (kOfPlane * 640 + 9) + 3);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 31 + i / 251);
  std::vector<char> wanted(kPlanes * (kOfPlane * 600 + 2) + 1, 'x');
  for (std::size_t plane = 0; plane < kPlanes; ++plane) {
    for (std::size_t row = 0; row < kOfPlane; ++row) {
      std::memcpy(wanted.data() + 1 + plane * (kOfPlane * 600 + 2) + row * 600,
                  from.data() + 3 + plane * (kOfPlane * 640 + 9) + row * 640, 600);
    }
  }
  for (const CopyWay way : {CopyWay::kCached, CopyWay::kStreaming}) {
    std::vector<char> to(wanted.size(), 'x');
    copy_rows(copy, from.data(), to.data(), way);
    finish_rows();
    EXPECT_EQ(to, wanted);
  }
}

}  // namespace
}  // namespace monarch::tensor
