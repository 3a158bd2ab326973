#include "supervisor/core/facts/held_ports.h"

#include <algorithm>

namespace monarch {

namespace {

std::uint32_t automatic_ports(const MeshSpec& mesh) {
  return static_cast<std::uint32_t>(
      std::count_if(mesh.ports.begin(), mesh.ports.end(), [](const PortSpec& port) { return !port.fixed; }));
}

}  // namespace

Reserve ports_to_hold(const HeldPortsInput& input, MeshId mesh, GangId gang, HostId host) {
  const RankRange here = input.placement.range_of(mesh, gang, host);
  const bool first = input.placement.index_in_gang(mesh, gang, host) == 0U;
  Reserve reserve{.mesh = mesh, .gang = gang, .generation = input.crew.generation};
  reserve.count = here.count * automatic_ports(input.mesh) + (first ? 1 : 0);
  for (std::uint32_t i = 0; i < here.count; ++i) {
    for (const PortSpec& port : input.mesh.ports) {
      if (port.fixed) reserve.fixed.push_back(*port.fixed);
    }
  }
  return reserve;
}

bool asks_for_something(const Reserve& reserve) {
  return reserve.count > 0 || !reserve.fixed.empty() || !reserve.gpus.empty();
}

std::uint16_t master_port(const Crew& crew) {
  return crew.ports.empty() || crew.ports.front().ports.empty() ? std::uint16_t{0} : crew.ports.front().ports.front();
}

std::uint16_t port_of(const HeldPortsInput& input, RankId rank, std::size_t index) {
  const PortSpec& port = input.mesh.ports[index];
  if (port.fixed) return *port.fixed;
  const GangId gang = input.mesh.gang_of(rank.rank);
  const HostId host = input.placement.host_of(rank);
  const std::size_t of_gang = input.placement.index_in_gang(rank.mesh, gang, host).value_or(0);
  if (of_gang >= input.crew.ports.size()) return 0;
  std::size_t at = of_gang == 0 ? 1 : 0;  // after MASTER_PORT
  at += (rank.rank.value() - input.placement.range_of(rank.mesh, gang, host).first) * automatic_ports(input.mesh);
  for (std::size_t i = 0; i < index; ++i) at += input.mesh.ports[i].fixed ? 0U : 1U;
  const std::vector<std::uint16_t>& held = input.crew.ports[of_gang].ports;
  return at < held.size() ? held[at] : std::uint16_t{0};
}

std::vector<std::uint16_t> ports_of(const HeldPortsInput& input, RankId rank) {
  std::vector<std::uint16_t> ports;
  for (std::size_t i = 0; i < input.mesh.ports.size(); ++i) ports.push_back(port_of(input, rank, i));
  return ports;
}

}  // namespace monarch
