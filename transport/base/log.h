#pragma once

// The log of a process: who decides logs, once. spdlog does the work, in log.cc alone.
//
// Thread: any; spdlog's sink holds the lock.

#include <string>
#include <string_view>

#include "transport/base/text.h"

namespace monarch {

enum class LogLevel { kDebug, kInfo, kWarn, kError };

struct LogOptions {
  std::string name;  // "supervisor", "keeper v1"
  int fd = 2;        // the descriptor that lines go to; it stays the caller's and must outlive the log
  LogLevel level = LogLevel::kInfo;
};

void log_start(const LogOptions& options);
void log_set_name(std::string_view name);
bool log_enabled(LogLevel level);
void log_write(LogLevel level, std::string_view message);

template <class... Parts>
void log_debug(const Parts&... parts) {
  if (log_enabled(LogLevel::kDebug)) log_write(LogLevel::kDebug, text(parts...));
}
template <class... Parts>
void log_info(const Parts&... parts) {
  if (log_enabled(LogLevel::kInfo)) log_write(LogLevel::kInfo, text(parts...));
}
template <class... Parts>
void log_warn(const Parts&... parts) {
  log_write(LogLevel::kWarn, text(parts...));
}
template <class... Parts>
void log_error(const Parts&... parts) {
  log_write(LogLevel::kError, text(parts...));
}

}  // namespace monarch
