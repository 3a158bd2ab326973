#pragma once

// Buffers: the functions by which a plugin reads bodies where they lie, and makes some where others read them
// ("monarch.buffers.v1", monarch/plugin_v1.h).
//
// Thread: any.

#include <memory>

#include <monarch/plugin_v1.h>

#include "worker/rank/bodies/door_body.h"
#include "worker/rank/bodies/door_memory.h"

namespace monarch {

// The value of an answer while the plugin hears of it, on this thread.
class PresentValue {
 public:
  PresentValue(const monarch_answer_v1& answer, const DoorBody& value);
  PresentValue(const PresentValue&) = delete;
  PresentValue& operator=(const PresentValue&) = delete;
  ~PresentValue();
};

// What hold_arguments() and hold_value() of the table are.
monarch_memory_v1* hold_arguments(const monarch_host_v1* host, monarch_delivery_v1* delivery);
monarch_memory_v1* hold_value(const monarch_host_v1* host, const monarch_answer_v1* answer);
// What make() is, of that memory.
monarch_memory_v1* make_memory(const std::shared_ptr<DoorMemory>& memory, std::size_t size, void** data);
void drop_memory(monarch_memory_v1* memory);

}  // namespace monarch
