#include "transport/tensor/core/verbs_choice.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string_view>
#include <utility>

#include "transport/base/nearest.h"
#include "transport/base/take_number.h"
#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

constexpr std::uint32_t kPacketNumbers = 1U << 24U;
constexpr std::uint8_t kLargestMtu = 5;

bool is_mapped_four(const GidBytes& gid) {
  static constexpr std::array<unsigned char, 12> kPrefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kPrefix.begin(), kPrefix.end(), gid.begin());
}

bool is_link_local(const GidBytes& gid) { return gid[0] == 0xfe && (gid[1] & 0xc0U) == 0x80; }

struct Named {
  std::string device;
  std::optional<std::uint8_t> port;
};

Named parse_name(const std::string& name) {
  const std::size_t colon = name.rfind(':');
  if (colon == std::string::npos) return {name, {}};
  std::string_view digits = std::string_view(name).substr(colon + 1);
  std::uint8_t port = 0;
  return take_number(digits, port) && digits.empty() ? Named{name.substr(0, colon), port} : Named{name, {}};
}

std::optional<std::size_t> active_port(const DeviceFacts& device, const std::optional<std::uint8_t>& number) {
  const auto found = std::find_if(device.ports.begin(), device.ports.end(), [&](const PortFacts& port) {
    return port.active && (!number || port.number == *number);
  });
  if (found == device.ports.end()) return std::nullopt;
  return static_cast<std::size_t>(found - device.ports.begin());
}

Result<DeviceChoice> choose_named(const std::vector<DeviceFacts>& devices, const std::string& name) {
  const Named named = parse_name(name);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    names.push_back(devices[i].name);
    if (devices[i].name != named.device) continue;
    const auto port = active_port(devices[i], named.port);
    if (port) return DeviceChoice{i, *port};
    return Error{ErrorCode::kInvalid, text("MONARCH_RDMA_DEVICE=", printable(name), ": no such port is active")};
  }
  return Error{ErrorCode::kInvalid, text("MONARCH_RDMA_DEVICE=", printable(name), ": there is no such device",
                                         nearest_or_all(named.device, names))};
}

}  // namespace

Result<DeviceChoice> choose_device(const std::vector<DeviceFacts>& devices, const DeviceWish& wish) {
  if (devices.empty()) return Error{ErrorCode::kNotFound, "no RDMA device"};
  if (!wish.name.empty()) return choose_named(devices, wish.name);
  std::vector<DeviceChoice> all;
  std::vector<DeviceChoice> near;
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const auto port = active_port(devices[i], {});
    if (!port) continue;
    all.push_back({i, *port});
    if (wish.node && devices[i].node == wish.node) near.push_back({i, *port});
  }
  if (all.empty()) return Error{ErrorCode::kNotFound, "no RDMA device has an active port"};
  const std::vector<DeviceChoice>& of = near.empty() ? all : near;
  return of[wish.local_rank % of.size()];
}

std::string gid_text(const GidBytes& gid) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool four = is_mapped_four(gid);
  const char* const written = four ? ::inet_ntop(AF_INET, gid.data() + 12, text.data(), text.size())
                                   : ::inet_ntop(AF_INET6, gid.data(), text.data(), text.size());
  return written == nullptr ? std::string() : written;
}

Result<GidEntry> choose_gid(const PortFacts& port, const std::string& routed, const std::optional<GidBytes>& peer) {
  const GidEntry* best = nullptr;
  int best_rank = 0;
  for (const GidEntry& entry : port.gids) {
    if (entry.kind != GidKind::kRoceV2 || !entry.up) continue;
    if (peer && is_mapped_four(*peer) != is_mapped_four(entry.gid)) continue;
    int rank = is_mapped_four(entry.gid) ? 3 : is_link_local(entry.gid) ? 1 : 2;
    if (!routed.empty() && gid_text(entry.gid) == routed) rank = 4;
    if (best == nullptr || rank > best_rank) {
      best = &entry;
      best_rank = rank;
    }
  }
  if (best != nullptr) return *best;
  return Error{ErrorCode::kNotFound, peer ? text("no RoCE v2 address that reaches ", gid_text(*peer))
                                          : "no RoCE v2 address on a device that is up"};
}

Result<QueuePath> meet_queues(const QueueAddress& own, std::uint32_t gid_index, const QueueAddress& peer) {
  if (own.by_gid != peer.by_gid) return Error{ErrorCode::kInvalid, "one is on Ethernet, the other on InfiniBand"};
  const bool counts = peer.queue < kPacketNumbers && peer.packet < kPacketNumbers && peer.mtu >= 1 &&
                      peer.mtu <= kLargestMtu && peer.reads >= 1 &&
                      (peer.by_gid ? peer.gid.data.size() == sizeof(GidBytes) : peer.lid != 0);
  if (!counts) return Error{ErrorCode::kInvalid, "an address of a queue that is none"};
  return QueuePath{.own = own,
                   .peer = peer,
                   .gid_index = gid_index,
                   .mtu = std::min(own.mtu, peer.mtu),
                   .reads = std::min({own.reads, peer.reads, kMostReads})};
}

}  // namespace monarch::tensor
