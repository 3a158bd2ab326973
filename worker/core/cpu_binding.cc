#include "worker/core/cpu_binding.h"

#include <algorithm>
#include <charconv>
#include <string_view>
#include <tuple>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::uint32_t kHighestCpu = 1U << 16U;  // a list that names more is none

std::vector<HostCpu> in_order(std::vector<HostCpu> cpus) {
  const auto place = [](const HostCpu& cpu) { return std::tuple(cpu.node, cpu.package, cpu.core, cpu.number); };
  std::sort(cpus.begin(), cpus.end(), [&](const HostCpu& a, const HostCpu& b) { return place(a) < place(b); });
  return cpus;
}

Error too_few(const RankBinding& binding, std::size_t have) {
  const std::uint64_t last = std::uint64_t{binding.first_cpu} + std::max(binding.cpus, 1U) - 1;
  return {ErrorCode::kInvalid, text("bind to cores ", binding.first_cpu, '-', last, ": the host has ", have,
                                    " for this job, numbered from 0")};
}

std::vector<std::uint32_t> numbers_of(const std::vector<HostCpu>& cpus) {
  std::vector<std::uint32_t> numbers;
  numbers.reserve(cpus.size());
  for (const HostCpu& cpu : cpus) numbers.push_back(cpu.number);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

Result<std::vector<std::uint32_t>> cores(const RankBinding& binding, const std::vector<HostCpu>& cpus) {
  const std::uint64_t end = std::uint64_t{binding.first_cpu} + binding.cpus;
  if (binding.cpus == 0 || end > cpus.size()) return too_few(binding, cpus.size());
  const auto first = cpus.begin() + static_cast<std::ptrdiff_t>(binding.first_cpu);
  return numbers_of({first, first + static_cast<std::ptrdiff_t>(binding.cpus)});
}

std::vector<HostCpu> of_node(const std::vector<HostCpu>& cpus, std::uint32_t node) {
  std::vector<HostCpu> found;
  std::copy_if(cpus.begin(), cpus.end(), std::back_inserter(found),
               [node](const HostCpu& cpu) { return cpu.node == node; });
  return found;
}

Result<std::vector<std::uint32_t>> numa(const RankBinding& binding, const HostTopology& host,
                                        const std::vector<HostCpu>& cpus) {
  if (!binding.gpus.empty()) {
    const auto near = host.gpu_nodes.find(binding.gpus.front());
    // Where no processor of the GPU's node may be used, the next best is the rank's share of those that may.
    if (near != host.gpu_nodes.end()) {
      if (const auto found = of_node(cpus, near->second); !found.empty()) return numbers_of(found);
    }
  }
  if (binding.first_cpu >= cpus.size()) return too_few(binding, cpus.size());
  return numbers_of(of_node(cpus, cpus[binding.first_cpu].node));
}

}  // namespace

Result<std::vector<std::uint32_t>> bound_cpus(const RankBinding& binding, const HostTopology& host) {
  switch (binding.kind) {
    case BindKind::kNone: return std::vector<std::uint32_t>{};
    case BindKind::kCore: return cores(binding, in_order(host.cpus));
    case BindKind::kNuma: return numa(binding, host, in_order(host.cpus));
  }
  return std::vector<std::uint32_t>{};
}

std::string cpu_list(const std::vector<std::uint32_t>& cpus) {
  std::string list;
  for (std::size_t from = 0; from < cpus.size();) {
    std::size_t to = from;
    while (to + 1 < cpus.size() && cpus[to + 1] == cpus[to] + 1) ++to;
    list += text(list.empty() ? "" : ",", cpus[from]);
    if (to > from) list += text('-', cpus[to]);
    from = to + 1;
  }
  return list;
}

std::optional<std::vector<std::uint32_t>> parse_cpu_list(std::string_view text) {
  std::vector<std::uint32_t> cpus;
  const auto take = [](std::string_view digits) -> std::optional<std::uint32_t> {
    std::uint32_t value = 0;
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
    return value <= kHighestCpu ? std::optional(value) : std::nullopt;
  };
  while (text.ends_with('\n')) text.remove_suffix(1);
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view part = text.substr(0, comma);
    const std::size_t dash = part.find('-');
    const auto first = take(part.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : take(part.substr(dash + 1));
    if (!first || !last || *last < *first) return std::nullopt;
    for (std::uint32_t cpu = *first; cpu <= *last; ++cpu) cpus.push_back(cpu);
    text.remove_prefix(comma == std::string_view::npos ? text.size() : comma + 1);
  }
  return cpus;
}

}  // namespace monarch
