#pragma once

// Violation: what must not be and was: thrown by whoever watches a run, which ends with it.
//
// Thread: a value.

#include <string>

namespace monarch::sim {

struct Violation {
  std::string label;  // of the invariant
  std::string message;
};

inline void must(bool holds, const char* label, const std::string& message) {
  if (!holds) throw Violation{label, message};
}

}  // namespace monarch::sim
