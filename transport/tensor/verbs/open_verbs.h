#pragma once

// open_verbs(): the device that a rank reads and is read by, once it was seen to READ.
//
// Thread: any; it waits for the device, kProof at most.

#include <optional>

#include "transport/base/time.h"
#include "transport/tensor/core/verbs_choice.h"
#include "transport/tensor/verbs/verbs.h"

namespace monarch::tensor {

inline constexpr Duration kVerbsProof = Duration::seconds(1);

// Without a device: why there is none.
VerbsEnd open_verbs(VerbsLibrary& library, const DeviceWish& wish);
// A READ of 4 KiB from this process to itself, its bytes compared.
Status prove_device(VerbsDevice& device);
// The NUMA node of all CPUs that this thread may run on; nothing: there are several, or the kernel says nothing.
std::optional<std::uint32_t> own_node();

}  // namespace monarch::tensor
