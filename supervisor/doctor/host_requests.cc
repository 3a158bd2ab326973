#include "supervisor/doctor/host_requests.h"

#include <algorithm>

#include "supervisor/core/spec/placement.h"
#include "supervisor/doctor/spec_checks.h"
#include "transport/base/text.h"

namespace monarch::doctor {

namespace {

constexpr std::string_view kStorage = "storage";

void need_mesh(const MeshSpec& mesh, const JobSpec& spec, CheckRequest& request) {
  const std::string workdir = mesh.workdir.value_or(base_directory(spec));
  if (expands(workdir)) return;
  // The tree of a workspace comes with the job.
  const bool brought = !workdir.starts_with('/');
  if (!brought) request.folders.push_back({.name = text("workdir of mesh ", mesh.name), .path = workdir});
  const std::vector<std::string>& argv = mesh.wrap.empty() ? mesh.program : mesh.wrap;
  // A setup may change PATH, and install what is missing.
  if (argv.empty() || expands(argv.front()) || !mesh.setup.empty()) return;
  const std::string& program = argv.front();
  if (brought && !program.starts_with('/') && program.find('/') != std::string::npos) return;
  const auto path = mesh.env.find("PATH");
  request.programs.push_back(
      {.mesh = mesh.name, .program = program, .workdir = workdir, .path = path == mesh.env.end() ? "" : path->second});
}

bool is_usable(const HostSeen& host, const std::string& folder) {
  return std::any_of(host.folders.begin(), host.folders.end(), [&folder](const FolderFacts& facts) {
    return facts.name == kStorage && facts.path == folder && facts.error.empty();
  });
}

}  // namespace

bool may_have_ranks(const JobSpec& spec, std::uint32_t mesh, std::size_t host) {
  if (host >= spec.hosts_needed()) return true;
  const std::vector<HostId> hosts = Placement(spec).hosts_of(MeshId(mesh));
  return std::any_of(hosts.begin(), hosts.end(), [host](HostId each) { return each.value() == host; });
}

CheckRequest look_request(const JobSpec& spec, std::size_t host) {
  CheckRequest request;
  request.look = true;
  request.first_door = spec.network.ports ? spec.network.ports->first : std::uint16_t{0};
  request.last_door = spec.network.ports ? spec.network.ports->last : std::uint16_t{0};
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    const MeshSpec& mesh = spec.meshes[m];
    if (!may_have_ranks(spec, m, host)) continue;
    request.wake_gpus = request.wake_gpus || mesh.resources.gpus.value_or(0) > 0;
    need_mesh(mesh, spec, request);
  }
  for (const StorageSpec& storage : spec.storage) {
    request.folders.push_back({.name = std::string(kStorage), .path = storage.path, .written = true});
  }
  return request;
}

std::vector<std::optional<CheckRequest>> meet_requests(const JobSpec& spec, const std::vector<Present>& present,
                                                       const std::vector<HostSeen>& hosts,
                                                       const std::string& token_name) {
  std::vector<CheckRequest> requests(present.size());
  const std::size_t count = present.size();
  for (std::size_t i = 0; i < count && count > 1; ++i) {
    const std::size_t next = (i + 1) % count;
    const std::size_t before = (i + count - 1) % count;
    if (present[next].door.port != 0) requests[i].calls.push_back(present[next].door);
    if (before != next && present[before].door.port != 0) requests[i].calls.push_back(present[before].door);
  }
  for (const StorageSpec& storage : spec.storage) {
    if (!storage.shared) continue;
    const auto writer = std::find_if(present.begin(), present.end(),
                                     [&](const Present& each) { return is_usable(hosts[each.host], storage.path); });
    if (writer == present.end()) continue;
    requests[static_cast<std::size_t>(writer - present.begin())].write.push_back(
        {.folder = storage.path,
         .name = token_name,
         .content = text(token_name, " of ", hosts[writer->host].name, " in ", storage.path)});
  }
  std::vector<std::optional<CheckRequest>> asked(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!requests[i].calls.empty() || !requests[i].write.empty()) asked[i] = std::move(requests[i]);
  }
  return asked;
}

std::vector<std::optional<CheckRequest>> read_requests(const std::vector<Present>& present,
                                                       const std::vector<HostSeen>& hosts,
                                                       const std::vector<WrittenToken>& tokens) {
  std::vector<std::optional<CheckRequest>> asked(present.size());
  for (std::size_t i = 0; i < present.size(); ++i) {
    CheckRequest request;
    for (const WrittenToken& token : tokens) {
      // Where the folder itself is not right, that has been said.
      if (token.writer == present[i].host || !is_usable(hosts[present[i].host], token.order.folder)) continue;
      request.read.push_back({.folder = token.order.folder, .name = token.order.name, .content = {}});
    }
    if (!request.read.empty()) asked[i] = std::move(request);
  }
  return asked;
}

}  // namespace monarch::doctor
