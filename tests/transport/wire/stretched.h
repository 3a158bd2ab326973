#pragma once

// Stretcher: finds each text and each list of a message, wherever it is nested, and makes one of them longer than
// anything may be. What is optional is there, and each list has an entry, so that nothing is passed over. Exaggerator:
// does so with each number, word of an enumeration and time, which it makes the largest or the smallest that there is.
//
// Thread: a value.

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/wire/codec.h"

namespace monarch {

class Stretcher {
 public:
  // `which` of them, counted from 0; more than there are: none. A text gets `bytes`, a list so many entries.
  Stretcher(std::size_t which, std::size_t bytes, std::size_t entries)
      : which_(which), bytes_(bytes), entries_(entries) {}

  // How many there are, once a message was visited.
  std::size_t count() const { return seen_; }

  void visit(std::string& text) {
    if (seen_++ == which_) text = std::string(bytes_, 'x');
  }
  void visit(codec::Bytes& bytes) { visit(bytes.data); }
  template <class T>
  void visit(std::vector<T>& list) {
    if (list.empty()) list.emplace_back();
    const bool stretched = seen_++ == which_;
    visit(list.front());
    if (stretched) list.resize(entries_);
  }
  template <class T>
  void visit(std::map<std::string, T>& map) {
    const bool stretched = seen_++ == which_;
    std::pair<std::string, T> one;
    visit(one);
    map.insert_or_assign(std::move(one.first), std::move(one.second));
    for (std::size_t i = 0; stretched && i < entries_; ++i) map[std::to_string(i)];
  }
  template <class T>
  void visit(std::optional<T>& value) {
    if (!value) value.emplace();
    visit(*value);
  }
  template <class A, class B>
  void visit(std::pair<A, B>& value) {
    visit(value.first);
    visit(value.second);
  }
  template <class Tag, class Int>
  void visit(StrongId<Tag, Int>& /*a number*/) {}
  template <class T>
  void visit(T& value) {
    if constexpr (std::is_class_v<T> && !codec::detail::Customized<T>) {
      codec::detail::with_fields(value, [this](auto&... field) {
        (this->visit(field), ...);
        return true;
      });
    }
  }

 private:
  std::size_t which_;
  std::size_t bytes_;
  std::size_t entries_;
  std::size_t seen_ = 0;
};

class Exaggerator {
 public:
  // `which` of them, counted from 0; more than there are: none.
  Exaggerator(std::size_t which, bool largest) : which_(which), largest_(largest) {}

  std::size_t count() const { return seen_; }

  void visit(std::string& /*a text*/) {}
  void visit(codec::Bytes& /*the same*/) {}
  template <class T>
  void visit(std::vector<T>& list) {
    if (list.empty()) list.emplace_back();
    visit(list.front());
  }
  template <class T>
  void visit(std::map<std::string, T>& map) {
    visit(map[""]);
  }
  template <class T>
  void visit(std::optional<T>& value) {
    if (!value) value.emplace();
    visit(*value);
  }
  template <class A, class B>
  void visit(std::pair<A, B>& value) {
    visit(value.first);
    visit(value.second);
  }
  template <class Tag, class Int>
  void visit(StrongId<Tag, Int>& value) {
    if (mine()) value = StrongId<Tag, Int>(end<Int>());
  }
  void visit(Duration& value) {
    if (mine()) value = Duration::nanoseconds(end<std::int64_t>());
  }
  void visit(Instant& value) {
    // The largest is never(), which has a meaning.
    if (mine()) value = Instant::since_boot(Duration::nanoseconds(end<std::int64_t>() - (largest_ ? 1 : 0)));
  }
  template <class T>
  void visit(T& value) {
    if constexpr (std::is_same_v<T, bool>) {
      if (mine()) value = largest_;
    } else if constexpr (std::is_integral_v<T>) {
      if (mine()) value = end<T>();
    } else if constexpr (std::is_enum_v<T>) {
      if (mine()) value = static_cast<T>(end<std::underlying_type_t<T>>());
    } else if constexpr (std::is_class_v<T> && !codec::detail::Customized<T>) {
      codec::detail::with_fields(value, [this](auto&... field) {
        (this->visit(field), ...);
        return true;
      });
    }
  }

 private:
  bool mine() { return seen_++ == which_; }
  template <class Int>
  Int end() const {
    return largest_ ? std::numeric_limits<Int>::max() : std::numeric_limits<Int>::min();
  }

  std::size_t which_;
  bool largest_;
  std::size_t seen_ = 0;
};

}  // namespace monarch
