#pragma once

// --save: writes the spec that a command line makes, as one file that means the same where it stands.
//
// Thread: the command's; touches the file system.

#include <string>

#include "transport/base/result.h"

namespace monarch {

struct WholeSpec {
  std::string text;
  std::string directory;  // absolute: what relative paths in it start from
};

// A file that is there already is never written over; one with the same text is as good as written.
Status save_spec(const std::string& path, const WholeSpec& spec);

}  // namespace monarch
