#include "transport/tensor/cuda/kept_for_ever.h"

#include <mutex>
#include <utility>
#include <vector>

namespace monarch::tensor {

void keep_for_ever(std::shared_ptr<const void> memory) {
  static std::mutex mutex;
  // The process's end does not free it, either: the driver is still at work then.
  static auto* const all = new std::vector<std::shared_ptr<const void>>;
  const std::lock_guard lock(mutex);
  all->push_back(std::move(memory));
}

}  // namespace monarch::tensor
