#pragma once

// write_all(): all bytes to a descriptor, in as many calls as it takes. The first failure ends it, EAGAIN of a
// non-blocking descriptor too. A viewer that follows a job writes through OutputWriter instead, which never waits.
//
// Thread: any; it waits for whoever reads, or for the disk.

#include <string>
#include <string_view>

#include "transport/base/result.h"

namespace monarch {

// 0, or the errno of the write that failed.
int write_all(int fd, std::string_view bytes);
// `what` is the beginning of the error's message: "writing /tmp/report".
Status write_all(int fd, std::string_view bytes, const std::string& what);

}  // namespace monarch
