#include "cli/term/unread_input.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "transport/base/unique_fd.h"

namespace monarch {
namespace {

TEST(UnreadInput, IsWhatAPipeHolds) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reader(ends[0]);
  UniqueFd writer(ends[1]);
  EXPECT_FALSE(has_unread_input(reader.get()));
  ASSERT_EQ(::write(writer.get(), "21\n", 3), 3);
  EXPECT_TRUE(has_unread_input(reader.get()));
  writer.reset();
  EXPECT_TRUE(has_unread_input(reader.get()));
  std::array<char, 8> bytes{};
  ASSERT_EQ(::read(reader.get(), bytes.data(), bytes.size()), 3) << "nothing was taken";
  EXPECT_FALSE(has_unread_input(reader.get())) << "at the end";
}

TEST(UnreadInput, IsTheRestOfAFile) {
  char name[] = "/tmp/monarch-input-XXXXXX";  // NOLINT(modernize-avoid-c-arrays): mkstemp's
  const UniqueFd file(::mkostemp(name, O_CLOEXEC));
  ASSERT_TRUE(file.valid());
  (void)::unlink(name);
  EXPECT_FALSE(has_unread_input(file.get()));
  ASSERT_EQ(::write(file.get(), "21\n", 3), 3);
  EXPECT_FALSE(has_unread_input(file.get()));
  ASSERT_EQ(::lseek(file.get(), 1, SEEK_SET), 1);
  EXPECT_TRUE(has_unread_input(file.get()));
  EXPECT_EQ(::lseek(file.get(), 0, SEEK_CUR), 1);
}

TEST(UnreadInput, IsNoneOfANullDeviceOrOfNothing) {
  const UniqueFd null(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  EXPECT_FALSE(has_unread_input(null.get()));
  EXPECT_FALSE(has_unread_input(-1));
}

}  // namespace
}  // namespace monarch
