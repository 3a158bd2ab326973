#include "worker/keeper/host_topology.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <map>

#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/process/nvidia_gpus.h"

namespace monarch {

namespace {

std::vector<std::uint32_t> list_in(const std::string& path) {
  std::array<char, 4096> buffer{};
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = fd.valid() ? ::read(fd.get(), buffer.data(), buffer.size()) : 0;
  const auto list = parse_cpu_list(std::string_view(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0));
  return list.value_or(std::vector<std::uint32_t>{});
}

std::uint32_t number_in(const std::string& path) {
  const auto list = list_in(path);
  return list.empty() ? 0 : list.front();
}

}  // namespace

HostTopology read_host_topology(const std::vector<std::uint32_t>& usable, const std::string& root) {
  const std::string system = root + "/sys/devices/system";
  std::map<std::uint32_t, std::uint32_t> node_of;
  for (const std::uint32_t node : list_in(system + "/node/online")) {
    for (const std::uint32_t cpu : list_in(text(system, "/node/node", node, "/cpulist"))) node_of[cpu] = node;
  }
  HostTopology host;
  for (const std::uint32_t number : usable) {
    const std::string topology = text(system, "/cpu/cpu", number, "/topology/");
    host.cpus.push_back({.number = number,
                         .node = node_of[number],
                         .package = number_in(topology + "physical_package_id"),
                         .core = number_in(topology + "core_id")});
  }
  for (const NvidiaGpu& gpu : read_nvidia_gpus(root)) {
    if (gpu.node) host.gpu_nodes[gpu.uuid] = *gpu.node;
  }
  return host;
}

}  // namespace monarch
