#include "transport/process/nvidia_gpus.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/process/read_small.h"

namespace monarch {

namespace {

constexpr std::string_view kUuidPrefix = "GPU-";

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(" \t\r\n");
  if (from == std::string_view::npos) return {};
  return text.substr(from, text.find_last_not_of(" \t\r\n") - from + 1);
}

// "Name: \t value" lines.
std::string_view value_of(std::string_view content, std::string_view name) {
  while (!content.empty()) {
    const std::size_t end = content.find('\n');
    const std::string_view line = content.substr(0, end);
    content.remove_prefix(end == std::string_view::npos ? content.size() : end + 1);
    const std::size_t colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == name)
      return trimmed(line.substr(colon + 1));
  }
  return {};
}

std::optional<std::uint32_t> number(std::string_view digits) {
  std::uint32_t value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (digits.empty() || parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size()) return std::nullopt;
  return value;
}

// A container shows fewer device nodes than GPUs. Before anything on the host has used CUDA there may be none at all:
// they are made on demand.
bool may_be_used(const std::string& root, std::string_view minor) {
  if (::access((root + "/dev/nvidiactl").c_str(), F_OK) != 0) return true;
  return ::access(text(root, "/dev/nvidia", minor).c_str(), R_OK | W_OK) == 0;
}

bool knows_uuid(std::string_view information) {
  const std::string_view uuid = value_of(information, "GPU UUID");
  return uuid.starts_with(kUuidPrefix) && uuid.find('?') == std::string_view::npos;
}

struct GpuEntry {
  std::string bus;  // as its folder is called
  std::string information;
};

std::vector<GpuEntry> gpu_entries(const std::string& root) {
  std::vector<GpuEntry> entries;
  std::error_code none;
  const std::filesystem::path folder = root + "/proc/driver/nvidia/gpus";
  for (auto entry = std::filesystem::directory_iterator(folder, none);
       !none && entry != std::filesystem::directory_iterator(); entry.increment(none)) {
    entries.push_back({entry->path().filename(), read_small(entry->path() / "information").value_or("")});
  }
  return entries;
}

const NvidiaGpu* named(const std::vector<NvidiaGpu>& gpus, std::string_view entry) {
  if (const auto index = number(entry)) return *index < gpus.size() ? &gpus[*index] : nullptr;
  if (!entry.starts_with(kUuidPrefix)) return nullptr;
  const NvidiaGpu* found = nullptr;
  for (const NvidiaGpu& gpu : gpus) {
    if (!gpu.uuid.starts_with(entry)) continue;
    if (found != nullptr) return nullptr;  // it could be either
    found = &gpu;
  }
  return found;
}

}  // namespace

std::vector<NvidiaGpu> read_nvidia_gpus(const std::string& root) {
  std::vector<NvidiaGpu> gpus;
  for (const GpuEntry& entry : gpu_entries(root)) {
    const std::string& information = entry.information;
    if (!knows_uuid(information) || !may_be_used(root, value_of(information, "Device Minor"))) continue;
    const std::string_view location = value_of(information, "Bus Location");
    NvidiaGpu gpu{.index = 0,
                  .uuid = std::string(value_of(information, "GPU UUID")),
                  .bus = location.empty() ? entry.bus : std::string(location),
                  .node = {}};
    // -1 where the machine does not say.
    gpu.node = number(read_small(text(root, "/sys/bus/pci/devices/", entry.bus, "/numa_node")).value_or(""));
    gpus.push_back(std::move(gpu));
  }
  std::sort(gpus.begin(), gpus.end(), [](const NvidiaGpu& a, const NvidiaGpu& b) { return a.bus < b.bus; });
  for (std::size_t i = 0; i < gpus.size(); ++i) gpus[i].index = static_cast<std::uint32_t>(i);
  return gpus;
}

void wake_nvidia_gpus(const std::string& root) {
  for (const GpuEntry& entry : gpu_entries(root)) {
    if (knows_uuid(entry.information)) continue;
    // It need not be kept open: what the driver has learnt it keeps until it is unloaded.
    const UniqueFd opened(::open(text(root, "/dev/nvidia", value_of(entry.information, "Device Minor")).c_str(),
                                 O_RDWR | O_CLOEXEC | O_NONBLOCK));
  }
}

std::vector<Gpu> visible_gpus(const std::vector<NvidiaGpu>& gpus, const std::optional<std::string>& visible_devices) {
  std::vector<Gpu> visible;
  if (!visible_devices) {
    for (const NvidiaGpu& gpu : gpus) visible.push_back({gpu.index, gpu.uuid});
    return visible;
  }
  std::string_view rest = *visible_devices;
  while (!rest.empty()) {
    const std::size_t comma = rest.find(',');
    const NvidiaGpu* gpu = named(gpus, trimmed(rest.substr(0, comma)));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
    if (gpu == nullptr) break;
    const Gpu one{gpu->index, gpu->uuid};
    if (std::find(visible.begin(), visible.end(), one) != visible.end()) return {};
    visible.push_back(one);
  }
  return visible;
}

}  // namespace monarch
