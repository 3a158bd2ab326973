#pragma once

// A job that was started from a spec and has lost its supervisor: for who is about to start another from it, and may
// mean to go on with it.
//
// Thread: any; it touches the file system.

#include <optional>
#include <string>
#include <string_view>

#include "supervisor/journal/state_dir.h"

namespace monarch {

struct WantedSpec {
  std::string_view name;  // of the job
  std::string_view text;
};

// The newest one; nothing where there is none, or it cannot be seen. Of a job whose supervisor never said where it
// listens nothing ran.
std::optional<std::string> abandoned_job_of(const StateDir& state, const WantedSpec& spec);

}  // namespace monarch
