#pragma once

// shipped_monarch(): which file of this machine is copied to a host as monarch: of a build tree the one without
// symbols, which lies beside it as `monarch.shipped`; else itself.
//
// Thread: any; touches the file system.

#include <string>

namespace monarch {

std::string shipped_monarch(const std::string& monarch);

}  // namespace monarch
