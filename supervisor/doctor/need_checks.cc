#include "supervisor/doctor/need_checks.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/socket.h>

#include <cerrno>
#include <filesystem>

#include "supervisor/core/spec/placement.h"
#include "supervisor/core/spec/resources.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/process/cpu_affinity.h"
#include "transport/process/nvidia_gpus.h"

namespace monarch::doctor {

namespace {

// 0, or why this port cannot be had. As a keeper binds it: what was in use a moment ago does not count.
int bind_error(std::uint16_t port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int on = 1;
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_ANY);
  if (!socket.valid() || ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) != 0) return errno;
  return ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? 0 : errno;
}

Finding check_fixed_port(const MeshSpec& mesh, const PortSpec& port, const std::string& locks) {
  Finding finding{.check = text("mesh ", mesh.name), .found = text("port ", *port.fixed, " (", port.name, ") is free")};
  const auto job = holder_of(text("port-", *port.fixed), locks);
  const int error = job ? 0 : bind_error(*port.fixed);
  if (!job && error == 0) return finding;
  finding.health = Health::kFailed;
  finding.found = job ? text("port ", *port.fixed, " (", port.name, ") is held by job ", printable(*job))
                      : errno_error(text("port ", *port.fixed, " (", port.name, ")"), error).message;
  finding.means = "the job would not start";
  finding.fix =
      job ? text("monarch stop ", printable(*job), ", or `", port.name, ": auto`")
          : text("`ss -ltnp 'sport = :", *port.fixed, "'` says who has it; `", port.name, ": auto` takes another");
  return finding;
}

// "v2: mesh m needs 4 GPUs …" of the first host that lacks something; empty: none does.
std::string lacking(const JobSpec& spec, std::uint32_t mesh, const HostInventory& inventory) {
  const Placement placement(spec);
  const Resources resources(spec, placement);
  for (std::uint32_t r = 0; r < spec.meshes[mesh].size(); r += spec.meshes[mesh].per_host()) {
    const RankId first_on_host{MeshId(mesh), Rank(r)};
    const std::string lack = resources.lacking(first_on_host, inventory);
    if (!lack.empty()) return text(pool_of(spec)[placement.host_of(first_on_host).value()].name, " ", lack);
  }
  return "";
}

std::string needs(const MeshSpec& mesh) {
  std::vector<std::string> parts;
  const std::uint64_t ranks = mesh.size();
  if (mesh.resources.gpus.value_or(0) > 0) parts.push_back(counted(ranks * *mesh.resources.gpus, "GPU"));
  if (mesh.resources.cpus.value_or(0) > 0) parts.push_back(counted(ranks * *mesh.resources.cpus, "core"));
  return join(parts, " and ");
}

}  // namespace

HostInventory inventory_of_this_machine(const std::optional<std::string>& visible_devices) {
  return {.cpus = static_cast<std::uint32_t>(usable_cpus().size()),
          .gpus = visible_gpus(read_nvidia_gpus(), visible_devices)};
}

Findings check_resources(const JobSpec& spec, const HostInventory& inventory, const std::string& locks) {
  Findings findings;
  bool gpus = false;
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    const MeshSpec& mesh = spec.meshes[m];
    const std::string wanted = needs(mesh);
    if (wanted.empty()) continue;
    gpus = gpus || mesh.resources.gpus.value_or(0) > 0;
    Finding finding{.check = text("mesh ", mesh.name), .found = text("needs ", wanted, ", which are there")};
    if (const std::string lack = lacking(spec, m, inventory); !lack.empty()) {
      finding.health = Health::kFailed;
      finding.found = lack;
      finding.means = "the job would end with exit code 69";
      finding.fix = "fewer ranks or hosts, or less in `resources`; the virtual hosts of a machine share what it has";
    }
    findings.push_back(std::move(finding));
  }
  for (const Gpu& gpu : inventory.gpus) {
    const auto job = gpus ? holder_of(text("gpu-", gpu.uuid), locks) : std::nullopt;
    if (!job) continue;
    findings.push_back({.check = "GPUs",
                        .health = Health::kWarning,
                        .found = text("GPU ", gpu.index, " is held by job ", printable(*job)),
                        .means = "a job that is given it does not start",
                        .fix = text("monarch stop ", printable(*job), ", or CUDA_VISIBLE_DEVICES with the others")});
  }
  return findings;
}

Findings check_ports(const JobSpec& spec, const std::string& locks) {
  Findings findings;
  for (const MeshSpec& mesh : spec.meshes) {
    for (const PortSpec& port : mesh.ports) {
      if (port.fixed) findings.push_back(check_fixed_port(mesh, port, locks));
    }
  }
  return findings;
}

// Files are called <thing>.<job>.<pid>.lock, and locked as long as their holder lives; neither a thing nor a job has a
// dot.
std::optional<std::string> holder_of(const std::string& thing, const std::string& locks) {
  std::error_code error;  // no folder: nobody ever held anything
  for (const auto& entry : std::filesystem::directory_iterator(locks, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(thing + ".") || !name.ends_with(".lock")) continue;
    const UniqueFd file(::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
    if (!file.valid() || ::flock(file.get(), LOCK_SH | LOCK_NB) == 0 || errno != EWOULDBLOCK) continue;
    const std::size_t begin = thing.size() + 1;
    return name.substr(begin, name.find('.', begin) - begin);
  }
  return std::nullopt;
}

}  // namespace monarch::doctor
