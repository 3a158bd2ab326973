#pragma once

// The rows of the schema in their parts, one file each; schema.cc alone puts them together.
//
// Thread: constant data.

#include <span>

#include "supervisor/spec/schema/schema.h"

namespace monarch::schema_rows {

std::span<const KeyRow> job();          // the top level
std::span<const KeyRow> network();      // network, control, supervisor
std::span<const KeyRow> meshes();       // meshes
std::span<const KeyRow> supervision();  // supervision, which a mesh may have, too

}  // namespace monarch::schema_rows
