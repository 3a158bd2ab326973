#pragma once

// check_elf(): whether the bytes of a file are a shared object that this process can load, as far as that can be said
// without loading it. Nothing in the file is believed.
//
// Thread: a pure function.

#include <string_view>

#include "transport/base/result.h"

namespace monarch {

// kInvalid: it is no shared object, or it looks for libraries beside itself ($ORIGIN), where nothing is, for a copy
// of it is loaded. kUnsupported: it is for other machines.
Status check_elf(std::string_view bytes);

}  // namespace monarch
