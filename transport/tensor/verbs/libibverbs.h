#pragma once

// libibverbs, where it is on this machine: it is loaded when it is asked for, so nothing needs it that does not use it.
//
// Thread: any. Lifetime: it is never unloaded.

#include <memory>

#include "transport/base/result.h"
#include "transport/tensor/verbs/verbs.h"

namespace monarch::tensor {

// kUnsupported: this build has no verbs, or this machine no libibverbs, or one that is too old; the message says which.
Result<std::unique_ptr<VerbsLibrary>> load_libibverbs();

}  // namespace monarch::tensor
