#include "transport/zmq/unread_watch.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Beats of libzmq's own are no messages: some 80 bytes of each of its intervals. A connection that is so old that they
// would be too much is ended, and comes again.
constexpr std::uint64_t kBeatBytesPerSecond = 128;
constexpr std::uint64_t kMostBeatBytes = 256U << 20U;

constexpr Duration kAllEvery = Duration::seconds(1);
constexpr std::uint64_t kGrown = 8U << 20U;  // bytes; then all are looked at at once
constexpr Duration kTellEvery = Duration::seconds(60);

std::optional<std::uint64_t> cookie_of(int descriptor) {
  std::uint64_t cookie = 0;
  socklen_t size = sizeof cookie;
  if (::getsockopt(descriptor, SOL_SOCKET, SO_COOKIE, &cookie, &size) != 0) return std::nullopt;
  return cookie;
}

// WARNING: struct tcp_info of <netinet/tcp.h> ends before this field, and <linux/tcp.h> goes with no other header; it
// only grows at its end (Linux, include/uapi/linux/tcp.h).
std::optional<std::uint64_t> received_of(int descriptor) {
  constexpr std::size_t kBytesReceived = 128;  // where tcpi_bytes_received begins, since Linux 4.1
  constexpr int kTcpInfo = 11;
  std::array<char, kBytesReceived + sizeof(std::uint64_t)> info{};
  socklen_t size = info.size();
  if (::getsockopt(descriptor, IPPROTO_TCP, kTcpInfo, info.data(), &size) != 0 || size < info.size()) {
    return std::nullopt;
  }
  std::uint64_t received = 0;
  std::memcpy(&received, info.data() + kBytesReceived, sizeof received);
  return received;
}

std::string peer_of(int descriptor) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  std::array<char, INET6_ADDRSTRLEN> host{};
  if (::getpeername(descriptor, reinterpret_cast<sockaddr*>(&address), &size) != 0) return "a peer that has gone";
  const auto* const four = reinterpret_cast<const sockaddr_in*>(&address);
  const auto* const six = reinterpret_cast<const sockaddr_in6*>(&address);
  const bool is_four = address.ss_family == AF_INET;
  const void* const number = is_four ? static_cast<const void*>(&four->sin_addr) : &six->sin6_addr;
  (void)::inet_ntop(address.ss_family, number, host.data(), host.size());
  return text(host.data(), ' ', ntohs(is_four ? four->sin_port : six->sin6_port));
}

}  // namespace

UnreadPort::~UnreadPort() { watch_.forget(*this); }

void UnreadPort::opened(int descriptor) { (void)watch_.opened(*this, descriptor); }

// Its connection may be told of later than its first message comes.
void UnreadPort::handed_out(const ZmqArrival& arrival) {
  if (arrival.descriptor < 0) return;
  const auto known = watch_.connections_.find(arrival.descriptor);
  UnreadWatch::Connection* const connection =
      known != watch_.connections_.end() ? &known->second : watch_.opened(*this, arrival.descriptor);
  if (connection != nullptr) connection->handed_out += arrival.bytes;
}

UnreadWatch::Connection* UnreadWatch::opened(UnreadPort& port, int descriptor) {
  const auto cookie = cookie_of(descriptor);
  if (!cookie) return nullptr;  // it is closed already
  Connection& connection = connections_[descriptor];
  if (connection.cookie != *cookie) connection = {.port = &port, .cookie = *cookie, .since = boot_now()};
  return &connection;
}

void UnreadWatch::forget(const UnreadPort& port) {
  std::erase_if(connections_, [&](const auto& one) { return one.second.port == &port; });
}

// What libzmq keeps is in our memory: where that has not grown there is nothing new to find. Where it cannot be told,
// it has.
bool UnreadWatch::has_grown(Instant now) {
  static const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  if (!statm_.valid()) statm_ = UniqueFd(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC));
  std::array<char, 128> line{};
  const ssize_t got = ::pread(statm_.get(), line.data(), line.size(), 0);
  const std::string_view words(line.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  const std::size_t second = words.find(' ');
  std::uint64_t resident = 0;  // pages; proc_pid_statm(5): the second number
  const bool known = second != std::string_view::npos;
  if (known) (void)std::from_chars(words.data() + second + 1, words.data() + words.size(), resident);
  resident_ = std::min(resident_, resident);
  if (known && now < all_due_ && resident - resident_ < kGrown / page) return false;
  resident_ = resident;
  all_due_ = now + kAllEvery;
  return true;
}

// False: it is no connection any more, or another one.
bool UnreadWatch::measure(int descriptor, Connection& connection, Instant now) const {
  if (cookie_of(descriptor) != connection.cookie) return false;
  const auto received = received_of(descriptor);
  if (!received) return false;
  // A message of the connection that had the descriptor before may have been handed out late.
  connection.handed_out = std::min(connection.handed_out, *received);
  const auto age = static_cast<std::uint64_t>(std::max<std::int64_t>(0, (now - connection.since).count_milliseconds()));
  const std::uint64_t beats = std::min(kMostBeatBytes, age * kBeatBytesPerSecond / 1'000);
  const std::uint64_t unread = *received - connection.handed_out;
  connection.unread = unread > beats ? unread - beats : 0;
  return true;
}

void UnreadWatch::look(Instant now) {
  if (now < next_due()) return;
  due_ = now + kEvery;
  if (!has_grown(now)) return;
  unread_ = 0;
  for (auto one = connections_.begin(); one != connections_.end();) {
    auto& [descriptor, connection] = *one;
    if (!measure(descriptor, connection, now)) {
      one = connections_.erase(one);
      continue;
    }
    if (connection.unread > connection.port->most()) end(descriptor, connection);
    if (!connection.ended) unread_ += connection.unread;
    ++one;
  }
  while (unread_ > kOfAll) {
    const auto most = std::max_element(connections_.begin(), connections_.end(), [](const auto& a, const auto& b) {
      return (a.second.ended ? 0 : a.second.unread) < (b.second.ended ? 0 : b.second.unread);
    });
    unread_ -= most->second.unread;
    end(most->first, most->second);
  }
}

void UnreadWatch::end(int descriptor, Connection& connection) {
  if (std::exchange(connection.ended, true)) return;
  ++connection.port->ended_;
  const UniqueFd own(::fcntl(descriptor, F_DUPFD_CLOEXEC, 3));
  if (!own.valid() || cookie_of(own.get()) != connection.cookie) return;
  tell(peer_of(own.get()), connection.unread);
  (void)::shutdown(own.get(), SHUT_RDWR);  // it may have ended by itself
}

void UnreadWatch::tell(const std::string& peer, std::uint64_t bytes) {
  const Instant now = boot_now();
  if (now < tell_at_) {
    ++untold_;
    return;
  }
  tell_at_ = now + kTellEvery;
  const std::uint64_t others = std::exchange(untold_, 0);
  log_warn("a connection of ", peer, " was ended: ", amount_text(bytes),
           " of it lay here as messages that had no end, or were too many",
           others == 0 ? "" : text("; and ", others, " others since the last that was told of"));
}

}  // namespace monarch
