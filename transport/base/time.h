#pragma once

// Instant and Duration: time as decisions use it. An Instant counts from the machine's boot (CLOCK_BOOTTIME, so that a
// suspended machine's leases run out); it means nothing on another host. Nothing here reads a clock: see clock.h.

#include <compare>
#include <cstdint>
#include <limits>
#include <string>

namespace monarch {

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration nanoseconds(std::int64_t n) { return Duration(n); }
  static constexpr Duration microseconds(std::int64_t n) { return Duration(n * 1'000); }
  static constexpr Duration milliseconds(std::int64_t n) { return Duration(n * 1'000'000); }
  static constexpr Duration seconds(std::int64_t n) { return Duration(n * 1'000'000'000); }
  static constexpr Duration zero() { return Duration(0); }
  static constexpr Duration forever() { return Duration(std::numeric_limits<std::int64_t>::max()); }

  constexpr std::int64_t count_nanoseconds() const { return nanoseconds_; }
  constexpr std::int64_t count_milliseconds() const { return nanoseconds_ / 1'000'000; }
  constexpr double count_seconds() const { return static_cast<double>(nanoseconds_) / 1e9; }

  constexpr auto operator<=>(const Duration&) const = default;
  constexpr Duration operator+(Duration other) const { return Duration(nanoseconds_ + other.nanoseconds_); }
  constexpr Duration operator-(Duration other) const { return Duration(nanoseconds_ - other.nanoseconds_); }
  constexpr Duration operator*(std::int64_t factor) const { return Duration(nanoseconds_ * factor); }
  constexpr Duration operator/(std::int64_t divisor) const { return Duration(nanoseconds_ / divisor); }

 private:
  explicit constexpr Duration(std::int64_t n) : nanoseconds_(n) {}
  std::int64_t nanoseconds_ = 0;
};

class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant since_boot(Duration d) { return Instant(d); }
  static constexpr Instant never() { return Instant(Duration::forever()); }

  constexpr Duration since_boot() const { return since_boot_; }
  constexpr auto operator<=>(const Instant&) const = default;
  // never() + anything stays never().
  constexpr Instant operator+(Duration d) const {
    return *this == never() || d == Duration::forever() ? never() : Instant(since_boot_ + d);
  }
  constexpr Instant operator-(Duration d) const { return Instant(since_boot_ - d); }
  constexpr Duration operator-(Instant other) const { return since_boot_ - other.since_boot_; }

 private:
  explicit constexpr Instant(Duration d) : since_boot_(d) {}
  Duration since_boot_;
};

// Wall-clock time, for display and logs only; no decision uses it.
struct WallTime {
  std::int64_t nanoseconds_since_epoch = 0;
  auto operator<=>(const WallTime&) const = default;
};

// "1.5s", "250ms", "2m", "1h 4m": for people.
std::string to_text(Duration d);

// "2026-11-20T12:04:41.120Z"
std::string to_text(WallTime t);

}  // namespace monarch
