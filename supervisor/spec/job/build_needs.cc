#include "supervisor/spec/job/build_needs.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/spec/schema/names.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::vector<std::string> port_names(const std::vector<PortSpec>& ports) {
  std::vector<std::string> names;
  for (const PortSpec& port : ports) names.push_back(port.name);
  return names;
}

void build_ports(const YamlNode* ports, MeshSpec& mesh) {
  if (ports == nullptr || !ports->is(YamlNode::Kind::kMap)) return;
  for (std::size_t i = 0; i < ports->keys.size(); ++i) {
    const auto number = integer_of(ports, ports->keys[i].text);
    PortSpec port{.name = ports->keys[i].text, .fixed = std::nullopt};
    if (number && *number > 0 && *number <= 65'535) port.fixed = static_cast<std::uint16_t>(*number);
    mesh.ports.push_back(std::move(port));
  }
}

void build_ready(const YamlNode& node, MeshSpec& mesh, Report& report) {
  const YamlNode* ready = value_of(&node, "ready");
  if (ready == nullptr) return;
  if (ready->is(YamlNode::Kind::kScalar)) {
    if (ready->text == "notify") mesh.ready.kind = ReadyKind::kNotify;
    return;
  }
  const YamlNode* tcp = value_of(ready, "tcp");
  if (tcp == nullptr || !tcp->is(YamlNode::Kind::kScalar) || tcp->text.empty()) return;
  const std::vector<std::string> names = port_names(mesh.ports);
  const auto found = std::find(names.begin(), names.end(), tcp->text);
  mesh.ready.kind = ReadyKind::kTcp;
  if (found != names.end()) {
    mesh.ready.port = static_cast<std::size_t>(found - names.begin());
    return;
  }
  mesh.ready.kind = ReadyKind::kExec;  // whoever goes on needs a sound value
  const auto guess = nearest(tcp->text, names);
  const bool number = !tcp->text.empty() && tcp->text.find_first_not_of("0123456789") == std::string::npos;
  report.error("E0213", tcp->place,
               {.message = text("`ready.tcp` names `", tcp->text, "`, which is no port of mesh `", mesh.name, "`"),
                .label = names.empty() ? "the mesh has no `ports`" : "not one of its `ports`",
                .help = number ? text("give the port a name: `ports: {http: ", tcp->text, "}` and `ready: {tcp: http}`")
                        : guess ? text("did you mean `", *guess, "`?")
                                : text("add `ports: {", is_name(tcp->text) ? tcp->text : "http", ": auto}`")});
}

void build_resources(const YamlNode* resources, MeshSpec& mesh, Report& report) {
  if (resources == nullptr) return;
  mesh.resources.gpus = integer_of(resources, "gpus");
  mesh.resources.cpus = integer_of(resources, "cpus");
  if (text_of(resources, "visible") == "rank") mesh.resources.visible = GpuVisibility::kRank;
  const auto bind = text_of(resources, "bind");
  if (bind == "core") mesh.resources.bind = BindKind::kCore;
  if (bind == "numa") mesh.resources.bind = BindKind::kNuma;
  if (mesh.resources.bind == BindKind::kCore && mesh.resources.cpus.value_or(0) == 0) {
    report.error("E0312", value_of(resources, "bind")->place,
                 {.message = text("mesh `", mesh.name, "` binds its ranks to cores and does not say to how many"),
                  .label = "needs `cpus`",
                  .help = "`resources: {cpus: 1, bind: core}` would work"});
  }
}

}  // namespace

void build_needs(const YamlNode& node, MeshSpec& mesh, Report& report) {
  build_ports(value_of(&node, "ports"), mesh);
  build_ready(node, mesh, report);
  build_resources(value_of(&node, "resources"), mesh, report);
}

namespace {

// The mesh whose hosts it has: its own, or those of the mesh at the end of `like`.
std::size_t host_owner(const JobSpec& job, std::size_t mesh) {
  for (std::size_t steps = 0; job.meshes[mesh].like && steps < job.meshes.size(); ++steps) {
    mesh = job.meshes[mesh].like->value();
  }
  return mesh;
}

// "2 on each of 2 virtual hosts, which …"; empty: the rank is alone with its port.
std::string where_wanted(const MeshSpec& mesh, bool one_machine) {
  if (one_machine ? mesh.size() <= 1 : mesh.per_host() <= 1) return "";
  if (!one_machine) return text(mesh.per_host(), " on each of its hosts");
  return text(mesh.per_host(), " on each of ", mesh.hosts(),
              mesh.hosts() == 1 ? " host" : " virtual hosts, which share this machine's ports");
}

}  // namespace

// Virtual hosts share the ports of one machine, so all ranks of the job count; of real ones those on a host.
void check_fixed_ports(const JobSpec& job, const YamlNode& meshes, Report& report) {
  const bool one_machine = job.launch.facts().one_machine;
  std::map<std::pair<std::size_t, std::uint16_t>, std::string> taken;
  for (std::size_t m = 0; m < job.meshes.size(); ++m) {
    const MeshSpec& mesh = job.meshes[m];
    const YamlNode* ports = value_of(meshes.find(mesh.name), "ports");
    for (const PortSpec& port : mesh.ports) {
      if (!port.fixed) continue;
      const YamlNode& number = *ports->find(port.name);
      const std::string here = text(mesh.name, ".", port.name);
      const std::string where = where_wanted(mesh, one_machine);
      if (!where.empty()) {
        report.error("E0313", number.place,
                     {.message = text("port ", *port.fixed, " would be wanted by ", mesh.size(), " ranks of mesh `",
                                      mesh.name, "`: ", where),
                      .label = "a number is one port of the machine",
                      .help = text("`", port.name, ": auto` gives each rank one of its own, in MONARCH_PORT_…")});
        continue;
      }
      const std::size_t machine = one_machine ? 0 : host_owner(job, m);
      const auto other = taken.emplace(std::pair(machine, *port.fixed), here);
      if (other.second) continue;
      report.error("E0313", number.place,
                   {.message = text("port ", *port.fixed, " is wanted twice: `", other.first->second, "` and `", here,
                                    "` are on one machine"),
                    .label = "is taken",
                    .help = text("`", port.name, ": auto` would work")});
    }
  }
}

}  // namespace monarch
