#pragma once

// How messages travel in frames: frame_of() writes one, route() gives one that has come to whoever is for it. Which
// number and which fields a message has stands beside it (transport/messages).
//
//   const Status taken = route(frame.header, frame.payload,
//                              when<KeeperPing>([&](const KeeperPing& ping) { … }),
//                              when<KeeperEnded>([&](const KeeperEnded& ended) { … }),
//                              unopened<Stop, Signal>([&](std::string_view payload) { … }));
//
// Thread: pure functions.

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>
#include <utility>

#include "transport/base/limits.h"
#include "transport/base/result.h"
#include "transport/base/text.h"
#include "transport/messages/message.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"

namespace monarch {

// `header`: all of it but the type.
template <class T>
Frame frame_of(const T& message, FrameHeader header = {}) {
  header.type = number_of<T>();
  return {header, encode_payload(message)};
}

template <class T>
bool is_a(const FrameHeader& header) {
  return header.type == number_of<T>();
}

// For one of route(): whoever takes a T, decoded by `Decode`. It may say, by a Status, that it is none that can be
// meant.
template <class T, auto Decode, class Take>
class OpenedRoute {
 public:
  OpenedRoute(Take take, std::size_t limit) : take_(std::move(take)), limit_(limit) {}

  bool is_for(const FrameHeader& header) const { return is_a<T>(header); }
  Status go(std::string_view payload) const {
    MONARCH_ASSIGN(T message, Decode(payload, limit_));
    if constexpr (std::is_void_v<std::invoke_result_t<const Take&, T&&>>) {
      take_(std::move(message));
      return {};
    } else {
      return take_(std::move(message));
    }
  }

 private:
  Take take_;
  std::size_t limit_;
};

// For one of route(): whoever passes these messages on as they are.
template <class Take, class... Ts>
class UnopenedRoute {
 public:
  explicit UnopenedRoute(Take take) : take_(std::move(take)) {}

  bool is_for(const FrameHeader& header) const { return (is_a<Ts>(header) || ...); }
  Status go(std::string_view payload) const {
    if (payload.size() > limits::kControlPayloadBytes) {
      return Error{ErrorCode::kInvalid,
                   text("a payload of ", payload.size(), " bytes is over the limit of ", limits::kControlPayloadBytes)};
    }
    take_(payload);
    return {};
  }

 private:
  Take take_;
};

template <class T, auto Decode = &decode_payload<T>, class Take>
auto when(Take take, std::size_t limit = limits::kControlPayloadBytes) {
  return OpenedRoute<T, Decode, Take>(std::move(take), limit);
}

template <class... Ts, class Take>
auto unopened(Take take) {
  return UnopenedRoute<Take, Ts...>(std::move(take));
}

// kUnsupported where nobody is for it, kInvalid where it cannot be read; else what its taker says.
template <class... Routes>
Status route(const FrameHeader& header, std::string_view payload, const Routes&... routes) {
  Status taken;
  const bool known = ((routes.is_for(header) && (taken = routes.go(payload), true)) || ...);
  if (known) return taken;
  return Error{ErrorCode::kUnsupported, text("nobody here takes a message of type ", header.type)};
}

}  // namespace monarch
