#pragma once

// JunitSuite: cases of one suite of a JUnit file, with their counts. Whatever bytes are in names and messages, the file
// is well-formed XML 1.0.
//
// Thread: a value.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/time.h"

namespace monarch {

struct JunitCounts {
  std::size_t tests = 0;
  std::size_t failures = 0;
  std::size_t errors = 0;
  std::size_t skipped = 0;
};

// How a case ended that did not pass.
struct JunitEnd {
  std::string type;
  std::string message;
  std::string body;  // empty: none
};

class JunitSuite {
 public:
  explicit JunitSuite(std::string name) : name_(std::move(name)) {}

  void passed(std::string_view of, std::string_view name);
  void failed(std::string_view of, std::string_view name, const JunitEnd& end);
  void erred(std::string_view of, std::string_view name, const JunitEnd& end);
  void skipped(std::string_view of, std::string_view name, std::string_view message);

  const JunitCounts& counts() const { return counts_; }
  std::string xml(Duration took, WallTime began) const;

 private:
  void add(std::string_view of, std::string_view name, std::string_view inside);

  std::string name_;
  std::string cases_;
  JunitCounts counts_;
};

// The whole file.
std::string junit_file(std::string_view name, const std::vector<JunitSuite>& suites, Duration took, WallTime began);

}  // namespace monarch
