#include "supervisor/launch/ssh/ssh_agent.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// draft-miller-ssh-agent: each message is its length in four bytes, its type in one, and its contents.
constexpr std::array<unsigned char, 5> kRequestIdentities = {0, 0, 0, 1, 11};
constexpr unsigned char kIdentitiesAnswer = 12;
constexpr std::size_t kHeader = 9;  // length, type, number of keys
constexpr std::uint32_t kLongestAnswer = 256U << 10U;

Error silence(const std::string& path, WaitEnd end) {
  return {ErrorCode::kTimeout,
          text("ssh-agent at ", path, end == WaitEnd::kCancelled ? ": cancelled" : " does not answer")};
}

std::uint32_t big_endian(const unsigned char* bytes) {
  return static_cast<std::uint32_t>(bytes[0]) << 24U | static_cast<std::uint32_t>(bytes[1]) << 16U |
         static_cast<std::uint32_t>(bytes[2]) << 8U | bytes[3];
}

// All of an answer, so that the next question finds nothing in the way.
Result<std::uint32_t> read_answer(int fd, const std::string& path, const Patience& patience) {
  std::array<unsigned char, kHeader> header{};
  std::size_t got = 0;
  std::size_t left = kHeader;
  while (left > 0) {
    const WaitEnd end = wait_for(fd, POLLIN, patience);
    if (end != WaitEnd::kReady) return silence(path, end);
    unsigned char piece[4096];
    const ssize_t count = ::recv(fd, piece, std::min(left, sizeof piece), MSG_DONTWAIT);
    if (count < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (count < 0) return errno_error(text("ssh-agent at ", path), errno);
    if (count == 0) return Error{ErrorCode::kGone, text("ssh-agent at ", path, " hangs up")};
    const auto size = static_cast<std::size_t>(count);
    if (got < kHeader) std::memcpy(header.data() + got, piece, size);
    got += size;
    left -= size;
    if (got != kHeader) continue;
    const std::uint32_t length = big_endian(header.data());
    if (header[4] != kIdentitiesAnswer || length < 5 || length > kLongestAnswer) {
      return Error{ErrorCode::kUnsupported, text("ssh-agent at ", path, " does not tell its keys")};
    }
    left = length - 5;
  }
  return big_endian(header.data() + 5);
}

}  // namespace

Result<AgentDoor> open_agent(const std::string& path, const Patience& whole) {
  // One that hangs leaves half of the time to the key files.
  const Instant now = boot_now();
  const Patience patience = whole.sooner(now + (whole.until - now) / 2);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::kInvalid, text("ssh-agent at ", path, ": the path of a socket has at most 107 bytes")};
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  AgentDoor door;
  door.socket = UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!door.socket.valid()) return errno_error("socket", errno);
  // A unix socket connects at once, or its queue is full.
  if (::connect(door.socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return errno_error(text("ssh-agent at ", path), errno);
  }
  if (::send(door.socket.get(), kRequestIdentities.data(), kRequestIdentities.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(kRequestIdentities.size())) {
    return errno_error(text("ssh-agent at ", path), errno);
  }
  MONARCH_ASSIGN(door.keys, read_answer(door.socket.get(), path, patience));
  // libssh reads it in one go.
  if (::fcntl(door.socket.get(), F_SETFL, O_RDWR) != 0) return errno_error("fcntl", errno);
  return door;
}

Result<std::unique_ptr<AgentWatch>> AgentWatch::start(int agent_socket, const Patience& patience) {
  UniqueFd stop(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  UniqueFd socket(::fcntl(agent_socket, F_DUPFD_CLOEXEC, 3));
  if (!stop.valid() || !socket.valid()) return errno_error("a descriptor for the watch of ssh-agent", errno);
  std::unique_ptr<AgentWatch> watch(new AgentWatch(std::move(stop)));
  watch->thread_ = std::thread([stop_fd = watch->stop_.get(), patience, agent = std::move(socket)] {
    if (wait_for(stop_fd, POLLIN, patience) != WaitEnd::kReady) (void)::shutdown(agent.get(), SHUT_RDWR);
  });
  return watch;
}

AgentWatch::~AgentWatch() {
  const std::uint64_t one = 1;
  (void)!::write(stop_.get(), &one, sizeof one);
  if (thread_.joinable()) thread_.join();
}

}  // namespace monarch
