#include "transport/process/read_small.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string_view>

#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

std::optional<std::string> read_small(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return std::nullopt;
  std::string content(64U << 10U, '\0');
  std::size_t size = 0;
  while (size < content.size()) {
    const ssize_t got = ::read(fd.get(), content.data() + size, content.size() - size);
    if (got < 0) return std::nullopt;
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  content.resize(size);
  while (!content.empty() && (content.back() == '\n' || content.back() == ' ')) content.pop_back();
  return content;
}

std::optional<std::uint64_t> read_number(const std::string& path) {
  const auto written = read_small(path);
  if (!written) return std::nullopt;
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(written->data(), written->data() + written->size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != written->data() + written->size()) return std::nullopt;
  return number;
}

namespace {

std::vector<std::string> names_in(const std::string& path, bool hidden) {
  std::vector<std::string> names;
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(path.c_str()), ::closedir);
  if (entries == nullptr) return names;
  while (const dirent* entry = ::readdir(entries.get())) {
    if ((entry->d_name[0] == '.') == hidden) names.emplace_back(entry->d_name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

std::vector<std::string> names_in(const std::string& path) { return names_in(path, false); }
std::vector<std::string> hidden_names_in(const std::string& path) { return names_in(path, true); }

std::string size_text(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  while (bytes >= 10'240 && unit + 1 < kUnits.size()) {
    bytes >>= 10U;
    ++unit;
  }
  return text(bytes, " ", kUnits[unit]);
}

}  // namespace monarch
