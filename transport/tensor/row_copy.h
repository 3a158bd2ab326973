#pragma once

// copy_rows(): what a plan says, from memory to memory. What is larger than the cache goes past it, by streaming
// stores: nobody reads it soon, and what it would push out may be wanted.
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <vector>

#include "transport/tensor/core/plan.h"

namespace monarch::tensor {

enum class CopyWay : std::uint8_t { kCached, kStreaming };

// The better one for so many bytes in all.
CopyWay way_for(std::uint64_t bytes);

// `from` and `to`: what the offsets of the copy count from.
void copy_rows(const Copy& copy, const char* from, char* to, CopyWay way);
// One row.
void copy_row(char* to, const char* from, std::size_t size, CopyWay way);
// Before anybody is told of what was copied: streaming stores are not in order with others.
void finish_rows();

}  // namespace monarch::tensor
