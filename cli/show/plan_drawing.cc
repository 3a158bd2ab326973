#include "cli/show/plan_drawing.h"

#include <algorithm>
#include <map>

#include "cli/term/table.h"
#include "cli/term/terminal.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kMostRows = 20;  // of a mesh or of hosts; more are shortened
constexpr std::size_t kFirstRows = 12;
constexpr std::size_t kLastRows = 3;
constexpr std::uint32_t kMostCells = 32;  // of ranks in a row

// "0-3" or "5"
std::string range_text(std::uint32_t first, std::uint32_t last) {
  return first == last ? text(first) : text(first, "-", last);
}

std::string dims_text(const MeshSpec& mesh) {
  std::vector<std::string> parts;
  for (const Dimension& dim : mesh.dims) parts.push_back(text(dim.name, "=", dim.size));
  return join(parts, " × ");
}

std::string gangs_text(const MeshSpec& mesh) {
  return text(counted(mesh.gangs(), "gang of ", "gangs of "), counted(mesh.size() / mesh.gangs(), "rank", "ranks"));
}

// Of the dimensions that tell one host of the mesh from another.
std::string outer_coordinates(const MeshSpec& mesh, Rank first) {
  const std::vector<std::uint32_t> at = mesh.coordinates_of(first);
  std::vector<std::string> parts;
  for (std::size_t i = 0; i + mesh.per_host_dims < mesh.dims.size(); ++i) {
    parts.push_back(text(mesh.dims[i].name, "=", at[i]));
  }
  return join(parts, " ");
}

std::string inner_dims(const MeshSpec& mesh) {
  std::vector<std::string> names;
  for (std::size_t i = mesh.dims.size() - mesh.per_host_dims; i < mesh.dims.size(); ++i) {
    names.push_back(mesh.dims[i].name);
  }
  return join(names, " × ");
}

// The ranks of one host side by side, a stroke between two gangs.
std::string cells(const MeshSpec& mesh, std::uint32_t first) {
  const std::size_t width = text(mesh.size() - 1).size();
  std::string out;
  for (std::uint32_t i = 0; i < mesh.per_host(); ++i) {
    const Rank rank(first + i);
    const std::string number = text(rank.value());
    if (i > 0) out += mesh.gang_of(rank) == mesh.gang_of(Rank(rank.value() - 1)) ? " " : " │ ";
    out += std::string(width - number.size(), ' ') + number;
  }
  return out;
}

// Which rows are shown: all, or the first and the last.
std::vector<std::size_t> shown_rows(std::size_t rows, bool all) {
  std::vector<std::size_t> shown;
  for (std::size_t row = 0; row < rows; ++row) {
    if (all || rows <= kMostRows || row < kFirstRows || row + kLastRows >= rows) shown.push_back(row);
  }
  return shown;
}

// Behind the row at which the drawing was shortened.
bool left_out_after(const std::vector<std::size_t>& shown, std::size_t index) {
  return index + 1 < shown.size() && shown[index + 1] != shown[index] + 1;
}

struct MeshRows {
  const MeshSpec& mesh;
  std::vector<std::string> hosts;
  bool grid = true;  // every rank by its number; else the first and the last
};

std::string mesh_table(const MeshRows& rows, const PlanDrawing& plan) {
  const MeshSpec& mesh = rows.mesh;
  const bool has_coordinates = mesh.per_host_dims < mesh.dims.size();
  const bool grid = rows.grid && mesh.per_host_dims > 0;
  std::vector<std::string> titles = {"  HOST", grid ? text("RANKS, ", inner_dims(mesh), " →") : "RANKS"};
  if (has_coordinates) titles.emplace_back("COORDINATES");
  titles.emplace_back(mesh.gangs() == 1 ? "GANG" : "GANGS");
  Table table(titles);
  const std::vector<std::size_t> shown = shown_rows(rows.hosts.size(), plan.all);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const auto host = static_cast<std::uint32_t>(shown[i]);
    const Rank first(host * mesh.per_host());
    const Rank last((host + 1) * mesh.per_host() - 1);
    std::vector<Table::Cell> row = {
        plain_cell("  " + rows.hosts[host]),
        plain_cell(grid ? cells(mesh, first.value()) : range_text(first.value(), last.value()))};
    if (has_coordinates) row.push_back(plain_cell(outer_coordinates(mesh, first)));
    row.push_back(plain_cell(range_text(mesh.gang_of(first).value(), mesh.gang_of(last).value())));
    table.add(std::move(row));
    if (!left_out_after(shown, i)) continue;
    const auto next = static_cast<std::uint32_t>(shown[i + 1]);
    row = {plain_cell("  …"), plain_cell(text("… ", counted(next - host - 1, "more host", "more hosts"), ", ranks ",
                                              range_text(last.value() + 1, next * mesh.per_host() - 1)))};
    if (has_coordinates) row.push_back(plain_cell("…"));
    row.push_back(plain_cell("…"));
    table.add(std::move(row));
  }
  return table.render(plan.colour, plan.columns);
}

bool fits(const std::string& drawing, std::size_t columns) {
  std::string_view rest = drawing;
  while (columns != 0 && !rest.empty()) {
    const std::size_t newline = rest.find('\n');
    if (display_width(rest.substr(0, newline)) > columns) return false;
    rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline + 1);
  }
  return true;
}

std::string names_of_meshes(const JobSpec& spec, const std::vector<MeshId>& meshes) {
  std::vector<std::string> names;
  for (const MeshId mesh : meshes) names.push_back(spec.meshes[mesh.value()].name);
  return join(names, ", ");
}

std::string ready_text(const MeshSpec& mesh) {
  switch (mesh.ready.kind) {
    case ReadyKind::kExec: return "";
    case ReadyKind::kNotify: return "ready when it says so";
    case ReadyKind::kTcp: return text("ready when port ", mesh.ports[mesh.ready.port].name, " answers");
  }
  return "";
}

// What else is asked for, as a line of words; empty: nothing.
std::string notes_text(const PlanDrawing& plan, const MeshSpec& mesh) {
  std::vector<std::string> notes;
  if (mesh.idle) notes.emplace_back("idle until they are claimed");
  if (mesh.claims.trusts_job) notes.emplace_back("runs what any rank of the job sends (trust: job)");
  if (mesh.like) notes.push_back(text("on the hosts of ", plan.spec.meshes[mesh.like->value()].name));
  if (!mesh.depends_on.empty()) notes.push_back(text("after ", names_of_meshes(plan.spec, mesh.depends_on)));
  if (const std::string ready = ready_text(mesh); !ready.empty()) notes.push_back(ready);
  std::vector<std::string> ports;
  for (const PortSpec& port : mesh.ports) ports.push_back(port.fixed ? text(port.name, " ", *port.fixed) : port.name);
  if (!ports.empty()) notes.push_back(text(ports.size() == 1 ? "port " : "ports ", join(ports, ", ")));
  const ResourcesSpec& resources = mesh.resources;
  if (resources.gpus) {
    notes.push_back(text(counted(std::uint64_t{*resources.gpus} * mesh.per_host(), "GPU", "GPUs"), " per host"));
  }
  if (resources.cpus) {
    notes.push_back(text(counted(std::uint64_t{*resources.cpus} * mesh.per_host(), "core", "cores"), " per host"));
  }
  if (mesh.standby_gangs > 0) {
    notes.push_back(text(counted(mesh.standby_gangs, "standby gang", "standby gangs"), " on ",
                         counted(std::uint64_t{mesh.standby_gangs} * mesh.gang_hosts(), "spare", "spares")));
  }
  return notes.empty() ? "" : text("  ", join(notes, "; "), "\n");
}

std::string draw_mesh(const PlanDrawing& plan, MeshId id) {
  const MeshSpec& mesh = plan.spec.meshes[id.value()];
  std::string out = text("\nmesh ", paint(Colour::kBold, mesh.name, plan.colour), "   ", dims_text(mesh), "   ",
                         counted(mesh.size(), "rank", "ranks"), ", ", gangs_text(mesh), mesh.sidecar ? ", sidecar" : "",
                         "\n  program ", printable(join(mesh.program, " ")), "\n", notes_text(plan, mesh));
  MeshRows rows{.mesh = mesh, .hosts = {}, .grid = mesh.per_host() <= kMostCells};
  for (const HostId host : plan.placement.hosts_of(id)) rows.hosts.push_back(plan.hosts[host.value()].name);
  if (rows.grid) {
    PlanDrawing unlimited{.spec = plan.spec, .placement = plan.placement, .hosts = plan.hosts};
    unlimited.all = plan.all;
    rows.grid = fits(mesh_table(rows, unlimited), plan.columns);
  }
  return out + mesh_table(rows, plan);
}

// What is on each host, where meshes share hosts; else those that no mesh has told of.
std::string draw_hosts(const PlanDrawing& plan) {
  std::map<std::uint32_t, std::vector<std::string>> on_host;
  bool shared = false;
  for (std::uint32_t m = 0; m < plan.spec.meshes.size(); ++m) {
    const MeshSpec& mesh = plan.spec.meshes[m];
    std::uint32_t first = 0;
    for (const HostId host : plan.placement.hosts_of(MeshId(m))) {
      std::vector<std::string>& here = on_host[host.value()];
      here.push_back(text(mesh.name, "/", range_text(first, first + mesh.per_host() - 1)));
      shared = shared || here.size() > 1;
      first += mesh.per_host();
    }
  }
  const std::size_t used = on_host.size();
  std::vector<std::uint32_t> rows;
  for (std::uint32_t host = 0; host < plan.hosts.size(); ++host) {
    if (shared || !on_host.contains(host)) rows.push_back(host);
  }
  if (rows.empty()) return "";
  Table table({"  HOST", "HOLDS"});
  const std::vector<std::size_t> shown = shown_rows(rows.size(), plan.all);
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const std::uint32_t host = rows[shown[i]];
    const auto found = on_host.find(host);
    const bool spare = host < used + plan.spec.spares();
    table.add({plain_cell("  " + plan.hosts[host].name),
               plain_cell(found != on_host.end()                  ? join(found->second, "  ")
                          : spare                                 ? "(spare)"
                          : plan.spec.is_on_request(HostId(host)) ? "(asked for when it is needed)"
                                                                  : "(cold)")});
    if (left_out_after(shown, i))
      table.add({plain_cell("  …"), plain_cell(text("… ", shown[i + 1] - shown[i] - 1, " more hosts"))});
  }
  return "\nhosts\n" + table.render(plan.colour, plan.columns);
}

}  // namespace

std::string draw_plan(const PlanDrawing& plan) {
  const JobSpec& spec = plan.spec;
  const std::uint32_t need = spec.hosts_needed();
  const std::uint32_t pool = spec.pool_size() - spec.hosts_on_request();
  const std::uint32_t spares = std::min(spec.spares(), pool - need);
  std::string out = text("job ", paint(Colour::kBold, spec.name, plan.colour), "   launch ", spec.launch.facts().name,
                         ": ", need, " of ", pool, pool == 1 ? " host has ranks" : " hosts have ranks",
                         spares > 0 ? text(", ", spares, " spare") : "", "\n");
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) out += draw_mesh(plan, MeshId(m));
  return out + draw_hosts(plan);
}

}  // namespace monarch
