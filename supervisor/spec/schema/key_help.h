#pragma once

// What the documentation of a key says beyond its row of the schema: an example, and where one line does not do, a
// paragraph. `explain`, the schema for editors, the manual page and `init` show both. Every key with a name has an
// example.
//
// Thread: constant data.

#include <span>
#include <string_view>

namespace monarch {

struct KeyHelp {
  std::string_view path;     // of a row
  std::string_view example;  // its value, on one line, as a spec would write it
  std::string_view more{};   // a paragraph; may be empty
};

std::span<const KeyHelp> all_key_help();
// nullptr for `*` and `[]`. As find_row(), it finds `meshes.*.supervision.…` at `supervision.…`.
const KeyHelp* find_key_help(std::string_view path);

}  // namespace monarch
