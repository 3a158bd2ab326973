#pragma once

// digest_main(): `monarch-worker digest FILE`: prints the file's SHA-256, for a host that has no sha256sum to look at
// what was copied to it.
//
// Thread: main.

#include <string>

namespace monarch {

// The exit code: 0, or 1 with the reason on standard error.
int digest_main(const std::string& path);

}  // namespace monarch
