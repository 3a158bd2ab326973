#pragma once

// What the kernel says of the machine, and gives.
//
// Thread: any.

#include <cstddef>
#include <string>

namespace monarch {

// One for each boot of it, the same in all its containers; empty: there is no /proc.
std::string read_boot_id();

// That nobody can guess; at most 256.
std::string random_bytes(std::size_t count);

}  // namespace monarch
