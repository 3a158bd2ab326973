#pragma once

// The schema of a scenario: its keys, as `monarch explain drill` shows them.
//
// Thread: constant data.

#include "supervisor/spec/schema/schema.h"

namespace monarch::drill {

const Schema& drill_schema();

}  // namespace monarch::drill
