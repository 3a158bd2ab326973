#include "transport/tensor/verbs/queue_words.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "transport/base/machine.h"
#include "transport/base/socket_address.h"
#include "transport/base/unique_fd.h"

namespace monarch::tensor {

namespace {

constexpr std::uint16_t kAnyPort = 9;  // of a datagram socket that sends nothing

std::uint32_t random_packet() {
  std::uint32_t number = 0;
  const std::string bytes = random_bytes(3);
  std::memcpy(&number, bytes.data(), bytes.size());
  return number;
}

}  // namespace

std::string address_towards(const std::string& peer) {
  const SocketAddress to = socket_address(peer, kAnyPort);
  if (to.size == 0) return {};
  const UniqueFd socket(::socket(to.family(), SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_storage own{};
  socklen_t size = sizeof own;
  if (!socket.valid() || ::connect(socket.get(), to.get(), to.size) != 0 ||
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &size) != 0) {
    return {};
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const void* const address = own.ss_family == AF_INET6
                                  ? static_cast<const void*>(&reinterpret_cast<const sockaddr_in6&>(own).sin6_addr)
                                  : static_cast<const void*>(&reinterpret_cast<const sockaddr_in&>(own).sin_addr);
  return ::inet_ntop(own.ss_family, address, text.data(), text.size()) == nullptr ? std::string() : text.data();
}

std::optional<GidBytes> gid_of(const QueueAddress& address) {
  GidBytes gid{};
  if (!address.by_gid || address.gid.data.size() != gid.size()) return std::nullopt;
  std::copy(address.gid.data.begin(), address.gid.data.end(), gid.begin());
  return gid;
}

Result<OwnQueue> make_own_queue(VerbsDevice& device, std::size_t reads, const std::string& towards,
                                const std::optional<GidBytes>& peer) {
  MONARCH_ASSIGN(const PortFacts port, device.port());
  if (!port.active) return Error{ErrorCode::kNotFound, "its port is not active"};
  OwnQueue made;
  made.address = {.packet = random_packet(), .lid = port.lid, .by_gid = port.ethernet, .mtu = port.mtu};
  made.address.reads = reads > 0 ? device.facts().reads_out : device.facts().reads_in;
  if (port.ethernet) {
    MONARCH_ASSIGN(const GidEntry gid, choose_gid(port, address_towards(towards), peer));
    made.gid_index = gid.index;
    made.address.gid.data.assign(gid.gid.begin(), gid.gid.end());
  }
  MONARCH_ASSIGN(made.queue, device.make_queue(reads));
  made.address.queue = made.queue->number();
  return made;
}

}  // namespace monarch::tensor
