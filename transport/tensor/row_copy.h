#pragma once

// copy_rows(): what a plan says, from memory to memory. What is larger than the cache goes past it, by streaming
// stores: nobody reads it soon, and what it would push out may be wanted. A processor foresees reads within a row, and
// none of the rows behind it: a short row asks for the one that is four further on.
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>

#include "transport/tensor/core/plan.h"

namespace monarch::tensor {

enum class CopyWay : std::uint8_t { kCached, kStreaming };
// How much one streaming store writes. kNone: this processor has none that is known here.
enum class StoreWidth : std::uint8_t { kNone, k16Bytes, k32Bytes };

// Rows of one length, each as far behind the one before it.
struct RowRun {
  const char* from = nullptr;
  char* to = nullptr;
  std::size_t row = 0;  // bytes
  std::uint64_t rows = 0;
  std::uint64_t source_pitch = 0;
  std::uint64_t destination_pitch = 0;
};

// The better one for so many bytes in all.
CopyWay way_for(std::uint64_t bytes);
// The widest that this processor has; it is asked once.
StoreWidth store_width();

// `from` and `to`: what the offsets of the copy count from.
void copy_rows(const Copy& copy, const char* from, char* to, CopyWay way);
// `width`: no wider than store_width().
void copy_run(const RowRun& run, CopyWay way, StoreWidth width = store_width());
// One row.
void copy_row(char* to, const char* from, std::size_t size, CopyWay way);
// Before anybody is told of what was copied: streaming stores are not in order with others.
void finish_rows();

}  // namespace monarch::tensor
