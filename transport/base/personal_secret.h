#pragma once

// What one rank alone is given of a key that its owner keeps: by it the rank proves who it is, and it can make none for
// another.
//
// Thread: a pure function.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace monarch {

// Of a key, and of what is made of it.
inline constexpr std::size_t kPersonalSecretBytes = 32;

// For that start of that rank of the mesh; an empty mesh: for all who are no ranks of the job.
std::string personal_secret(std::string_view key, std::string_view mesh, std::uint32_t rank, std::uint64_t generation);

}  // namespace monarch
