#pragma once

// MONARCH_MESSAGE(T, number, a, b): says once what a message is: the number that a frame's header has as its type, and
// which fields of it travel, in which order (the rules of MONARCH_FIELDS hold). It stands in namespace monarch, after
// T. A number is given once and never again to another message; tests/transport/wire/messages_test.cc holds that no two
// have the same.
//
// Thread: constants.

#include <cstdint>
#include <type_traits>

#include <monarch/fields.hpp>

#define MONARCH_MESSAGE(T, number, ...) \
  MONARCH_FIELDS(T, __VA_ARGS__)        \
  constexpr std::uint16_t monarch_message_number(::std::type_identity<T>) { return number; }

namespace monarch {

// Of messages of type T.
template <class T>
constexpr std::uint16_t number_of() {
  return monarch_message_number(std::type_identity<T>{});
}

}  // namespace monarch
