#pragma once

// The process that has loaded this plugin, and what it can do beyond what any can.
//
// Thread: any.

#include <atomic>
#include <cstddef>
#include <stdexcept>

#include <monarch/plugin_v1.h>
#include <monarch/codec.hpp>

namespace monarch {
inline namespace v1 MONARCH_INSIDE {

namespace detail {

// There is one, and it outlives all that calls.
inline std::atomic<const monarch_host_v1*>& known_host() {
  static std::atomic<const monarch_host_v1*> host{nullptr};
  return host;
}
inline const monarch_host_v1* host_here() {
  const monarch_host_v1* const host = known_host();
  if (host == nullptr) throw std::logic_error("calls can be made once monarch-rank has loaded this plugin");
  return host;
}

inline bool knows_pieces(const monarch_host_v1& host) {
  return host.struct_size >= offsetof(monarch_host_v1, reply_with) + sizeof host.reply_with &&
         host.reply_with != nullptr;
}

// nullptr: it has none, or is none.
inline const monarch_buffers_v1* buffers_of(const monarch_host_v1* host) {
  if (host == nullptr || host->extension == nullptr) return nullptr;
  return static_cast<const monarch_buffers_v1*>(host->extension(host, MONARCH_BUFFERS_V1));
}

}  // namespace detail
}  // namespace MONARCH_INSIDE
}  // namespace monarch
