#pragma once

// Lines of a step of Slurm that has a process on each of several nodes: all of them read one input, and what they write
// becomes one output. Each line that is of one node begins with its name, "@h1 there"; bytes are carried as hexadecimal
// digits, "@h1 +6f6b" and more to come,
// "@h1 =6f6b" and no more.
//
// WARNING: srun hands on whole lines only up to 1024 bytes, and only without --unbuffered (MAX_MSG_LEN of Slurm 22.05):
// ours are shorter.
//
// Thread: pure functions; StepBytes is a value.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace monarch {

inline constexpr std::size_t kStepLineBytes = 1'000;  // of a line with its end

struct StepLine {
  std::string_view node;
  std::string_view rest;
};
// False: the line is of no node.
bool read_step_line(std::string_view line, StepLine& read);

// Bytes for, or of, one node, whose name has at most 255 bytes.
std::string step_lines(std::string_view node, std::string_view bytes);

// Puts such bytes together again.
class StepBytes {
 public:
  enum class Sight : std::uint8_t { kOther, kMore, kWhole, kBroken };

  explicit StepBytes(std::size_t limit) : limit_(limit) {}

  // Of a line behind the node's name. kOther: it is no such line. kBroken: not what step_lines() makes, or too much of
  // it.
  Sight add(std::string_view rest);
  const std::string& bytes() const { return bytes_; }

 private:
  std::size_t limit_;
  std::string bytes_;
  bool over_ = false;  // whole or broken: no line changes that
};

}  // namespace monarch
