#pragma once

// The file in which a rank says why it fails. A rank may put anything in its place: a link, a fifo or a device is no
// such file.
//
// Thread: any.

#include <cstddef>
#include <optional>
#include <string>

#include "transport/base/time.h"

namespace monarch::daemon {

// At most so many bytes; none where there is no such file.
std::string read_error_file(const std::string& path, std::size_t limit);
// How long ago it was written; nothing: there is none, or none that says anything.
std::optional<Duration> age_of_error_file(const std::string& path);

}  // namespace monarch::daemon
