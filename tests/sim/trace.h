#pragma once

// Trace: what happened, as lines of a name and numbers. All of it goes into a hash, the digest of the run (I24); the
// last lines are kept for the report of a failure, and every line is printed if that is asked for.
//
// Thread: one simulation's.

#include <array>
#include <cstdint>
#include <cstdio>
#include <string>

#include "transport/base/time.h"

namespace monarch::sim {

class Trace {
 public:
  explicit Trace(bool print) : print_(print) {}

  // `name` is a literal.
  void note(Instant when, const char* name, std::uint64_t a = 0, std::uint64_t b = 0, std::uint64_t c = 0,
            std::uint64_t d = 0) {
    for (const char* p = name; *p != '\0'; ++p) mix(static_cast<std::uint64_t>(*p));
    mix(static_cast<std::uint64_t>(when.since_boot().count_nanoseconds()));
    for (const std::uint64_t number : {a, b, c, d}) mix(number);
    const Line line{when, name, {a, b, c, d}};
    lines_[count_++ % kKept] = line;
    if (print_) std::printf("%s\n", text_of(line).c_str());
  }
  void mix(std::uint64_t value) { hash_ = (hash_ ^ value) * 0x0000'0100'0000'01B3U + (hash_ >> 47U); }

  std::uint64_t hash() const { return hash_; }
  std::uint64_t count() const { return count_; }
  std::string last_lines() const {
    std::string all;
    for (std::uint64_t i = count_ > kKept ? count_ - kKept : 0; i < count_; ++i)
      all += text_of(lines_[i % kKept]) + "\n";
    return all;
  }

 private:
  static constexpr std::uint64_t kKept = 200;
  struct Line {
    Instant when;
    const char* name = "";
    std::array<std::uint64_t, 4> numbers{};
  };
  static std::string text_of(const Line& line) {
    std::array<char, 200> buffer{};
    const auto& n = line.numbers;
    (void)std::snprintf(buffer.data(), buffer.size(), "%12.6f  %-28s %llu %llu %llu %llu",
                        line.when.since_boot().count_seconds(), line.name, static_cast<unsigned long long>(n[0]),
                        static_cast<unsigned long long>(n[1]), static_cast<unsigned long long>(n[2]),
                        static_cast<unsigned long long>(n[3]));
    return buffer.data();
  }

  bool print_;
  std::uint64_t hash_ = 0xCBF2'9CE4'8422'2325U;
  std::uint64_t count_ = 0;
  std::array<Line, kKept> lines_{};
};

}  // namespace monarch::sim
