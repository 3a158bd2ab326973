#pragma once

// Reads the flags of another launcher by a table: each is used, or noted as not carried over; one that is not in the table is refused.
//
// Thread: pure functions.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/translation.h"

namespace monarch {

struct ForeignFlag {
  std::string_view names;  // "--nodes|-N"
  enum class Takes : std::uint8_t {
    kNothing,
    kValue,
    kMaybeValue,  // behind = only
    kTwoValues,   // handed over with a blank between them
  } takes = Takes::kValue;
  // What the value means for the translation; gives what is wrong with it. Without it, `note` is a note of the translation.
  std::function<std::optional<std::string>(Translation&, const std::string&)> use{};
  std::string_view note{};
};

struct FlagGrammar {
  std::string_view launcher;
  bool underscores = false;         // --nproc_per_node is --nproc-per-node
  bool long_with_one_dash = false;  // -np is a flag of its own, not -n with p
};

// Takes the flags off the front of `words`, up to the program or `--`; what is left is the program.
std::optional<Complaint> read_foreign_flags(const FlagGrammar& grammar, const std::vector<ForeignFlag>& table,
                                            Translation& translation, std::vector<ShellWord>& words);

// A whole number of at least 1, and at most a million.
std::optional<std::uint32_t> positive(std::string_view written);

}  // namespace monarch
