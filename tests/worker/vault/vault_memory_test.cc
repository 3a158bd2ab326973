#include "worker/vault/vault_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "transport/wire/sealed_memory.h"

namespace monarch::vault {
namespace {

constexpr BlobId kBlob{7};
constexpr std::uint64_t kMost = 1U << 20U;

TEST(VaultMemory, KeepsWhatIsWrittenInPiecesAndGivesItAwaySealed) {
  VaultMemory memory(kMost);
  ASSERT_TRUE(memory.create(kBlob, 10).ok());
  ASSERT_TRUE(memory.write(kBlob, 5, "56789").ok());
  ASSERT_TRUE(memory.write(kBlob, 0, "01234").ok());
  memory.close(kBlob);
  EXPECT_FALSE(memory.write(kBlob, 0, "x").ok());
  const auto piece = memory.read(kBlob, 3, 4);
  ASSERT_TRUE(piece.ok()) << piece.error().message;
  EXPECT_EQ(*piece, "3456");
  const auto mapped = memory.map(kBlob, 3, 4);
  ASSERT_TRUE(mapped.ok()) << mapped.error().message;
  auto copy = memory.copy_of(kBlob);
  ASSERT_TRUE(copy.ok());
  memory.drop(kBlob);
  EXPECT_EQ(*read_sealed_memory(copy->get(), 10), "0123456789");
  EXPECT_EQ((*mapped)->bytes(), "3456") << "it was being read as it was sealed";
  EXPECT_FALSE(memory.copy_of(kBlob).ok());
}

TEST(VaultMemory, HasNoMoreThanThereIs) {
  VaultMemory memory(kMost);
  ASSERT_TRUE(memory.create(kBlob, 4).ok());
  EXPECT_FALSE(memory.read(kBlob, 2, 4).ok());
  EXPECT_FALSE(memory.map(kBlob, 2, 4).ok());
  EXPECT_FALSE(memory.write(kBlob, 2, "2345").ok());
  EXPECT_FALSE(memory.write(kBlob, ~std::uint64_t{0}, "x").ok());
  EXPECT_FALSE(memory.read(BlobId(8), 0, 1).ok());
}

TEST(VaultMemory, MapsWhatBeginsWithinAPage) {
  VaultMemory memory(kMost);
  std::string content(20'000, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 >> 3U);
  ASSERT_TRUE(memory.create(kBlob, content.size()).ok());
  ASSERT_TRUE(memory.write(kBlob, 0, content).ok());
  EXPECT_EQ((*memory.map(kBlob, 5'000, 9'000))->bytes(), content.substr(5'000, 9'000));
}

// What was given up is used again, unless somebody was given it, and never more waits for that than is kept.
TEST(VaultMemory, UsesAgainWhatWasGivenUp) {
  VaultMemory memory(kMost);
  const auto keep = [&](std::uint32_t blob, std::uint64_t bytes) {
    ASSERT_TRUE(memory.create(BlobId(blob), bytes).ok());
    ASSERT_TRUE(memory.write(BlobId(blob), 0, std::string(bytes, static_cast<char>('a' + blob))).ok());
    memory.close(BlobId(blob));
  };
  keep(1, 10'000);
  keep(2, 10'000);
  memory.drop(BlobId(1));
  EXPECT_EQ(memory.spare_bytes(), 10'000U);
  keep(3, 9'000);
  EXPECT_EQ(memory.spare_bytes(), 0U) << "it was used";
  auto given = memory.copy_of(BlobId(3));
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(*read_sealed_memory(given->get(), 9'000), std::string(9'000, 'd'));
  memory.drop(BlobId(3));
  EXPECT_EQ(memory.spare_bytes(), 0U) << "somebody has it";
  EXPECT_EQ(*read_sealed_memory(given->get(), 9'000), std::string(9'000, 'd'));
  memory.drop(BlobId(2));
  EXPECT_EQ(memory.spare_bytes(), 0U) << "nothing is kept";
}

TEST(VaultMemory, GivesUpWhatWaitsWhereThereIsNoRoomForIt) {
  VaultMemory memory(30'000);
  for (std::uint32_t blob = 1; blob <= 3; ++blob) ASSERT_TRUE(memory.create(BlobId(blob), 10'000).ok());
  memory.drop(BlobId(1));
  EXPECT_EQ(memory.spare_bytes(), 10'000U);
  const auto sealed = make_sealed_memory("sealed", std::string(10'000, 'x'));
  ASSERT_TRUE(sealed.ok());
  memory.adopt(BlobId(4), UniqueFd(::dup(sealed->get())), 10'000);
  EXPECT_EQ(memory.spare_bytes(), 0U);
  memory.drop(BlobId(4));
  EXPECT_EQ(memory.spare_bytes(), 0U) << "it is the rank's";
  memory.drop(BlobId(2));
  ASSERT_TRUE(memory.create(BlobId(5), 100).ok());
  EXPECT_EQ(memory.spare_bytes(), 10'000U) << "a small one does not take it";
}

TEST(VaultMemory, TakesNothingThatSomebodyCanStillChange) {
  const auto sealed = make_sealed_memory("sealed", "123");
  ASSERT_TRUE(sealed.ok());
  EXPECT_EQ(*sealed_memory_size(sealed->get()), 3U);
  const UniqueFd open_one(::memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(sealed_memory_size(open_one.get()).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(sealed_memory_size(STDERR_FILENO).error().code, ErrorCode::kInvalid);
}

}  // namespace
}  // namespace monarch::vault
