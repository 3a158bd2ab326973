#pragma once

// libnccl.so.2, where it is: the one that this process has loaded already, as PyTorch does, else the file that is
// named, else what the loader finds by name. It is loaded when it is asked for.
//
// Thread: any. Lifetime: it is never unloaded.

#include "transport/base/result.h"
#include "transport/tensor/nccl/library.h"

namespace monarch::tensor {

inline constexpr const char* kNcclVariable = "MONARCH_NCCL_LIBRARY";

// `file`: that of kNcclVariable, or nullptr. kUnsupported: there is none, in the loader's words, or one before 2.14.
Result<SharedNccl> load_nccl(const char* file);

}  // namespace monarch::tensor
