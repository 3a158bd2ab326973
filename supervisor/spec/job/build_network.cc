#include "supervisor/spec/job/build_network.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/core/spec/placement.h"
#include "supervisor/spec/hosts/network_names.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::optional<PortSpan> ports_of(const YamlNode* map) {
  const YamlNode* node = nonempty_scalar_of(map, "ports");
  if (node == nullptr || node->text == "auto") return std::nullopt;
  const std::size_t dash = std::min(node->text.find('-'), node->text.size() - 1);
  const YamlNode ends{.kind = YamlNode::Kind::kMap,
                      .keys = {{.text = "first", .place = {}}, {.text = "last", .place = {}}},
                      .items = {{.kind = YamlNode::Kind::kScalar, .text = node->text.substr(0, dash)},
                                {.kind = YamlNode::Kind::kScalar, .text = node->text.substr(dash + 1)}}};
  const auto first = integer_of(&ends, "first");
  const auto last = integer_of(&ends, "last");
  if (!first || !last || *first == 0 || *first > *last || *last > 65'535) return std::nullopt;  // refused by the schema
  return PortSpan{.first = static_cast<std::uint16_t>(*first), .last = static_cast<std::uint16_t>(*last)};
}

// Other machines would dial themselves.
void check_reachable(const JobSpec& job, const YamlNode& root, Report& report) {
  if (job.launch.facts().one_machine || job.pool_size() - job.hosts_on_request() < 2) return;
  if (job.control.via == ControlVia::kSsh) return;  // it is not used, and notes say so
  if (numeric_address(job.control.address) != NumericAddress::kLoopback) return;
  report.error("E0314", value_of(value_of(&root, "control"), "address")->place,
               {.message = text("`control.address` is ", job.control.address, ", which on each of the ",
                                job.pool_size(), " hosts means the host itself"),
                .label = "is a loopback address",
                .help = text("write an address of ", job.supervised_away() ? "the first host" : "this machine",
                             " that the hosts reach, or `auto`")});
}

void check_supervisor_on(const JobSpec& job, const YamlNode& root, Report& report) {
  if (!job.supervised_away() || job.control.via != ControlVia::kSsh) return;
  report.error("E0320", value_of(value_of(&root, "control"), "via")->place,
               {.message = "`control.via: ssh` and `supervisor.on: first` exclude each other",
                .label = "nothing is called back here",
                .help = "leave `control.via` out, or write `supervisor: {on: here}`"});
}

// The most ports that are taken on one machine: those of its ranks by `ports`, one for each gang that begins there, and
// one where checkpoints are kept.
std::uint64_t ports_needed(const JobSpec& job) {
  const Placement placement(job);
  std::vector<std::uint64_t> wanted(job.hosts_needed());
  for (std::uint32_t m = 0; m < job.meshes.size(); ++m) {
    const MeshSpec& mesh = job.meshes[m];
    const auto automatic =
        std::count_if(mesh.ports.begin(), mesh.ports.end(), [](const PortSpec& p) { return !p.fixed; });
    const std::uint32_t first = placement.first_slot(MeshId(m));
    for (std::uint32_t h = 0; h < mesh.hosts(); ++h) {
      wanted[first + h] += static_cast<std::uint64_t>(automatic) * mesh.per_host();
    }
    const std::uint32_t gang_size = mesh.size() / mesh.gangs();
    for (std::uint32_t g = 0; g < mesh.gangs(); ++g) ++wanted[first + g * gang_size / mesh.per_host()];
  }
  const bool keeps = job.checkpoints.peer > 0;
  for (std::uint64_t& ports : wanted) ports += keeps ? 1 : 0;
  const bool one_machine = job.launch.facts().one_machine;
  if (one_machine) return std::accumulate(wanted.begin(), wanted.end(), std::uint64_t{keeps ? job.spares() : 0});
  return wanted.empty() ? 0 : *std::max_element(wanted.begin(), wanted.end());
}

// Which are not chosen for anybody.
std::uint64_t fixed_within(const JobSpec& job, const PortSpan& span) {
  std::set<std::uint16_t> fixed;
  for (const MeshSpec& mesh : job.meshes) {
    for (const PortSpec& port : mesh.ports) {
      if (port.fixed && *port.fixed >= span.first && *port.fixed <= span.last) fixed.insert(*port.fixed);
    }
  }
  return fixed.size();
}

void check_ports_suffice(const JobSpec& job, const YamlNode& root, Report& report) {
  if (!job.network.ports) return;
  constexpr std::uint16_t kLastPort = 65'535;
  const std::uint64_t have =
      job.network.ports->last - job.network.ports->first + 1U - fixed_within(job, *job.network.ports);
  const std::uint64_t chosen = ports_needed(job);
  if (have >= chosen) return;
  // With room for all that are fixed, wherever they lie.
  const std::uint64_t need = chosen + fixed_within(job, {.first = 1, .last = kLastPort});
  const std::uint64_t first =
      std::min<std::uint64_t>(job.network.ports->first, kLastPort - std::min<std::uint64_t>(need, kLastPort) + 1);
  report.error(
      "E0315", value_of(value_of(&root, "network"), "ports")->place,
      {.message = text("the ranks of one machine need ", counted(chosen, "port"), ", and `network.ports` has ", have),
       .label = job.checkpoints.peer > 0 ? "one for each `ports` of a rank, for each gang, and for `checkpoints`"
                                         : "one for each `ports` of a rank, and one for each gang",
       .help = need > kLastPort ? "fewer ranks on one machine, or fewer of their `ports`, would work"
                                : text("`", first, "-", first + need - 1, "` would work")});
}

// Hosts behind others do not know whom to call, unless the supervisor is among them.
bool lies_behind_others(const YamlNode& root) {
  const YamlNode* jump = value_of(value_of(value_of(&root, "launch"), "ssh"), "jump");
  const YamlNode* on = nonempty_scalar_of(value_of(&root, "supervisor"), "on");
  return jump != nullptr && !jump->items.empty() && (on == nullptr || on->text == "here");
}

}  // namespace

ControlSpec build_control(const YamlNode& root, Report& report) {
  constexpr std::uint32_t kLeast = 2;  // one for beats and commands, one for what is large
  const YamlNode* control = value_of(&root, "control");
  const YamlNode* via = nonempty_scalar_of(control, "via");
  ControlSpec out{.via = via != nullptr && via->text == "ssh" ? ControlVia::kSsh : ControlVia::kDirect,
                  .address = "",
                  .ports = ports_of(control)};
  if (out.ports && out.ports->last - out.ports->first + 1U < kLeast) {
    const YamlNode* ports = value_of(control, "ports");
    const std::uint32_t first = out.ports->first == 65'535 ? 65'534 : out.ports->first;
    report.error("E0206", ports->place,
                 {.message = text("`control.ports` has at least ", kLeast, " ports, not 1"),
                  .label = "one for beats and commands, one for what is large",
                  .help = text("`", first, "-", first + 1, "` would work")});
  }
  const YamlNode* address = nonempty_scalar_of(control, "address");
  if (address == nullptr || address->text == "auto") {
    if (via == nullptr && lies_behind_others(root)) out.via = ControlVia::kSsh;
    return out;
  }
  const NumericAddress kind = numeric_address(address->text);
  if (kind == NumericAddress::kNone || kind == NumericAddress::kUnspecified) {
    report.error("E0222", address->place,
                 {.message = text("`control.address` takes an address in numbers, not `", address->text, "`"),
                  .label = kind == NumericAddress::kNone ? "the hosts look up no names" : "nobody can be reached there",
                  .help = "write one such as `10.0.0.1`, or `auto`"});
    return out;
  }
  out.address = address->text;
  return out;
}

SupervisorPlace build_supervisor_on(const YamlNode& root) {
  const YamlNode* on = nonempty_scalar_of(value_of(&root, "supervisor"), "on");
  return on != nullptr && on->text == "first" ? SupervisorPlace::kFirst : SupervisorPlace::kHere;
}

NetworkSpec build_network(const YamlNode& root, Report& report) {
  const YamlNode* network = value_of(&root, "network");
  NetworkSpec out{.interface = "", .ports = ports_of(network)};
  const YamlNode* interface = nonempty_scalar_of(network, "interface");
  if (interface == nullptr || interface->text == "auto") return out;
  if (is_interface_name(interface->text)) {
    out.interface = interface->text;
    return out;
  }
  report.error("E0223", interface->place,
               {.message = text("`network.interface` takes the name of an interface, not `", interface->text, "`"),
                .label = numeric_address(interface->text) != NumericAddress::kNone ? "is an address"
                                                                                   : "at most 15 letters and digits",
                .help = "`ip -brief link` on a host lists them; one name must be right for all hosts"});
  return out;
}

void check_network(const JobSpec& job, const YamlNode& root, Report& report) {
  check_supervisor_on(job, root, report);
  check_reachable(job, root, report);
  check_ports_suffice(job, root, report);
}

}  // namespace monarch
