#pragma once

// libcuda.so.1, the driver's own library, where it is on this machine: it is loaded when it is asked for, so nothing
// needs it that has no memory of a GPU.
//
// Thread: any. Lifetime: it is never unloaded.

#include "transport/base/result.h"
#include "transport/tensor/cuda/driver.h"

namespace monarch::tensor {

// The same for all who ask in this process. kUnsupported: there is no driver, or one that does not begin; the message
// says why in its words.
Result<SharedCuda> load_libcuda();

}  // namespace monarch::tensor
