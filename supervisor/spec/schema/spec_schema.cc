// The schema of specs, put together of the rows of its parts and of the launchers.

#include "supervisor/spec/schema/launcher_spec.h"
#include "supervisor/spec/schema/schema.h"
#include "supervisor/spec/schema/schema_rows.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

template <class T>
void append(std::vector<T>& to, std::span<const T> more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::vector<KeyRow> spec_rows() {
  std::vector<KeyRow> rows;
  const std::span<const KeyRow> top = schema_rows::job();
  append(rows, top.first(2));  // version, job
  static const std::string kLaunchDoc = text("exactly one of ", launcher_list(), "; local if it is left out");
  rows.push_back({.path = "launch", .type = ValueType::kMap, .doc = kLaunchDoc});
  for (const LauncherSpec* launcher : launcher_specs()) append(rows, launcher->rows);
  append(rows, schema_rows::network());
  append(rows, schema_rows::meshes());
  append(rows, schema_rows::supervision());
  append(rows, top.subspan(2));
  return rows;
}

std::vector<KeyHelp> spec_help() {
  std::vector<KeyHelp> help;
  append(help, schema_rows::help());
  for (const LauncherSpec* launcher : launcher_specs()) append(help, launcher->help);
  return help;
}

SchemaParts spec_parts() {
  SchemaParts parts{.called = "a spec",
                    .start = "start with `version: 1`",
                    .explained_at = "",
                    .checked_by = "monarch validate",
                    .rows = spec_rows(),
                    .help = spec_help(),
                    .synonyms = {},
                    .shared = {{.path = "supervision", .owners = {"meshes.*", "controller"}}},
                    .one_of = {{.path = "launch", .keys = launcher_words()},
                               {.path = "launch.ssh", .keys = "hosts|hosts_file"},
                               {.path = "controller", .keys = "plugin|program"},
                               {.path = "meshes.*", .keys = "program|actors"},
                               {.path = "meshes.*.actors.*", .keys = "plugin|python|module"}},
                    .entries = {{.path = "meshes.*", .one = "a mesh"}}};
  append(parts.synonyms, schema_rows::synonyms());
  return parts;
}

}  // namespace

// Constant data, made at the first use.
const Schema& spec_schema() {
  static const Schema made(spec_parts());
  return made;
}

}  // namespace monarch
