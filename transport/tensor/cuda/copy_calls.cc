#include "transport/tensor/cuda/copy_calls.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace monarch::tensor {

CopyCalls::CopyCalls(const CudaCopy& copy, std::vector<std::uintptr_t> ends, std::uint64_t max_pitch)
    : rest_(copy), ends_(std::move(ends)) {
  if (rest_.row == 0) rest_.rows = 0;
  if (rest_.rows > 1 && rest_.host_pitch == rest_.row && rest_.device_pitch == rest_.row) {
    rest_.row *= rest_.rows;
    rest_.rows = 1;
  }
  const auto takes = [&](std::uint64_t pitch) { return pitch >= rest_.row && pitch <= max_pitch; };
  rows_together_ = takes(rest_.host_pitch) && takes(rest_.device_pitch);
}

std::uint64_t CopyCalls::to_the_next_end() const {
  const auto at = reinterpret_cast<std::uintptr_t>(rest_.host) + within_;
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), at);
  return end == ends_.end() ? std::numeric_limits<std::uint64_t>::max() : *end - at;
}

void CopyCalls::go_on(std::uint64_t rows) {
  within_ = 0;
  rest_.rows -= rows;
  if (rest_.rows == 0) return;
  rest_.host += rows * rest_.host_pitch;
  rest_.device += rows * rest_.device_pitch;
}

bool CopyCalls::next(CudaCopy& call) {
  if (rest_.rows == 0) return false;
  call = rest_;
  call.host += within_;
  call.device += within_;
  const std::uint64_t room = to_the_next_end();
  if (within_ == 0 && rows_together_ && room >= rest_.row) {
    call.rows = std::min(rest_.rows, 1 + (room - rest_.row) / rest_.host_pitch);
    go_on(call.rows);
    return true;
  }
  call.rows = 1;
  call.row = std::min(rest_.row - within_, room);
  within_ += call.row;
  if (within_ == rest_.row) go_on(1);
  return true;
}

}  // namespace monarch::tensor
