#pragma once

// open_below(): a file within a folder, where no part of its path may lead elsewhere: each is opened in the one before
// it, and none may be a link. (openat2(2) does it in one call, where the kernel has it and no filter of a container
// refuses it.)
//
// Thread: any; it waits for the disk.

#include <fcntl.h>

#include <string>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

// Flags to open what must be a folder, and no link to one.
inline constexpr int kOpenFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// `path` is relative and has no parts that are dots; "" is the folder itself. O_CLOEXEC and O_NOFOLLOW are added to
// `flags`; a file that is made gets `mode`.
Result<UniqueFd> open_below(int folder, const std::string& path, int flags, unsigned mode = 0600);

// The folder in which the last part of `path` lies.
Result<UniqueFd> open_parent_below(int folder, const std::string& path);

// "c" of "a/b/c".
std::string last_part(const std::string& path);

}  // namespace monarch
