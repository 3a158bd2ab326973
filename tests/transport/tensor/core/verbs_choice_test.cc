#include "transport/tensor/core/verbs_choice.h"

#include <gtest/gtest.h>

#include <string>

namespace monarch::tensor {
namespace {

DeviceFacts device(const std::string& name, std::optional<std::uint32_t> node, bool active = true) {
  DeviceFacts facts;
  facts.name = name;
  facts.node = node;
  facts.ports = {{.number = 1, .active = false}, {.number = 2, .active = active, .ethernet = true}};
  return facts;
}

std::string chosen(const std::vector<DeviceFacts>& devices, const DeviceWish& wish) {
  const auto choice = choose_device(devices, wish);
  if (!choice.ok()) return choice.error().message;
  const DeviceFacts& of = devices[choice->device];
  return of.name + ":" + std::to_string(of.ports[choice->port].number);
}

TEST(ChooseDevice, TakesOneOfTheRanksNodeByItsLocalRank) {
  const std::vector<DeviceFacts> four{device("mlx5_0", 0), device("mlx5_1", 0), device("mlx5_2", 1),
                                      device("mlx5_3", 1)};
  EXPECT_EQ(chosen(four, {.name = {}, .node = 1, .local_rank = 0}), "mlx5_2:2");
  EXPECT_EQ(chosen(four, {.name = {}, .node = 1, .local_rank = 3}), "mlx5_3:2");
  EXPECT_EQ(chosen(four, {.name = {}, .node = {}, .local_rank = 6}), "mlx5_2:2");
  EXPECT_EQ(chosen(four, {.name = {}, .node = 7, .local_rank = 1}), "mlx5_1:2") << "no device is on its node";
}

TEST(ChooseDevice, LeavesOutWhatIsNotActive) {
  const std::vector<DeviceFacts> two{device("mlx5_0", 0, false), device("mlx5_1", 0)};
  EXPECT_EQ(chosen(two, {.name = {}, .node = 0, .local_rank = 0}), "mlx5_1:2");
  EXPECT_EQ(chosen({device("mlx5_0", 0, false)}, {}), "no RDMA device has an active port");
  EXPECT_EQ(chosen({}, {}), "no RDMA device");
}

TEST(ChooseDevice, TakesTheOneThatIsNamed) {
  const std::vector<DeviceFacts> two{device("mlx5_0", 0), device("mlx5_1", 0)};
  EXPECT_EQ(chosen(two, {.name = "mlx5_1", .node = {}, .local_rank = 0}), "mlx5_1:2");
  EXPECT_EQ(chosen(two, {.name = "mlx5_0:2", .node = {}, .local_rank = 0}), "mlx5_0:2");
  EXPECT_EQ(chosen(two, {.name = "mlx5_0:1", .node = {}, .local_rank = 0}),
            "MONARCH_RDMA_DEVICE=mlx5_0:1: no such port is active");
  EXPECT_EQ(chosen(two, {.name = "mlx5_7", .node = {}, .local_rank = 0}),
            "MONARCH_RDMA_DEVICE=mlx5_7: there is no such device; did you mean mlx5_0?");
}

GidBytes four(unsigned char last) { return {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 8, 0, last}; }
const GidBytes kLinkLocal{0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
const GidBytes kGlobal{0x20, 0x01, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};

// As a card with a VLAN shows it.
PortFacts table() {
  return {.number = 1,
          .active = true,
          .ethernet = true,
          .lid = 0,
          .mtu = 3,
          .gids = {{0, GidKind::kRoceV1, kLinkLocal, true},
                   {1, GidKind::kRoceV2, kLinkLocal, true},
                   {2, GidKind::kRoceV1, four(1), true},
                   {3, GidKind::kRoceV2, kGlobal, true},
                   {4, GidKind::kRoceV2, four(1), true},
                   {5, GidKind::kRoceV2, four(2), true},
                   {6, GidKind::kRoceV2, four(3), false}}};
}

std::uint32_t index_of(const PortFacts& port, const std::string& routed, std::optional<GidBytes> peer = {}) {
  const auto gid = choose_gid(port, routed, peer);
  return gid.ok() ? gid->index : 99;
}

TEST(ChooseGid, TakesRoceV2ByIpv4ThatRoutesToThePeer) {
  PortFacts port = table();
  EXPECT_EQ(index_of(port, ""), 4U);
  EXPECT_EQ(index_of(port, "10.8.0.2"), 5U);
  EXPECT_EQ(index_of(port, "10.8.0.3"), 4U) << "its device is down";
  EXPECT_EQ(index_of(port, "2001:db8::1"), 3U);
  EXPECT_EQ(index_of(port, "10.8.0.2", kGlobal), 3U) << "of the peer's family";
  port.gids.resize(4);
  EXPECT_EQ(index_of(port, "10.8.0.2"), 3U) << "a global address before a link's own";
  port.gids.resize(2);
  EXPECT_EQ(index_of(port, ""), 1U);
  const auto none = choose_gid(port, "", four(9));
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().message, "no RoCE v2 address that reaches 10.8.0.9");
  port.gids.resize(1);
  EXPECT_EQ(choose_gid(port, "", {}).error().message, "no RoCE v2 address on a device that is up");
}

QueueAddress address(std::uint8_t mtu, std::uint8_t reads) {
  QueueAddress one{.queue = 17, .packet = 5, .lid = 0, .by_gid = true, .mtu = mtu, .reads = reads, .gid = {}};
  one.gid.data.assign(16, 'x');
  return one;
}

TEST(MeetQueues, TakesWhatBothCan) {
  const auto path = meet_queues(address(5, 16), 4, address(3, 4));
  ASSERT_TRUE(path.ok());
  EXPECT_EQ(path->mtu, 3);
  EXPECT_EQ(path->reads, 4);
  EXPECT_EQ(path->gid_index, 4U);
  EXPECT_EQ(meet_queues(address(5, 200), 4, address(5, 200))->reads, kMostReads);
}

TEST(MeetQueues, RefusesAnAddressThatIsNone) {
  const QueueAddress own = address(5, 16);
  const auto refused = [&](auto change) {
    QueueAddress peer = address(3, 4);
    change(peer);
    return !meet_queues(own, 0, peer).ok();
  };
  EXPECT_TRUE(refused([](QueueAddress& one) { one.by_gid = false; }));
  EXPECT_TRUE(refused([](QueueAddress& one) { one.queue = 1U << 24U; }));
  EXPECT_TRUE(refused([](QueueAddress& one) { one.packet = 1U << 24U; }));
  EXPECT_TRUE(refused([](QueueAddress& one) { one.mtu = 0; }));
  EXPECT_TRUE(refused([](QueueAddress& one) { one.mtu = 6; }));
  EXPECT_TRUE(refused([](QueueAddress& one) { one.reads = 0; }));
  EXPECT_TRUE(refused([](QueueAddress& one) { one.gid.data.pop_back(); }));
  EXPECT_FALSE(refused([](QueueAddress& /*one*/) {}));
}

}  // namespace
}  // namespace monarch::tensor
