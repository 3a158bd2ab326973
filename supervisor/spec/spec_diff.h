#pragma once

// What one spec says otherwise than another, key by key.
//
// Thread: pure functions.

#include <string>
#include <string_view>
#include <vector>

namespace monarch {

struct SpecChange {
  std::string path;    // "meshes.trainer.dims.gpu"
  std::string before;  // as a spec would write it; empty: it was not written
  std::string after;   // likewise
  bool operator==(const SpecChange&) const = default;
};

// In the order of `before`, then what `after` adds. Maps are compared key by key, lists as a whole; a text that is no
// YAML says nothing.
std::vector<SpecChange> spec_changes(std::string_view before, std::string_view after);

// "supervision.lease: 6s, now 8s; meshes.trainer.env.A: new, x; and 3 more"
std::string changes_text(const std::vector<SpecChange>& changes);

}  // namespace monarch
