#include "transport/zmq/frame.h"

#include <zmq.h>

#include <cstring>
#include <memory>
#include <utility>

#include "transport/base/assert.h"

namespace monarch {

namespace {

static_assert(sizeof(zmq_msg_t) <= 64 && alignof(zmq_msg_t) <= alignof(void*));

zmq_msg_t* message(void* storage) { return static_cast<zmq_msg_t*>(storage); }

// The accessors of libzmq take a mutable message and do not change it.
zmq_msg_t* message(const void* storage) { return static_cast<zmq_msg_t*>(const_cast<void*>(storage)); }

void free_string(void* /*data*/, void* hint) { delete static_cast<std::string*>(hint); }
void free_owner(void* /*data*/, void* hint) { delete static_cast<std::shared_ptr<const void>*>(hint); }

}  // namespace

ZmqFrame::ZmqFrame() { MONARCH_ASSERT(zmq_msg_init(message(storage_.data())) == 0); }

ZmqFrame::~ZmqFrame() { MONARCH_ASSERT(zmq_msg_close(message(storage_.data())) == 0); }

ZmqFrame::ZmqFrame(ZmqFrame&& other) noexcept : ZmqFrame() { *this = std::move(other); }

ZmqFrame& ZmqFrame::operator=(ZmqFrame&& other) noexcept {
  if (this != &other) MONARCH_ASSERT(zmq_msg_move(message(storage_.data()), message(other.storage_.data())) == 0);
  return *this;
}

ZmqFrame ZmqFrame::copy(std::string_view bytes) {
  ZmqFrame frame;
  // An empty message needs no closing before it is made again (zmq_msg_init_size(3)).
  MONARCH_ASSERT(zmq_msg_init_size(message(frame.storage_.data()), bytes.size()) == 0);
  if (!bytes.empty()) std::memcpy(zmq_msg_data(message(frame.storage_.data())), bytes.data(), bytes.size());
  return frame;
}

ZmqFrame ZmqFrame::take(std::string bytes) {
  ZmqFrame frame;
  auto owned = std::make_unique<std::string>(std::move(bytes));
  std::string* raw = owned.release();
  MONARCH_ASSERT(zmq_msg_init_data(message(frame.storage_.data()), raw->data(), raw->size(), free_string, raw) == 0);
  return frame;
}

ZmqFrame ZmqFrame::hold(std::string_view bytes, std::shared_ptr<const void> owner) {
  ZmqFrame frame;
  auto owned = std::make_unique<std::shared_ptr<const void>>(std::move(owner));
  // libzmq does not write there.
  void* const data = const_cast<char*>(bytes.data());
  MONARCH_ASSERT(zmq_msg_init_data(message(frame.storage_.data()), data, bytes.size(), free_owner, owned.release()) ==
                 0);
  return frame;
}

std::string_view ZmqFrame::bytes() const {
  zmq_msg_t* raw = message(static_cast<const void*>(storage_.data()));
  return {static_cast<const char*>(zmq_msg_data(raw)), zmq_msg_size(raw)};
}

const char* ZmqFrame::property(const char* name) const {
  return zmq_msg_gets(message(static_cast<const void*>(storage_.data())), name);
}

std::string_view ZmqFrame::user_id() const {
  const char* value = property("User-Id");
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

std::string_view ZmqFrame::peer_address() const {
  const char* value = property("Peer-Address");
  return value == nullptr ? std::string_view{} : std::string_view{value};
}

}  // namespace monarch
