#pragma once

// keep_for_ever(): memory that a driver writes or reads whenever its stream comes to it, and that is nobody else's ever
// again.
//
// Thread: any.

#include <memory>

namespace monarch::tensor {

void keep_for_ever(std::shared_ptr<const void> memory);

}  // namespace monarch::tensor
