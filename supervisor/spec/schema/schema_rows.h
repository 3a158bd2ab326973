#pragma once

// What the schema of specs is made of, one file each; spec_schema.cc alone puts it together.
//
// Thread: constant data.

#include <span>

#include "supervisor/spec/schema/schema.h"

namespace monarch::schema_rows {

std::span<const KeyRow> job();          // the top level
std::span<const KeyRow> network();      // network, control, supervisor
std::span<const KeyRow> meshes();       // meshes
std::span<const KeyRow> supervision();  // supervision, which a mesh may have, too

std::span<const KeyHelp> help();      // of all these
std::span<const Synonym> synonyms();  // keys of other launchers

}  // namespace monarch::schema_rows
