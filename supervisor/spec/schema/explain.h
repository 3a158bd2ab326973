#pragma once

// What the documentation says of a key, made from its row of the schema: what it takes, its default, whether this build
// does it, an example in its place. `monarch explain`, the schema for editors, the manual page and `init` all have
// their words from here.
//
// Thread: pure functions.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/spec/schema/schema.h"

namespace monarch {

// A key as somebody wrote it, `meshes.trainer.gang`, with the row that documents it, `meshes.*.gang`.
struct NamedKey {
  std::string path;
  std::string row_path;
  const KeyRow* row = nullptr;
};

// Names of meshes, dimensions and variables may stand for `*`, and `[]` may be left out: it is in the path. Nothing:
// there is no such key; suggest_keys() helps.
std::optional<NamedKey> find_key(const Schema& schema, std::string_view written);
// A sentence with what may have been meant; never empty.
std::string suggest_keys(const Schema& schema, std::string_view written);

// "a duration such as 500ms, or none; at least 1s"
std::string takes_text(const Schema& schema, const KeyRow& row);
// "yes", "no", "the default only": what this build does of the key at `row_path`.
std::string built_text(const Schema& schema, std::string_view row_path);
// One line; of the entries of a map what is said of the map.
std::string_view doc_of(const Schema& schema, std::string_view row_path);
// The example below all maps that lead to it, one key per line; empty: there is none.
std::string example_text(const Schema& schema, std::string_view row_path);
// Paths of the keys in the map at `row_path`, `*` among them; "" is the top level.
std::vector<std::string> paths_below(const Schema& schema, std::string_view row_path);

}  // namespace monarch
