#include "cli/term/output_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "tests/supervisor/client/scratch.h"
#include "transport/base/clock.h"

namespace monarch {

namespace {

struct Ends {
  UniqueFd reader;
  UniqueFd writer;
};

Ends make_pipe() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  EXPECT_EQ(::fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  return {.reader = UniqueFd(ends[0]), .writer = UniqueFd(ends[1])};
}

Ends make_socket() {
  std::array<int, 2> ends{};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  EXPECT_EQ(::fcntl(ends[0], F_SETFL, O_NONBLOCK), 0);
  return {.reader = UniqueFd(ends[0]), .writer = UniqueFd(ends[1])};
}

std::string read_some(int fd) {
  std::string bytes(64U << 10U, '\0');
  const long got = ::read(fd, bytes.data(), bytes.size());
  bytes.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return bytes;
}

std::string numbered_lines(std::size_t size) {
  std::string bytes;
  for (int i = 0; bytes.size() < size; ++i) bytes += std::to_string(i) + "\n";
  return bytes;
}

// Reads slowly while the loop turns, until all is there.
void expect_all_arrives(const Ends& ends) {
  auto loop = *EventLoop::create();
  const auto writer = OutputWriter::create(*loop, ends.writer.get());
  bool drained = false;
  writer->on_drained([&] { drained = true; });
  const std::string sent = numbered_lines(5U << 20U);
  writer->write(sent);
  EXPECT_FALSE(writer->empty()) << "nobody has read yet";
  EXPECT_TRUE(writer->full());
  std::string got;
  const Instant until = boot_now() + Duration::seconds(20);
  while (got.size() < sent.size() && boot_now() < until) {
    got += read_some(ends.reader.get());
    loop->turn();
  }
  EXPECT_EQ(got, sent);
  EXPECT_TRUE(writer->empty());
  EXPECT_TRUE(drained);
}

}  // namespace

TEST(OutputWriter, NeverWaitsForASlowPipeAndLosesNothing) { expect_all_arrives(make_pipe()); }

TEST(OutputWriter, NeverWaitsForASlowSocketAndLosesNothing) { expect_all_arrives(make_socket()); }

TEST(OutputWriter, LeavesTheDescriptorsFlagsAlone) {
  const Ends ends = make_pipe();
  auto loop = *EventLoop::create();
  const auto writer = OutputWriter::create(*loop, ends.writer.get());
  writer->write("x");
  EXPECT_EQ(::fcntl(ends.writer.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(OutputWriter, AppendsToAFileAtItsPosition) {
  const Scratch scratch;
  const std::string path = scratch.write("out", "before ");
  const UniqueFd file(::open(path.c_str(), O_RDWR | O_APPEND | O_CLOEXEC));
  auto loop = *EventLoop::create();
  const auto writer = OutputWriter::create(*loop, file.get());
  writer->write("one ");
  writer->buffer() += "two";
  writer->flush();
  EXPECT_TRUE(writer->empty());
  std::string bytes(32, '\0');
  bytes.resize(static_cast<std::size_t>(::pread(file.get(), bytes.data(), bytes.size(), 0)));
  EXPECT_EQ(bytes, "before one two");
}

TEST(OutputWriter, RemembersThatItsReaderIsGone) {
  ::signal(SIGPIPE, SIG_IGN);
  Ends ends = make_pipe();
  auto loop = *EventLoop::create();
  const auto writer = OutputWriter::create(*loop, ends.writer.get());
  ends.reader.reset();
  writer->write("x");
  EXPECT_EQ(writer->error(), EPIPE);
  writer->write("dropped");
  EXPECT_TRUE(writer->empty());
}

TEST(OutputWriter, DrainsUnderADeadline) {
  const Ends ends = make_pipe();
  auto loop = *EventLoop::create();
  const auto writer = OutputWriter::create(*loop, ends.writer.get());
  writer->write(numbered_lines(1U << 20U));
  writer->drain(Duration::milliseconds(30));
  EXPECT_FALSE(writer->empty());
  while (!read_some(ends.reader.get()).empty()) continue;
  EXPECT_FALSE(writer->full());
}

}  // namespace monarch
