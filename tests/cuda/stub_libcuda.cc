// What the toolkit of CUDA has for linkers, under the name that is loaded: each of its functions answers that it is a
// stub, and does nothing else.

#include "transport/tensor/cuda/cuda_own.h"

extern "C" {
#define MONARCH_STUB(ours, theirs) \
  monarch::tensor::own_cuda::Code theirs() { return monarch::tensor::own_cuda::kStubLibrary; }
MONARCH_CUDA_FUNCTIONS(MONARCH_STUB)
}
