#pragma once

// What reading a scenario of a drill asks of this machine.
//
// Thread: any; `exists` asks the file system.

#include "supervisor/drill/scenario/read_scenario.h"

namespace monarch {

drill::ScenarioSurroundings users_scenario_surroundings();

}  // namespace monarch
