#include "worker/rank/buffers.h"

#include <utility>

#include "worker/rank/deliveries.h"

// What plugins know by this name: a body that is read, or memory that was made.
struct monarch_memory_v1 {
  std::unique_ptr<monarch::BodyReading> reading;
  std::shared_ptr<monarch::DoorMemory> made_of;
  const char* made = nullptr;
};

namespace monarch {

namespace {

struct Present {
  const monarch_answer_v1* answer = nullptr;
  const DoorBody* value = nullptr;
};
thread_local Present present_value;

monarch_memory_v1* hold(const std::shared_ptr<BodyReaders>& body) {
  if (body == nullptr) return nullptr;
  auto memory = std::make_unique<monarch_memory_v1>();
  memory->reading = std::make_unique<BodyReading>(body);
  return memory.release();
}

}  // namespace

PresentValue::PresentValue(const monarch_answer_v1& answer, const DoorBody& value) {
  present_value = {&answer, &value};
}

PresentValue::~PresentValue() { present_value = {}; }

monarch_memory_v1* hold_arguments(const monarch_host_v1* /*host*/, monarch_delivery_v1* delivery) {
  return hold(delivery->arguments);
}

monarch_memory_v1* hold_value(const monarch_host_v1* /*host*/, const monarch_answer_v1* answer) {
  return present_value.answer == answer ? hold(present_value.value->readers()) : nullptr;
}

monarch_memory_v1* make_memory(const std::shared_ptr<DoorMemory>& memory, std::size_t size, void** data) {
  char* const start = memory->make(size);
  if (start == nullptr) return nullptr;
  *data = start;
  return std::make_unique<monarch_memory_v1>(monarch_memory_v1{nullptr, memory, start}).release();
}

void drop_memory(monarch_memory_v1* memory) {
  const std::unique_ptr<monarch_memory_v1> dropped(memory);
  if (dropped->made != nullptr) dropped->made_of->made().drop(dropped->made);
}

}  // namespace monarch
