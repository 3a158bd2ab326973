#pragma once

// Which files and flags a job's spec was made of, kept in its folder, so that a live job can tell that they would make
// another by now. The job itself goes on with its own copy, whatever happens to them (O09).
//
// Thread: the command's; it reads the files anew.

#include <optional>
#include <string>
#include <vector>

#include "supervisor/client/job_view.h"
#include "supervisor/spec/spec.h"

namespace monarch {

struct SpecOrigin {
  std::vector<std::string> files;  // absolute
  SpecParts flags;                 // without files
};

// One line of JSON.
std::string write_origin(const SpecParts& parts);
std::optional<SpecOrigin> parse_origin(const std::string& json);

// Of a job; nothing if it was made of no file, or if that cannot be read.
std::optional<SpecOrigin> origin_of(const JobView& view);

// What the files of a job would make other than `running`, its own spec; nothing if nothing. A sentence without the
// job's id.
std::optional<std::string> spec_drift(const JobView& view, const JobSpec& running);

}  // namespace monarch
