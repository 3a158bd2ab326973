#pragma once

// Which RDMA device a rank reads and is read by, which of its addresses, and with what values two queues meet.
//
// Thread: pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <monarch/codec.hpp>

#include "transport/base/result.h"

namespace monarch::tensor {

using GidBytes = std::array<unsigned char, 16>;

enum class GidKind : std::uint8_t { kInfiniBand, kRoceV1, kRoceV2 };

struct GidEntry {
  std::uint32_t index = 0;
  GidKind kind = GidKind::kInfiniBand;
  GidBytes gid{};
  bool up = true;  // so is its network device
};

struct PortFacts {
  std::uint8_t number = 1;
  bool active = false;
  bool ethernet = false;  // RoCE: by GID; else InfiniBand: by LID
  std::uint16_t lid = 0;
  std::uint8_t mtu = 0;  // as verbs count it: 1 is 256 bytes, 5 is 4,096
  std::vector<GidEntry> gids;
};

struct DeviceFacts {
  std::string name;                   // "mlx5_0"
  std::optional<std::uint32_t> node;  // of NUMA
  std::uint8_t reads_out = 1;         // READs under way that a queue of it may ask for
  std::uint8_t reads_in = 1;          // and may answer
  std::vector<PortFacts> ports;
};

struct DeviceWish {
  std::string name;                   // MONARCH_RDMA_DEVICE, "mlx5_0" or "mlx5_0:2"; empty: any
  std::optional<std::uint32_t> node;  // of NUMA that the rank runs on
  std::uint32_t local_rank = 0;
};

struct DeviceChoice {
  std::size_t device = 0;
  std::size_t port = 0;  // index into its ports
};

// A device with an active port: that was named; else of those on the rank's own node, or of all, one by the local rank.
// kNotFound: there is none; kInvalid: what was named is none, or not active; the message says which there are.
Result<DeviceChoice> choose_device(const std::vector<DeviceFacts>& devices, const DeviceWish& wish);

// Which of a port's addresses others are reached from: RoCE v2 by IPv4, before all that which routes to the peer; then
// global IPv6, link-local last. `routed`: numeric, the host's own address on the way to the peer; empty: not known.
// `peer`: his GID, where it is known: both are of one family. kNotFound: none fits.
Result<GidEntry> choose_gid(const PortFacts& port, const std::string& routed, const std::optional<GidBytes>& peer);
// "10.8.0.1", "fe80::1".
std::string gid_text(const GidBytes& gid);

// How a queue is found by its other side, and what it can do.
struct QueueAddress {
  std::uint32_t queue = 0;
  std::uint32_t packet = 0;  // number of its first
  std::uint16_t lid = 0;
  bool by_gid = false;
  std::uint8_t mtu = 0;
  std::uint8_t reads = 1;  // READs under way that it asks for, or answers
  codec::Bytes gid;        // 16 bytes
};
MONARCH_FIELDS(QueueAddress, queue, packet, lid, by_gid, mtu, reads, gid)

inline constexpr std::uint8_t kMostReads = 16;  // under way, of one queue

// Both of which a path is made.
struct QueuePath {
  QueueAddress own;
  QueueAddress peer;
  std::uint32_t gid_index = 0;  // of one's own GID
  std::uint8_t mtu = 0;         // the smaller one
  std::uint8_t reads = 1;       // the same
};
// kInvalid: such addresses do not meet; the message says why.
Result<QueuePath> meet_queues(const QueueAddress& own, std::uint32_t gid_index, const QueueAddress& peer);

}  // namespace monarch::tensor
