#pragma once

// Stretcher: finds each text and each list of a message, wherever it is nested, and makes one of them longer than anything may be. What is
// optional is there, and each list has an entry, so that nothing is passed over.
//
// Thread: a value.

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

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
  template <class T>
  void visit(std::vector<T>& list) {
    if (list.empty()) list.emplace_back();
    const bool stretched = seen_++ == which_;
    visit(list.front());
    if (stretched) list.resize(entries_);
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

}  // namespace monarch
