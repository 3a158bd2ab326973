#pragma once

// The driver by its functions, wherever they were found: contexts, copies, registered memory, events, and errors in its
// words.
//
// Thread: any. Lifetime: within that of the library whose functions they are.

#include <string>

#include "transport/tensor/cuda/cuda_own.h"
#include "transport/tensor/cuda/driver.h"

namespace monarch::tensor {

// cuInit has said yes.
SharedCuda driver_by(const own_cuda::Functions& functions);

// "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)", or "error 100" where the driver has no name for it.
std::string cuda_word(const own_cuda::Functions& cuda, own_cuda::Code code);

}  // namespace monarch::tensor
