#include <dlfcn.h>

#include <string>

#include "transport/base/text.h"
#include "transport/tensor/cuda/cuda_own.h"
#include "transport/tensor/cuda/driver_by.h"
#include "transport/tensor/cuda/load.h"

namespace monarch::tensor {

namespace {

using own_cuda::Code;
using own_cuda::Functions;

// WARNING: not libcuda.so, which is the toolkit's stub where the toolkit is installed.
constexpr const char* kCudaFile = "libcuda.so.1";

Error no_driver(const std::string& why) { return {ErrorCode::kUnsupported, text("no NVIDIA driver: ", why)}; }

// "libcuda.so.1 of CUDA 13.0"
std::string named_library(const Functions& cuda) {
  int version = 0;
  if (cuda.driver_version == nullptr || cuda.driver_version(&version) != own_cuda::kSuccess || version <= 0) {
    return kCudaFile;
  }
  return text(kCudaFile, " of CUDA ", version / 1'000, '.', version % 1'000 / 10);
}

Result<SharedCuda> load() {
  void* const library = ::dlopen(kCudaFile, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    const char* const why = ::dlerror();
    return no_driver(why == nullptr ? kCudaFile : why);
  }
  Functions cuda;
  std::string missing;
#define MONARCH_CUDA_FIND(ours, theirs)                                         \
  cuda.ours = reinterpret_cast<decltype(cuda.ours)>(::dlsym(library, #theirs)); \
  if (cuda.ours == nullptr) missing = missing.empty() ? #theirs : missing;
  MONARCH_CUDA_FUNCTIONS(MONARCH_CUDA_FIND)
#undef MONARCH_CUDA_FIND
  if (!missing.empty()) return no_driver(text(named_library(cuda), " has no ", missing, ": it is too old"));
  const Code code = cuda.init(0);
  if (code == own_cuda::kSuccess) return SharedCuda(driver_by(cuda));
  // The stub names no errors, either.
  const std::string word = code == own_cuda::kStubLibrary
                               ? "CUDA_ERROR_STUB_LIBRARY (the stub of NVIDIA's toolkit, and no driver)"
                               : cuda_word(cuda, code);
  return no_driver(text(named_library(cuda), ": cuInit: ", word));
}

}  // namespace

Result<SharedCuda> load_libcuda() {
  // One for the process, as the driver is. A failure stays, too: what ld.so looks through does not change while a
  // process runs, cuInit takes up to a second, and of one publication no part may be refused while the next one is not.
  // It is never destroyed, for it is used until the last thread ends.
  static const Result<SharedCuda>& loaded = *new Result<SharedCuda>(load());
  return loaded;
}

}  // namespace monarch::tensor
