#include "transport/process/door.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "transport/base/clock.h"
#include "transport/base/socket_address.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kBacklog = 64;
constexpr std::size_t kWordBytes = 256;
constexpr timeval kStrangerPatience{.tv_sec = 1, .tv_usec = 0};

// On all addresses of both families, where there are both.
Result<UniqueFd> listener_at(std::uint16_t port) {
  for (const std::string everywhere : {"::", "0.0.0.0"}) {
    const SocketAddress address = socket_address(everywhere, port);
    UniqueFd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    if (!socket.valid()) continue;
    const int on = 1;
    const int off = 0;
    (void)::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);  // what was in use a moment ago
    if (address.family() == AF_INET6 && ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) != 0)
      continue;
    if (::bind(socket.get(), address.get(), address.size) != 0 || ::listen(socket.get(), kBacklog) != 0) {
      if (errno == EADDRINUSE) return errno_error(text("port ", port), errno);
      continue;
    }
    return socket;
  }
  return errno_error(text("listening at port ", port), errno);
}

void answer_one(int listener, const DoorWords& words) {
  const UniqueFd guest(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
  if (!guest.valid()) return;
  (void)::setsockopt(guest.get(), SOL_SOCKET, SO_RCVTIMEO, &kStrangerPatience, sizeof kStrangerPatience);
  std::array<char, kWordBytes> said{};
  const std::size_t wanted = std::min(words.word.size(), said.size());
  const ssize_t got = ::recv(guest.get(), said.data(), wanted, MSG_WAITALL);
  if (got != static_cast<ssize_t>(wanted) || words.word != std::string_view(said.data(), wanted)) return;
  (void)::send(guest.get(), words.answer.data(), words.answer.size(), MSG_NOSIGNAL);  // or it does not wait for it
}

struct Call {
  UniqueFd socket;
  bool said = false;
  bool over = false;
  std::string heard;
  std::string error;

  void end(std::string why) {
    error = std::move(why);
    over = true;
    socket.reset();
  }
};

Call begin(const DoorCall& call) {
  Call out;
  const SocketAddress address = socket_address(call.address, call.port);
  if (address.size == 0) {
    out.end(text("`", printable(call.address), "` is no numeric address"));
    return out;
  }
  out.socket = UniqueFd(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!out.socket.valid() || (::connect(out.socket.get(), address.get(), address.size) != 0 && errno != EINPROGRESS)) {
    out.end(errno_error("connect", errno).message);
  }
  return out;
}

void go_on(Call& call, const DoorWords& words) {
  if (!call.said) {
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(call.socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) error = errno;
    if (error != 0) return call.end(errno_error("connect", error).message);
    (void)::send(call.socket.get(), words.word.data(), words.word.size(), MSG_NOSIGNAL);  // the answer tells
    call.said = true;
    if (words.answer.empty()) call.end("");
    return;
  }
  std::array<char, kWordBytes> bytes{};
  const ssize_t got = ::recv(call.socket.get(), bytes.data(), bytes.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got < 0) return call.end(errno_error("the connection", errno).message);
  call.heard.append(bytes.data(), static_cast<std::size_t>(got));
  if (call.heard.starts_with(words.answer)) return call.end("");
  if (got == 0 || !words.answer.starts_with(call.heard)) call.end("somebody else answers there");
}

}  // namespace

Result<std::unique_ptr<Door>> Door::open(const DoorWords& words, std::uint16_t first, std::uint16_t last) {
  for (std::uint32_t port = first; port <= std::max(first, last); ++port) {
    auto listener = listener_at(static_cast<std::uint16_t>(port));
    if (!listener.ok() && listener.error().code == ErrorCode::kBusy) continue;
    if (!listener.ok()) return std::move(listener).error();
    const int fd = listener->get();
    const std::uint16_t number = port_of(fd);
    auto answerer = ForkedWork::start(fd, [fd, &words] {
      for (;;) answer_one(fd, words);
    });
    if (!answerer.ok()) return std::move(answerer).error();
    return std::unique_ptr<Door>(new Door(number, std::move(*answerer)));
  }
  return Error{ErrorCode::kBusy, text("no port from ", first, " to ", last, " is free")};
}

std::vector<DoorReached> knock(const std::vector<DoorCall>& calls, const DoorWords& words, Duration patience) {
  std::vector<Call> open;
  for (const DoorCall& call : calls) open.push_back(begin(call));
  const Instant until = boot_now() + patience;
  for (;;) {
    std::vector<pollfd> polled;
    std::vector<Call*> owners;
    for (Call& call : open) {
      if (call.over) continue;
      polled.push_back({call.socket.get(), static_cast<short>(call.said ? POLLIN : POLLOUT), 0});
      owners.push_back(&call);
    }
    const Duration left = until - boot_now();
    if (polled.empty() || left <= Duration::zero()) break;
    (void)::poll(polled.data(), polled.size(), static_cast<int>(left.count_milliseconds()) + 1);
    for (std::size_t i = 0; i < polled.size(); ++i) {
      if (polled[i].revents != 0) go_on(*owners[i], words);
    }
  }
  std::vector<DoorReached> reached;
  for (std::size_t i = 0; i < calls.size(); ++i) {
    if (!open[i].over) open[i].end(text("no answer within ", to_text(patience)));
    reached.push_back({calls[i], open[i].error});
  }
  return reached;
}

// The connection of a datagram socket is a choice of route and address, made at once.
std::string address_towards(const DoorCall& call) {
  SocketAddress there = socket_address(call.address, call.port);
  if (there.size == 0) return {};
  const UniqueFd socket(::socket(there.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() || ::connect(socket.get(), there.get(), there.size) != 0) return {};
  socklen_t size = sizeof there.storage;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&there.storage), &size) != 0) return {};
  std::array<char, INET6_ADDRSTRLEN> name{};
  const void* number = there.family() == AF_INET6
                           ? static_cast<const void*>(&reinterpret_cast<sockaddr_in6*>(&there.storage)->sin6_addr)
                           : static_cast<const void*>(&reinterpret_cast<sockaddr_in*>(&there.storage)->sin_addr);
  return ::inet_ntop(there.family(), number, name.data(), name.size()) != nullptr ? name.data() : "";
}

}  // namespace monarch
