#include "supervisor/drill/scenario/drill_schema.h"

#include "supervisor/drill/scenario/scenario_rows.h"

namespace monarch::drill {

namespace {

// The order of the documentation.
SchemaParts parts() {
  SchemaParts all{.called = "a scenario",
                  .start = "start with `version: 1`; `monarch drill --smoke SPEC --print` shows one",
                  .explained_at = "drill",
                  .checked_by = "monarch drill --dry-run",
                  .rows = scenario_rows::top(),
                  .help = scenario_rows::help(),
                  .synonyms = {},
                  .shared = {},
                  .one_of = {{.path = "faults.[]", .keys = "at|every|on_step|on_event"}},
                  .entries = {{.path = "faults.[].target", .one = "the target of a fault"},
                              {.path = "faults.[]", .one = "a fault"}}};
  for (std::vector<KeyRow> more : {scenario_rows::faults(), scenario_rows::expect()}) {
    all.rows.insert(all.rows.end(), more.begin(), more.end());
  }
  const auto synonyms = scenario_rows::synonyms();
  all.synonyms.assign(synonyms.begin(), synonyms.end());
  return all;
}

}  // namespace

const Schema& drill_schema() {
  static const Schema made(parts());
  return made;
}

}  // namespace monarch::drill
