#pragma once

// Reads the flags of another launcher by a table: each is used, or noted as not carried over; one that is not in the
// table is refused.
//
// Thread: pure functions.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/import/translation.h"

namespace monarch {

enum class FlagTakes : std::uint8_t {
  kNothing,
  kValue,
  kMaybeValue,  // behind = only
  kTwoValues,   // handed over with a blank between them
};
using WrongValue = std::optional<std::string>;  // what is wrong with a value, if something is
using FlagUse = std::function<WrongValue(Translation&, const std::string&)>;

// Of --input and --stdin: which rank gets what the launcher reads.
WrongValue use_input(Translation& t, std::string_view flag, const std::string& value);

struct ForeignFlag {
  std::string_view names;  // "--nodes|-N"
  FlagTakes takes = FlagTakes::kValue;
  // What the value means for the translation. Without it, `note` is a note of the translation.
  FlagUse use{};
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

// The line cannot be translated, because the launcher `message`.
Complaint refused_line(std::string_view launcher, std::string_view message, const std::string& help);

inline constexpr std::string_view kOutputIsKept =
    "not needed: output is prefixed, streamed, and kept in a file for each rank";

// Takes the value as a positive() number into `into`, which outlives it.
FlagUse use_number(std::optional<std::uint32_t>& into);
// A whole number of at least 1, and at most a million.
std::optional<std::uint32_t> positive(std::string_view written);

}  // namespace monarch
