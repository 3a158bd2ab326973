#pragma once

// CopyCalls: the calls of the driver that one copy of rows takes, each of them rows, or one range of bytes. Pure.
//
// WARNING: no call may cross the end of a piece of memory that was registered by itself: CUDA answers INVALID_VALUE
// where a range begins in one allocation and ends in another. And it takes no pitch above the device's greatest, nor
// one that is less than a row.
//
// Thread: a value.

#include <cstdint>
#include <vector>

#include "transport/tensor/cuda/driver.h"

namespace monarch::tensor {

class CopyCalls {
 public:
  // Ends: addresses of the host where a registered piece begins or ends, in order. max_pitch: bytes.
  CopyCalls(const CudaCopy& copy, std::vector<std::uintptr_t> ends, std::uint64_t max_pitch);
  // The next one; its pitches count where it is of more rows than one. False: that was all.
  bool next(CudaCopy& call);

 private:
  std::uint64_t to_the_next_end() const;
  void go_on(std::uint64_t rows);

  CudaCopy rest_;
  std::vector<std::uintptr_t> ends_;
  bool rows_together_ = false;
  std::uint64_t within_ = 0;  // bytes of the first row of what is left that are done
};

}  // namespace monarch::tensor
