#include "transport/base/log.h"

#include <fcntl.h>
#include <unistd.h>

#include <ctime>
#include <memory>
#include <mutex>

// Header-only here and nowhere else: the worker is one static file, and Debian ships no static spdlog or fmt.
#define FMT_HEADER_ONLY 1
#define SPDLOG_FMT_EXTERNAL 1
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

namespace monarch {

namespace {

// Writes each line with one write(2): lines of two processes that share a log do not mix.
class FdSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  explicit FdSink(int fd) : fd_(fd) {}

 protected:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    // A full or closed log must not end a job: the line is dropped.
    (void)!::write(fd_, line.data(), line.size());
  }
  void flush_() override {}

 private:
  int fd_;
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
