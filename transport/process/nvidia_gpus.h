#pragma once

// The NVIDIA GPUs of this host, as the kernel driver shows them in /proc: no library of CUDA's is needed or loaded.
//
// They are numbered by their place on the PCI bus, as CUDA does with CUDA_DEVICE_ORDER=PCI_BUS_ID and nvidia-smi
// always; CUDA's own default order, fastest first, cannot be known here, so whoever hands out numbers sets that
// variable too.
//
// Thread: any; touches the file system.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/messages/bootstrap.h"

namespace monarch {

struct NvidiaGpu {
  std::uint32_t index = 0;
  std::string uuid;                   // "GPU-…"
  std::string bus;                    // "0000:3b:00.0"
  std::optional<std::uint32_t> node;  // the NUMA node it is attached to
  bool operator==(const NvidiaGpu&) const = default;
};

// `root` is put before /proc, /sys and /dev. One whose UUID the driver does not know yet is left out.
std::vector<NvidiaGpu> read_nvidia_gpus(const std::string& root = "");

// WARNING: the driver learns a GPU's UUID when somebody opens it for the first time since it was loaded, and shows
// question marks until then. Opens those that it does not know, which takes seconds each: not for a loop's thread.
void wake_nvidia_gpus(const std::string& root = "");

// What of them CUDA_VISIBLE_DEVICES leaves, in its order, as CUDA reads it: numbers and (beginnings of) UUIDs, up to
// the first that names nothing, and none at all where one is named twice. Without the variable all of them. A MIG
// instance is not among the GPUs, so a list ends at it.
std::vector<Gpu> visible_gpus(const std::vector<NvidiaGpu>& gpus, const std::optional<std::string>& visible_devices);

}  // namespace monarch
