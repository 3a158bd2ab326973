#pragma once

// ZmqFrame: one part of a message, owning libzmq's storage, so that a large payload is handed on without our code
// copying it (CURVE copies once). A received frame knows what the ZAP handler said about its sender.
//
// Thread: a value; moved, never shared.

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace monarch {

class ZmqFrame {
 public:
  ZmqFrame();
  ~ZmqFrame();
  ZmqFrame(ZmqFrame&& other) noexcept;
  ZmqFrame& operator=(ZmqFrame&& other) noexcept;
  ZmqFrame(const ZmqFrame&) = delete;
  ZmqFrame& operator=(const ZmqFrame&) = delete;

  static ZmqFrame copy(std::string_view bytes);
  // Keeps the string until libzmq has sent it, which frees it on an I/O thread.
  static ZmqFrame take(std::string bytes);

  // Bytes that are not copied either: `owner` keeps them until libzmq has sent them.
  static ZmqFrame hold(std::string_view bytes, std::shared_ptr<const void> owner);

  std::string_view bytes() const;
  std::size_t size() const { return bytes().size(); }

  // Of a received frame: the User-Id that the ZAP handler gave its sender, empty without one; it cannot be forged.
  std::string_view user_id() const;
  // Of a received frame: the sender's numeric address, empty if unknown.
  std::string_view peer_address() const;

 private:
  friend class ZmqSocket;
  void* native() { return storage_.data(); }
  const char* property(const char* name) const;

  alignas(void*) std::array<unsigned char, 64> storage_;  // a zmq_msg_t
};

}  // namespace monarch
