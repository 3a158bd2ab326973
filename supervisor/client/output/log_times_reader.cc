#include "supervisor/client/output/log_times_reader.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <string_view>

#include "transport/base/take_number.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr std::size_t kMostBytes = 4U << 20U;  // its writer keeps it to a quarter of that

template <class Number>
bool take_field(std::string_view& rest, Number& number) {
  if (rest.starts_with(' ')) rest.remove_prefix(1);
  return take_number(rest, number);
}

}  // namespace

LogTimesReader LogTimesReader::parse(const std::string& content) {
  LogTimesReader times;
  std::string_view rest = content;
  for (std::size_t newline = rest.find('\n'); newline != std::string_view::npos; newline = rest.find('\n')) {
    std::string_view line = rest.substr(0, newline);
    rest.remove_prefix(newline + 1);
    Span span;
    if (!take_field(line, span.offset) || !take_field(line, span.first) || !take_field(line, span.last)) continue;
    if (!line.empty() || (!times.spans_.empty() && span.offset < times.spans_.back().offset)) continue;
    times.spans_.push_back(span);
  }
  return times;
}

LogTimesReader LogTimesReader::read(const std::string& path) {
  const UniqueFd file(::open((path + ".times").c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat what {};
  if (!file.valid() || ::fstat(file.get(), &what) != 0 || !S_ISREG(what.st_mode)) return {};
  std::string content(std::min(static_cast<std::size_t>(what.st_size), kMostBytes), '\0');
  std::size_t size = 0;
  while (size < content.size()) {
    const long got = ::read(file.get(), content.data() + size, content.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    size += static_cast<std::size_t>(got);
  }
  content.resize(size);
  return parse(content);
}

std::optional<std::uint64_t> LogTimesReader::first_after(WallTime time) const {
  const std::int64_t milliseconds = time.nanoseconds_since_epoch / 1'000'000;
  const auto found =
      std::find_if(spans_.begin(), spans_.end(), [&](const Span& span) { return span.last > milliseconds; });
  if (found == spans_.end()) return std::nullopt;
  return found->offset;
}

std::optional<WallTime> LogTimesReader::time_at(std::uint64_t offset) const {
  const auto after = std::upper_bound(spans_.begin(), spans_.end(), offset,
                                      [](std::uint64_t at, const Span& span) { return at < span.offset; });
  if (after == spans_.begin()) return std::nullopt;
  return WallTime{std::prev(after)->first * 1'000'000};
}

std::uint64_t LogTimesReader::next_after(std::uint64_t offset) const {
  const auto after = std::upper_bound(spans_.begin(), spans_.end(), offset,
                                      [](std::uint64_t at, const Span& span) { return at < span.offset; });
  return after == spans_.end() ? UINT64_MAX : after->offset;
}

}  // namespace monarch
