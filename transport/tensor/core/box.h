#pragma once

// Box: a part of a tensor, from an index on, so many indices in each dimension.
//
// Thread: values.

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <monarch/codec.hpp>

namespace monarch::tensor {

inline constexpr std::size_t kDims = 8;  // of a tensor, at most

// A number for each dimension, the slowest first.
class Extents {
 public:
  Extents() = default;
  // At most kDims.
  Extents(std::initializer_list<std::uint64_t> values);
  explicit Extents(std::size_t size, std::uint64_t value = 0) : size_(size) { values_.fill(value); }

  std::size_t size() const { return size_; }
  std::uint64_t operator[](std::size_t dim) const { return values_[dim]; }
  std::uint64_t& operator[](std::size_t dim) { return values_[dim]; }
  bool operator==(const Extents& other) const;
  bool operator<(const Extents& other) const;

 private:
  std::array<std::uint64_t, kDims> values_{};
  std::size_t size_ = 0;
};

// On the wire an array of numbers.
void codec_write(codec::Writer& writer, const Extents& extents);
bool codec_read(codec::Reader& reader, Extents& extents);

struct Box {
  Extents at;
  Extents size;  // of as many dimensions
  bool operator==(const Box&) const = default;
  std::uint64_t end(std::size_t dim) const { return at[dim] + size[dim]; }
};

// By where they begin.
struct BoxOrder {
  bool operator()(const Box& one, const Box& other) const {
    return one.at == other.at ? one.size < other.size : one.at < other.at;
  }
};

// All of a tensor of that shape.
Box whole(const Extents& shape);
// Its elements; nothing: more than can be counted.
std::optional<std::uint64_t> elements(const Extents& size);
bool is_empty(const Box& box);
// Whether the box is one of a tensor of that shape, without a sum that overflows.
bool is_within(const Box& box, const Extents& shape);
// Both have as many dimensions. Nothing: they have no element in common.
std::optional<Box> intersection(const Box& one, const Box& other);
// What is left of `from` without `hole`, which is within it: boxes that have nothing in common.
std::vector<Box> without(const Box& from, const Box& hole);

// "8192 x 4096", and "[0:1024, 0:4096]"; of no dimension "()" and "[]".
std::string to_text(const Extents& extents);
std::string to_text(const Box& box);

}  // namespace monarch::tensor
