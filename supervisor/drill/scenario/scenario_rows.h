#pragma once

// What the schema of scenarios is made of; drill_schema.cc alone puts it together.
//
// Thread: constant data.

#include <span>

#include "supervisor/spec/schema/schema.h"

namespace monarch::drill::scenario_rows {

// Words that are facts of other tables: "kill|segv", names of events.
std::vector<KeyRow> top();
std::vector<KeyRow> faults();
std::vector<KeyRow> expect();
std::vector<KeyHelp> help();
std::span<const Synonym> synonyms();

}  // namespace monarch::drill::scenario_rows
