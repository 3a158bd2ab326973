#pragma once

// How calls end: for each rank that was called a value or an error, and the exceptions that say the same.
//
// Thread: values.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include <monarch/plugin_v1.h>
#include <monarch/codec.hpp>

namespace monarch {

enum class MONARCH_SEEN Kind : std::uint32_t {
  kValue = MONARCH_VALUE,
  kRemoteError = MONARCH_REMOTE_ERROR,  // the endpoint let an error out; the actor lives
  kRankLost = MONARCH_RANK_LOST,        // it has ended, or is not up
  kDeadlineExceeded = MONARCH_DEADLINE,
  kBusy = MONARCH_BUSY,  // too much waits there; it has not run
  kGone = MONARCH_GONE,  // nobody knows whether it has run
  kCancelled = MONARCH_CANCELLED,
  kRefused = MONARCH_REFUSED,  // nothing like it can be called, or a body is too large; has it run, the text says so
};

// The errors of calls.
class MONARCH_SEEN Error : public std::runtime_error {
 public:
  struct Of {
    Kind kind = Kind::kGone;
    std::string mesh;
    std::uint32_t rank = 0;
    std::uint64_t generation = 0;  // 0: it was none of the rank's that said so
    std::string type;              // of what a kRemoteError let out
    std::string text;
    std::string traceback;
  };
  explicit Error(Of of) : std::runtime_error(words(of)), of_(std::move(of)) {}

  Kind kind() const { return of_.kind; }
  const std::string& mesh() const { return of_.mesh; }
  std::uint32_t rank() const { return of_.rank; }
  std::uint64_t generation() const { return of_.generation; }
  const std::string& type() const { return of_.type; }
  const std::string& text() const { return of_.text; }
  const std::string& traceback() const { return of_.traceback; }

 private:
  // "trainer/3: std::runtime_error: saying bye is hard"
  static std::string words(const Of& of) {
    std::string words = of.mesh + "/" + std::to_string(of.rank) + ": ";
    if (!of.type.empty()) words += of.type + ": ";
    return words + of.text;
  }
  Of of_;
};
class MONARCH_SEEN RemoteError : public Error {
  using Error::Error;
};
class MONARCH_SEEN RankLost : public Error {
  using Error::Error;
};
class MONARCH_SEEN DeadlineExceeded : public Error {
  using Error::Error;
};
class MONARCH_SEEN Busy : public Error {
  using Error::Error;
};
class MONARCH_SEEN Gone : public Error {
  using Error::Error;
};
class MONARCH_SEEN Cancelled : public Error {
  using Error::Error;
};
class MONARCH_SEEN Refused : public Error {
  using Error::Error;
};

inline namespace v1 MONARCH_INSIDE {

namespace detail {

[[noreturn]] inline void raise(Error::Of of) {
  switch (of.kind) {
    case Kind::kRemoteError: throw RemoteError(std::move(of));
    case Kind::kRankLost: throw RankLost(std::move(of));
    case Kind::kDeadlineExceeded: throw DeadlineExceeded(std::move(of));
    case Kind::kBusy: throw Busy(std::move(of));
    case Kind::kCancelled: throw Cancelled(std::move(of));
    case Kind::kRefused: throw Refused(std::move(of));
    case Kind::kGone:
    case Kind::kValue: break;  // a value is none
  }
  throw Gone(std::move(of));
}

// Of an endpoint that gives nothing there is a value all the same.
template <class R>
using Held = std::conditional_t<std::is_void_v<R>, std::monostate, R>;

}  // namespace detail

// Of one rank of a call.
template <class T>
struct MONARCH_SEEN Outcome {
  std::string mesh;
  std::uint32_t rank = 0;
  std::uint64_t generation = 0;
  Kind kind = Kind::kGone;
  std::optional<T> value;  // of a kValue
  std::string type;        // of what a kRemoteError let out
  std::string text;
  std::string traceback;

  explicit operator bool() const { return value.has_value(); }
  const T& operator*() const { return get(); }
  const T* operator->() const { return &get(); }
  // Throws what it is instead.
  const T& get() const {
    if (!value) raise();
    return *value;
  }
  [[noreturn]] void raise() const {
    detail::raise({.kind = kind,
                   .mesh = mesh,
                   .rank = rank,
                   .generation = generation,
                   .type = type,
                   .text = text,
                   .traceback = traceback});
  }
};

// The values of a call, by rank.
template <class T>
class MONARCH_SEEN ValueMesh {
 public:
  ValueMesh() = default;
  explicit ValueMesh(std::map<std::uint32_t, T> values) : values_(std::move(values)) {}
  auto begin() const { return values_.begin(); }
  auto end() const { return values_.end(); }
  std::size_t size() const { return values_.size(); }
  const T& at(std::uint32_t rank) const { return values_.at(rank); }

 private:
  std::map<std::uint32_t, T> values_;
};

}  // namespace MONARCH_INSIDE
}  // namespace monarch
