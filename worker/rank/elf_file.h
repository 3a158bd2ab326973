#pragma once

// check_elf(): whether the bytes of a file are a shared object that this process can load, as far as that can be said
// without loading it. Nothing in the file is believed.
//
// Thread: a pure function.

#include <string_view>

#include "transport/base/result.h"

namespace monarch {

// kInvalid: it is no shared object, or it looks for libraries beside itself ($ORIGIN), which has no place where it is
// loaded from a descriptor. kUnsupported: it is for other machines.
Status check_elf(std::string_view bytes);

}  // namespace monarch
