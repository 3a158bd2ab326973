#include "worker/daemon/pressure.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <string_view>

namespace monarch::daemon {

namespace {

constexpr std::size_t kFileBytes = 256;  // two lines

std::optional<std::uint8_t> percent_of(const UniqueFd& file) {
  std::array<char, kFileBytes> bytes{};
  const ssize_t size = file.valid() ? ::pread(file.get(), bytes.data(), bytes.size(), 0) : -1;
  return size <= 0 ? std::nullopt : some_pressure({bytes.data(), static_cast<std::size_t>(size)});
}

}  // namespace

PressureFiles::PressureFiles() {
  constexpr std::array<const char*, 3> kPaths = {"/proc/pressure/cpu", "/proc/pressure/memory", "/proc/pressure/io"};
  for (std::size_t i = 0; i < kPaths.size(); ++i) files_[i] = UniqueFd(::open(kPaths[i], O_RDONLY | O_CLOEXEC));
}

std::optional<HostPressure> PressureFiles::read() const {
  const auto cpu = percent_of(files_[0]);
  const auto memory = percent_of(files_[1]);
  const auto io = percent_of(files_[2]);
  if (!cpu || !memory || !io) return std::nullopt;
  return HostPressure{.cpu = *cpu, .memory = *memory, .io = *io};
}

}  // namespace monarch::daemon
