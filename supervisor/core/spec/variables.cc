#include "supervisor/core/spec/variables.h"

#include <algorithm>

namespace monarch {

namespace {

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// What a launcher tells each rank about its place; a spec that sets one of them would lie to the program.
constexpr std::string_view kOurs[] = {"RANK",          "LOCAL_RANK",       "WORLD_SIZE",        "LOCAL_WORLD_SIZE",
                                      "GROUP_RANK",    "GROUP_WORLD_SIZE", "ROLE_RANK",         "ROLE_WORLD_SIZE",
                                      "ROLE_NAME",     "NODE_RANK",        "MASTER_ADDR",       "MASTER_PORT",
                                      "NOTIFY_SOCKET", "REPLICA_GROUP_ID", "NUM_REPLICA_GROUPS"};

// What the library of tensors reads in ranks, and nobody of ours sets.
constexpr std::string_view kOfRanks[] = {"MONARCH_NCCL_LIBRARY", "MONARCH_RDMA_DEVICE"};

bool is_of_ranks(std::string_view name) {
  return std::find(std::begin(kOfRanks), std::end(kOfRanks), name) != std::end(kOfRanks);
}

}  // namespace

bool is_variable(std::string_view name) {
  constexpr std::size_t kLongest = 255;
  if (name.empty() || name.size() > kLongest || is_digit(name[0])) return false;
  return std::all_of(name.begin(), name.end(), [](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

bool is_variable_pattern(std::string_view name) {
  if (name.ends_with('*')) name.remove_suffix(1);
  return name.empty() || is_variable(name);
}

bool is_variable_of_ours(std::string_view name) {
  return std::find(std::begin(kOurs), std::end(kOurs), name) != std::end(kOurs) || name.starts_with("TORCHELASTIC_") ||
         (name.starts_with("MONARCH_") && !name.starts_with("MONARCH_OPT_") && !is_of_ranks(name));
}

bool fits_variable(std::string_view pattern, std::string_view name) {
  return pattern.ends_with('*') ? name.starts_with(pattern.substr(0, pattern.size() - 1)) : pattern == name;
}

}  // namespace monarch
