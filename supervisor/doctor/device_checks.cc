#include "supervisor/doctor/device_checks.h"

#include <unistd.h>

#include <map>

#include "transport/base/text.h"
#include "transport/process/read_small.h"

namespace monarch::doctor {

namespace {

std::string gpu_folder(const Places& places) { return places.proc + "/driver/nvidia/gpus"; }
std::string rdma_folder(const Places& places) { return places.sys + "/class/infiniband"; }

// "Model: \t\t NVIDIA H200" of the file `information`.
std::string model_of(const std::string& information) {
  const std::size_t at = information.find("Model:");
  if (at == std::string::npos) return "of an unknown model";
  std::string model = information.substr(at + 6, information.find('\n', at) - at - 6);
  const std::size_t begin = model.find_first_not_of(" \t");
  return begin == std::string::npos ? "of an unknown model" : printable(model.substr(begin));
}

bool usable(const std::string& device) { return ::access(device.c_str(), R_OK | W_OK) == 0; }

Findings check_rdma_port(const std::string& folder, const std::string& name) {
  // "4: ACTIVE", "1: DOWN"
  const std::string state = read_small(folder + "/state").value_or("unknown");
  const std::string layer = read_small(folder + "/link_layer").value_or("unknown link");
  const std::string rate = read_small(folder + "/rate").value_or("unknown rate");
  Finding finding{.check = "RDMA port",
                  .found = text(name, ": ", printable(state.substr(state.find(' ') + 1)), ", ", printable(layer), ", ",
                                printable(rate))};
  if (state.find("ACTIVE") == std::string::npos) {
    finding.health = Health::kWarning;
    finding.means = "nothing can be sent through this port: a cable, a switch, or a subnet manager is missing";
    finding.fix = "ibstat, or rdma link; ip link set … up for a RoCE port";
  }
  return {finding};
}

}  // namespace

std::size_t count_gpus(const Places& places) { return names_in(gpu_folder(places)).size(); }

bool has_rdma(const Places& places) { return !names_in(rdma_folder(places)).empty(); }

Findings check_gpus(const Places& places) {
  const auto version = read_small(places.proc + "/driver/nvidia/version");
  const std::vector<std::string> gpus = names_in(gpu_folder(places));
  if (!version && gpus.empty()) return {{.check = "GPUs", .found = "none: there is no nvidia driver"}};
  if (gpus.empty()) {
    return {{.check = "GPUs",
             .health = Health::kWarning,
             .found = "none, though the nvidia driver is loaded",
             .means = "the driver lost its devices, or this container was given none",
             .fix = "nvidia-smi and dmesg say more; in a container --gpus all"}};
  }
  std::map<std::string, std::size_t> models;
  for (const std::string& gpu : gpus) {
    ++models[model_of(read_small(text(gpu_folder(places), "/", gpu, "/information")).value_or(""))];
  }
  std::vector<std::string> parts;
  for (const auto& [model, count] : models) parts.push_back(text(count, " × ", model));
  Finding finding{.check = "GPUs", .found = join(parts, ", ")};
  if (!usable(places.dev + "/nvidiactl")) {
    finding.health = Health::kFailed;
    finding.found += text("; ", places.dev, "/nvidiactl cannot be opened");
    finding.means = "no process of this user can use a GPU";
    finding.fix = "nvidia-modprobe -u -c=0 makes the device files; their group and mode say who may use them";
  }
  return {finding};
}

Findings check_rdma(const Places& places) {
  const std::vector<std::string> devices = names_in(rdma_folder(places));
  if (devices.empty()) return {{.check = "RDMA", .found = "no device; tensors would travel by shared memory and TCP"}};
  Findings findings;
  for (const std::string& device : devices) {
    const std::string folder = text(rdma_folder(places), "/", device, "/ports");
    for (const std::string& port : names_in(folder)) {
      for (Finding& finding : check_rdma_port(text(folder, "/", port), text(printable(device), ":", port))) {
        findings.push_back(std::move(finding));
      }
    }
  }
  bool any = false;
  for (const std::string& name : names_in(places.dev + "/infiniband")) {
    any = any || (name.starts_with("uverbs") && usable(text(places.dev, "/infiniband/", name)));
  }
  if (!any) {
    findings.push_back({.check = "RDMA",
                        .health = Health::kWarning,
                        .found = text("no ", places.dev, "/infiniband/uverbs* can be opened"),
                        .means = "the devices are there, but this user cannot use them",
                        .fix = "modprobe ib_uverbs; in a container --device=/dev/infiniband"});
  }
  return findings;
}

}  // namespace monarch::doctor
