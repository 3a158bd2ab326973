#include "transport/base/time.h"

#include <cstdio>
#include <ctime>

#include "transport/base/text.h"

namespace monarch {

namespace {

std::string with_decimals(double value, const char* unit) {
  char buffer[48];
  std::snprintf(buffer, sizeof buffer, "%.1f", value);
  std::string out = buffer;
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out + unit;
}

}  // namespace

std::string to_text(Duration d) {
  const std::int64_t milliseconds = d.count_milliseconds();
  if (d == Duration::forever()) return "none";
  if (d.count_nanoseconds() < 0) return "-" + to_text(Duration::zero() - d);
  if (milliseconds == 0) return d == Duration::zero() ? "0s" : text(d.count_nanoseconds() / 1000, "us");
  if (milliseconds < 1000) return text(milliseconds, "ms");
  if (milliseconds < 60'000) return with_decimals(d.count_seconds(), "s");
  const std::int64_t seconds = milliseconds / 1000;
  if (seconds < 3600) {
    return seconds % 60 == 0 ? text(seconds / 60, "m") : text(seconds / 60, "m ", seconds % 60, "s");
  }
  const std::int64_t minutes = seconds / 60;
  return minutes % 60 == 0 ? text(minutes / 60, "h") : text(minutes / 60, "h ", minutes % 60, "m");
}

std::string to_text(WallTime t) {
  const std::time_t seconds = t.nanoseconds_since_epoch / 1'000'000'000;
  const int milliseconds = static_cast<int>(t.nanoseconds_since_epoch / 1'000'000 % 1000);
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char buffer[96];
  std::snprintf(buffer, sizeof buffer, "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", parts.tm_year + 1900, parts.tm_mon + 1,
                parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec, milliseconds);
  return buffer;
}

}  // namespace monarch
