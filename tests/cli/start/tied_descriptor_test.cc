#include "cli/start/tied_descriptor.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>

#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {
namespace {

std::string why_not(const std::string& written) {
  const auto taken = tied_descriptor(written);
  return taken.ok() ? "" : taken.error().message;
}

bool is_inherited(int fd) { return (::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0; }

TEST(TiedDescriptor, TakesTheReadingEndOfAPipeOrASocketAndHandsItToNoChild) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe(ends.data()), 0);
  const UniqueFd reader(ends[0]);
  const UniqueFd writer(ends[1]);
  ASSERT_TRUE(is_inherited(reader.get()));
  EXPECT_EQ(*tied_descriptor(text(reader.get())), reader.get());
  EXPECT_FALSE(is_inherited(reader.get()));
  EXPECT_EQ(why_not(text(writer.get())),
            text("descriptor ", writer.get(), " is the writing end of a pipe, which is the program's alone"));
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), 0);
  const UniqueFd one(ends[0]);
  const UniqueFd other(ends[1]);
  EXPECT_EQ(*tied_descriptor(text(one.get())), one.get());
}

TEST(TiedDescriptor, SaysWhatElseItIs) {
  const UniqueFd device(::open("/dev/null", O_RDWR | O_CLOEXEC));
  const UniqueFd folder(::open("/", O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  const UniqueFd file(::open("/proc/self/exe", O_RDONLY | O_CLOEXEC));
  const auto said = [](const UniqueFd& fd, std::string_view what) {
    return text("descriptor ", fd.get(), " is ", what, ", and neither a pipe nor a socket");
  };
  EXPECT_EQ(why_not(text(device.get())), said(device, "a device"));
  EXPECT_EQ(why_not(text(folder.get())), said(folder, "a folder"));
  EXPECT_EQ(why_not(text(file.get())), said(file, "a file"));
  EXPECT_EQ(why_not("900"), "descriptor 900 is not open");
  for (const char* written : {"", "0", "2", "-3", "3x", "+3", "99999999999"}) {
    EXPECT_EQ(why_not(written), text("`", written, "` is not the number of a descriptor from 3 on"));
  }
}

}  // namespace
}  // namespace monarch
