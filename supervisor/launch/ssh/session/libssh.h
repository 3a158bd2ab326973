#pragma once

// libssh, loaded when it is first needed: its calls are defined in libssh.cc as steps into the shared library. Linked
// as usual, it and the dozen libraries that it needs would have to be there, and be loaded, for every `monarch ps`.
//
// Thread: any. WARNING: a libssh session lives and dies in one thread.

#include <string>
#include <string_view>

#include "transport/base/result.h"

namespace monarch {

// Before anything else of libssh is called, any number of times. kUnsupported: it is not on this machine.
Status load_libssh();

std::string libssh_version();  // "0.10.6"

// What to warn of, once, where this version is known to have holes; empty: nothing. A distribution may have mended an
// older one without a new number.
std::string libssh_concern(std::string_view version);

}  // namespace monarch
