#pragma once

// BentCuda: a driver that does what it is told, but for what a test changes.
//
// Thread, lifetime: a Cuda's.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "transport/tensor/cuda/driver.h"

namespace monarch::tensor {

class BentCuda : public Cuda {
 public:
  explicit BentCuda(SharedCuda real) : real_(std::move(real)) {}
  Result<std::unique_ptr<CudaScope>> enter(int device) override { return real_->enter(device); }
  std::string device_name(int device) override { return real_->device_name(device); }
  Result<int> device_of(const char* at) override { return real_->device_of(at); }
  Status check(const CudaStream& stream) override { return real_->check(stream); }
  Result<std::unique_ptr<CudaPin>> pin(char* start, std::uint64_t bytes) override { return real_->pin(start, bytes); }
  Status to_host(const CudaCopy& copy, const CudaStream& stream) override { return real_->to_host(copy, stream); }
  Status to_device(const CudaCopy& copy, const CudaStream& stream) override { return real_->to_device(copy, stream); }
  Result<std::unique_ptr<CudaEvent>> record(const CudaStream& stream) override { return real_->record(stream); }

 protected:
  const SharedCuda real_;
};

template <class Bent>
SharedCuda bent(SharedCuda cuda) {
  return std::make_shared<Bent>(std::move(cuda));
}

}  // namespace monarch::tensor
