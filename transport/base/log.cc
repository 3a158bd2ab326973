#include "transport/base/log.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>
#include <memory>
#include <mutex>
#include <string>

// Header-only here and nowhere else: the worker is one static file, and Debian ships no static spdlog or fmt.
#define FMT_HEADER_ONLY 1
#define SPDLOG_FMT_EXTERNAL 1
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

namespace monarch {

namespace {

// A log has a size, whatever is said and by whom. Where it is a file that was opened for reading and appending, as
// those of ours are, whoever writes when it is full drops all but the newest part of it; its first line then counts
// what was dropped. Several processes may share it. What somebody redirected us to is his, and grows.
constexpr std::uint64_t kMostBytes = 16U << 20U;
constexpr std::uint64_t kKeptBytes = 4U << 20U;

// What a log has lost at its beginning, as its first line says.
struct Dropped {
  std::uint64_t lines = 0;
  std::uint64_t bytes = 0;
};

bool is_bounded(int fd) {
  const int flags = ::fcntl(fd, F_GETFL);
  return flags >= 0 && (flags & O_ACCMODE) == O_RDWR && (flags & O_APPEND) != 0;
}

std::uint64_t size_of(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? static_cast<std::uint64_t>(status.st_size) : 0;
}

// Calls use(bytes) with what lies from `from` to `to`, or to the end.
template <class Use>
void read_log(int fd, std::uint64_t from, std::uint64_t to, const Use& use) {
  std::array<char, 64U << 10U> buffer;
  while (from < to) {
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), to - from));
    const ssize_t got = ::pread(fd, buffer.data(), wanted, static_cast<off_t>(from));
    if (got <= 0) return;
    use(std::string_view(buffer.data(), static_cast<std::size_t>(got)));
    from += static_cast<std::uint64_t>(got);
  }
}

constexpr char kDroppedFormat[] = "[monarch: %llu lines, %llu bytes were dropped here: a log has at most %llu bytes]\n";

Dropped dropped_before(int fd) {
  std::string first;
  read_log(fd, 0, 128, [&](std::string_view bytes) { first.append(bytes); });
  unsigned long long lines = 0;
  unsigned long long bytes = 0;
  if (std::sscanf(first.c_str(), "[monarch: %llu lines, %llu bytes were dropped here", &lines, &bytes) != 2) return {};
  return {.lines = lines, .bytes = bytes};
}

// WARNING: what another process writes between the last read and ftruncate(2), some microseconds, is lost uncounted.
// pwrite(2) appends where O_APPEND is set (BUGS there), so nothing can be moved within the file.
void cut_log(int fd) {
  struct flock whole {};
  whole.l_type = F_WRLCK;
  if (::fcntl(fd, F_SETLK, &whole) != 0) return;  // another process does it
  const std::uint64_t size = size_of(fd);
  if (size >= kMostBytes) {
    const std::uint64_t from = size - std::min(size, kKeptBytes);
    std::string kept;
    read_log(fd, from, ~std::uint64_t{0}, [&](std::string_view bytes) { kept.append(bytes); });
    const std::size_t line = kept.find('\n');
    kept.erase(0, line == std::string::npos ? kept.size() : line + 1);
    Dropped dropped = dropped_before(fd);
    const bool again = dropped.lines > 0;
    const std::uint64_t end = size_of(fd) - kept.size();
    read_log(fd, 0, end, [&](std::string_view bytes) {
      dropped.lines += static_cast<std::uint64_t>(std::count(bytes.begin(), bytes.end(), '\n'));
    });
    dropped.bytes += end;
    if (again) --dropped.lines;  // that which says so
    std::array<char, 160> words{};
    (void)std::snprintf(words.data(), words.size(), kDroppedFormat, static_cast<unsigned long long>(dropped.lines),
                        static_cast<unsigned long long>(dropped.bytes), static_cast<unsigned long long>(kMostBytes));
    kept.insert(0, words.data());
    if (::ftruncate(fd, 0) == 0) (void)!::write(fd, kept.data(), kept.size());  // a full disk: as for any line
  }
  whole.l_type = F_UNLCK;
  (void)::fcntl(fd, F_SETLK, &whole);  // it ends with the process, too
}

// Writes each line with one write(2): lines of two processes that share a log do not mix.
class FdSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FdSink(int fd) : fd_(fd), bounded_(is_bounded(fd)) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    if (bounded_ && size_of(fd_) >= kMostBytes) cut_log(fd_);
    // A full or closed log must not end a job: the line is dropped.
    (void)!::write(fd_, line.data(), line.size());
  }
  void flush_() override {}

 private:
  const int fd_;
  const bool bounded_;
};

spdlog::level::level_enum spdlog_level(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug: return spdlog::level::debug;
    case LogLevel::kInfo: return spdlog::level::info;
    case LogLevel::kWarn: return spdlog::level::warn;
    case LogLevel::kError: return spdlog::level::err;
  }
  return spdlog::level::err;
}

std::shared_ptr<spdlog::logger> make_logger(const LogOptions& options) {
  auto logger = std::make_shared<spdlog::logger>(options.name, std::make_shared<FdSink>(options.fd));
  logger->set_formatter(std::make_unique<spdlog::pattern_formatter>("%Y-%m-%dT%H:%M:%S.%eZ %P %l [%n] %v",
                                                                    spdlog::pattern_time_type::utc));
  logger->set_level(spdlog_level(options.level));
  return logger;
}

// The one log of the process; replaced only by log_start, before the first thread. Owner: this file.
std::shared_ptr<spdlog::logger>& process_logger() {
  static std::shared_ptr<spdlog::logger> logger = make_logger({.name = "monarch", .fd = 2, .level = LogLevel::kWarn});
  return logger;
}

LogOptions& process_options() {
  static LogOptions options;
  return options;
}

}  // namespace

void log_start(const LogOptions& options) {
  process_options() = options;
  process_logger() = make_logger(options);
}

void log_set_name(std::string_view name) {
  process_options().name = name;
  process_logger() = make_logger(process_options());
}

bool log_enabled(LogLevel level) { return process_logger()->should_log(spdlog_level(level)); }

void log_write(LogLevel level, std::string_view message) {
  process_logger()->log(spdlog_level(level), spdlog::string_view_t(message.data(), message.size()));
}

}  // namespace monarch
