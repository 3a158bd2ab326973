#pragma once

// Result<T>: the value of an operation that may fail in ways its caller has to expect. GCC 12 in C++20 has no
// std::expected; this has its shape. It does not carry bugs: those are MONARCH_ASSERT.
//
// Thread: a value, as safe as the T inside.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "transport/base/assert.h"

namespace monarch {

// Named after what the caller should do about it. Nobody matches on text.
enum class ErrorCode : std::uint8_t {
  kInvalid,      // the input is wrong: tell whoever wrote it
  kNotFound,     // there is no such thing
  kBusy,         // somebody else holds it, or a limit is reached: later may help
  kGone,         // it was there and has ended
  kTimeout,      // the deadline passed
  kUnsupported,  // this build or this machine cannot do it
  kDevice,       // a GPU, or its driver, has failed at what it was told to do
  kInternal,     // the system answered what it should not have
};

std::string_view error_code_name(ErrorCode code);

struct Error {
  ErrorCode code = ErrorCode::kInternal;
  std::string message;  // what was tried, on what, and what the system answered
  int errno_value = 0;  // where the message ends with the system's word for it
};

// strerror(errno_value), and for EMFILE the limit that this process has met: "Too many open files (256 at most: ulimit
// -n)".
std::string system_word(int errno_value);
// "256 at most: ulimit -n"; empty where there is none.
std::string open_files_limit();

// "<what>: <system_word(errno_value)>"
Error errno_error(ErrorCode code, std::string_view what, int errno_value);

// The same with the code derived from errno: ENOENT is kNotFound, EAGAIN and EADDRINUSE kBusy, and so on.
Error errno_error(std::string_view what, int errno_value);

// The call would have waited, or a signal interrupted it: made again later, it may succeed.
bool is_later(int errno_value);

template <class T>
class [[nodiscard]] Result {
 public:
  // Implicit on purpose: `return value;` and `return Error{...};` both read as what they are.
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & { return checked(); }
  const T& value() const& { return const_cast<Result*>(this)->checked(); }
  // By value: a reference into a temporary would dangle in `for (auto& x : f().value())`.
  T value() && { return std::move(checked()); }
  T& operator*() & { return checked(); }
  const T& operator*() const& { return value(); }
  T operator*() && { return std::move(checked()); }
  T* operator->() { return &checked(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& {
    MONARCH_ASSERT(!ok());
    return *std::get_if<1>(&state_);
  }
  Error&& error() && {
    MONARCH_ASSERT(!ok());
    return std::move(*std::get_if<1>(&state_));
  }

 private:
  T& checked() {
    MONARCH_ASSERT(ok());
    return *std::get_if<0>(&state_);
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const {
    MONARCH_ASSERT(!ok());
    return *error_;
  }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

}  // namespace monarch

// Propagates the error of `expression`, a Status.
#define MONARCH_TRY(expression)                                     \
  do {                                                              \
    if (auto monarch_status = (expression); !monarch_status.ok()) { \
      return std::move(monarch_status).error();                     \
    }                                                               \
  } while (false)

#define MONARCH_CONCAT_INNER(a, b) a##b
#define MONARCH_CONCAT(a, b) MONARCH_CONCAT_INNER(a, b)

// `MONARCH_ASSIGN(auto x, f())`: x gets the value, or the function returns the error.
#define MONARCH_ASSIGN(target, expression) \
  MONARCH_ASSIGN_INNER(target, expression, MONARCH_CONCAT(monarch_result_, __LINE__))
#define MONARCH_ASSIGN_INNER(target, expression, name) \
  auto name = (expression);                            \
  if (!name.ok()) return std::move(name).error();      \
  target = std::move(name).value()
