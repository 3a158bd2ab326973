#pragma once

// MONARCH_FIELDS(T, a, b): says once which fields of a struct travel, and in which order, up to 40. It stands in T's
// own namespace after T; MONARCH_FIELDS_INSIDE(a, b) stands in the public part of a class instead. A field may be
// appended at the end later; none may be removed, moved or given another type.
//
// MONARCH_ADDED_FIELDS(T, n), after it: peers of before do not say its last n fields, which keep their defaults then.

#include <cstddef>
#include <type_traits>

// Of a plugin one function is seen from outside; all else of ours stays inside it, so that two plugins of a process do
// not meet. What users may have in structs of their own is seen as these are: with -fvisibility=hidden, as pkg-config
// gives it together with MONARCH_ALL_HIDDEN, it is not.
#define MONARCH_INSIDE __attribute__((visibility("hidden")))
#ifdef MONARCH_ALL_HIDDEN
#define MONARCH_SEEN
#else
#define MONARCH_SEEN __attribute__((visibility("default")))
#endif

// Each defines monarch_codec_fields(..., use), which returns what use(value.a, value.b) returns: a bool. A template, so
// that a source pays for the structs that it encodes or decodes, not for all that it includes; and no tuple of the
// fields is made, which would cost the compiler a class for each. The type_identity keeps a derived class from
// travelling as its base.
#define MONARCH_FIELDS(T, ...)                                                                     \
  template <class MonarchValue, class MonarchUse>                                                  \
  requires ::std::is_same_v<::std::remove_const_t<MonarchValue>, T>                                \
  bool monarch_codec_fields([[maybe_unused]] MonarchValue& monarch_value, ::std::type_identity<T>, \
                            const MonarchUse& monarch_use) {                                       \
    return monarch_use(MONARCH_FIELDS_LIST(MONARCH_FIELDS_OF_VALUE, __VA_ARGS__));                 \
  }

#define MONARCH_FIELDS_INSIDE(...)                                                \
  template <class MonarchUse>                                                     \
  bool monarch_codec_fields(const MonarchUse& monarch_use) {                      \
    return monarch_use(MONARCH_FIELDS_LIST(MONARCH_FIELDS_OF_THIS, __VA_ARGS__)); \
  }                                                                               \
  template <class MonarchUse>                                                     \
  bool monarch_codec_fields(const MonarchUse& monarch_use) const {                \
    return monarch_use(MONARCH_FIELDS_LIST(MONARCH_FIELDS_OF_THIS, __VA_ARGS__)); \
  }

#define MONARCH_ADDED_FIELDS(T, n) \
  constexpr ::std::size_t monarch_codec_added(::std::type_identity<T>) { return n; }

// The machinery: a macro that names itself only through MONARCH_FIELDS_AGAIN is expanded again by each scan below.
#define MONARCH_FIELDS_OF_VALUE(field) monarch_value.field
#define MONARCH_FIELDS_OF_THIS(field) this->field
#define MONARCH_FIELDS_LIST(apply, ...) __VA_OPT__(MONARCH_FIELDS_SCAN(MONARCH_FIELDS_STEP(apply, __VA_ARGS__)))
#define MONARCH_FIELDS_STEP(apply, field, ...) \
  apply(field) __VA_OPT__(, MONARCH_FIELDS_AGAIN MONARCH_FIELDS_PARENTHESES(apply, __VA_ARGS__))
#define MONARCH_FIELDS_AGAIN() MONARCH_FIELDS_STEP
#define MONARCH_FIELDS_PARENTHESES ()
#define MONARCH_FIELDS_SCAN(...) \
  MONARCH_FIELDS_SCAN3(MONARCH_FIELDS_SCAN3(MONARCH_FIELDS_SCAN3(MONARCH_FIELDS_SCAN3(__VA_ARGS__))))
#define MONARCH_FIELDS_SCAN3(...) MONARCH_FIELDS_SCAN2(MONARCH_FIELDS_SCAN2(MONARCH_FIELDS_SCAN2(__VA_ARGS__)))
#define MONARCH_FIELDS_SCAN2(...) MONARCH_FIELDS_SCAN1(MONARCH_FIELDS_SCAN1(MONARCH_FIELDS_SCAN1(__VA_ARGS__)))
#define MONARCH_FIELDS_SCAN1(...) __VA_ARGS__
