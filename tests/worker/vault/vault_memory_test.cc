#include "worker/vault/vault_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "transport/wire/sealed_memory.h"

namespace monarch::vault {
namespace {

constexpr BlobId kBlob{7};

TEST(VaultMemory, KeepsWhatIsWrittenInPiecesAndGivesItAwaySealed) {
  VaultMemory memory;
  ASSERT_TRUE(memory.create(kBlob, 10).ok());
  ASSERT_TRUE(memory.write(kBlob, 5, "56789").ok());
  ASSERT_TRUE(memory.write(kBlob, 0, "01234").ok());
  ASSERT_TRUE(memory.seal(kBlob).ok());
  EXPECT_FALSE(memory.write(kBlob, 0, "x").ok());
  const auto piece = memory.read(kBlob, 3, 4);
  ASSERT_TRUE(piece.ok()) << piece.error().message;
  EXPECT_EQ(*piece, "3456");
  auto copy = memory.copy_of(kBlob);
  ASSERT_TRUE(copy.ok());
  memory.drop(kBlob);
  EXPECT_EQ(*read_sealed_memory(copy->get(), 10), "0123456789");
  EXPECT_FALSE(memory.copy_of(kBlob).ok());
}

TEST(VaultMemory, HasNoMoreThanThereIs) {
  VaultMemory memory;
  ASSERT_TRUE(memory.create(kBlob, 4).ok());
  EXPECT_FALSE(memory.read(kBlob, 2, 4).ok());
  EXPECT_FALSE(memory.read(BlobId(8), 0, 1).ok());
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
