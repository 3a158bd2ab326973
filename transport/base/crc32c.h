#pragma once

// CRC32C (Castagnoli, RFC 3720 B.4): the check sum of journals. Uses SSE4.2 where the processor has it.
//
// Thread: any.

#include <cstdint>
#include <string_view>

namespace monarch {

// The CRC of what `crc` covered followed by `bytes`; start with 0.
std::uint32_t crc32c(std::uint32_t crc, std::string_view bytes);

// The same by table, for processors without the instruction and for the test that compares the two.
std::uint32_t crc32c_by_table(std::uint32_t crc, std::string_view bytes);

}  // namespace monarch
