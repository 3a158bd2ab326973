#pragma once

// The environment of this process as a value, so that what depends on it can be tested.
//
// Thread: a value that does not change after it was made.

#include <map>
#include <string>
#include <string_view>

namespace monarch {

class Environment {
 public:
  Environment() = default;
  explicit Environment(std::map<std::string, std::string, std::less<>> variables) : variables_(std::move(variables)) {}
  // Of this process, from `environ`.
  static Environment of_this_process(const char* const* environ);

  // Empty if it is not set.
  std::string get(std::string_view name) const;
  bool has(std::string_view name) const { return variables_.contains(name); }
  const std::map<std::string, std::string, std::less<>>& all() const { return variables_; }

 private:
  std::map<std::string, std::string, std::less<>> variables_;
};

}  // namespace monarch
