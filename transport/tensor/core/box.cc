#include "transport/tensor/core/box.h"

#include <algorithm>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch::tensor {

Extents::Extents(std::initializer_list<std::uint64_t> values) : size_(values.size()) {
  MONARCH_ASSERT(values.size() <= kDims);
  std::copy(values.begin(), values.end(), values_.begin());
}

bool Extents::operator==(const Extents& other) const {
  return std::equal(values_.begin(), values_.begin() + size_, other.values_.begin(),
                    other.values_.begin() + other.size_);
}

bool Extents::operator<(const Extents& other) const {
  return std::lexicographical_compare(values_.begin(), values_.begin() + size_, other.values_.begin(),
                                      other.values_.begin() + other.size_);
}

void codec_write(codec::Writer& writer, const Extents& extents) {
  writer.array(extents.size());
  for (std::size_t dim = 0; dim < extents.size(); ++dim) writer.unsigned_integer(extents[dim]);
}

bool codec_read(codec::Reader& reader, Extents& extents) {
  const auto array = reader.array();
  if (!array) return false;
  if (array.count() > kDims) return reader.fail("more dimensions than a tensor may have");
  extents = Extents(array.count());
  for (std::size_t dim = 0; dim < array.count(); ++dim) {
    if (!codec::read(reader, extents[dim])) return false;
  }
  return true;
}

Box whole(const Extents& shape) { return {Extents(shape.size()), shape}; }

std::optional<std::uint64_t> elements(const Extents& size) {
  std::uint64_t count = 1;
  for (std::size_t dim = 0; dim < size.size(); ++dim) {
    if (__builtin_mul_overflow(count, size[dim], &count)) return std::nullopt;
  }
  return count;
}

bool is_empty(const Box& box) {
  for (std::size_t dim = 0; dim < box.size.size(); ++dim) {
    if (box.size[dim] == 0) return true;
  }
  return false;
}

bool is_within(const Box& box, const Extents& shape) {
  if (box.at.size() != shape.size() || box.size.size() != shape.size()) return false;
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (box.at[dim] > shape[dim] || box.size[dim] > shape[dim] - box.at[dim]) return false;
  }
  return true;
}

std::optional<Box> intersection(const Box& one, const Box& other) {
  MONARCH_ASSERT(one.at.size() == other.at.size());
  Box common{Extents(one.at.size()), Extents(one.at.size())};
  for (std::size_t dim = 0; dim < one.at.size(); ++dim) {
    const std::uint64_t from = std::max(one.at[dim], other.at[dim]);
    const std::uint64_t to = std::min(one.end(dim), other.end(dim));
    if (from >= to) return std::nullopt;
    common.at[dim] = from;
    common.size[dim] = to - from;
  }
  return common;
}

// Dimension by dimension what is before and behind the hole; what is beside it in later ones is cut from the rest.
std::vector<Box> without(const Box& from, const Box& hole) {
  std::vector<Box> left;
  Box rest = from;
  for (std::size_t dim = 0; dim < from.at.size(); ++dim) {
    if (rest.at[dim] < hole.at[dim]) {
      left.push_back(rest);
      left.back().size[dim] = hole.at[dim] - rest.at[dim];
    }
    if (hole.end(dim) < rest.end(dim)) {
      left.push_back(rest);
      left.back().at[dim] = hole.end(dim);
      left.back().size[dim] = rest.end(dim) - hole.end(dim);
    }
    rest.at[dim] = hole.at[dim];
    rest.size[dim] = hole.size[dim];
  }
  return left;
}

std::string to_text(const Extents& extents) {
  std::string words;
  for (std::size_t dim = 0; dim < extents.size(); ++dim) words += text(dim == 0 ? "" : " x ", extents[dim]);
  return words.empty() ? "()" : words;
}

std::string to_text(const Box& box) {
  std::string words = "[";
  for (std::size_t dim = 0; dim < box.at.size(); ++dim) {
    words += text(dim == 0 ? "" : ", ", box.at[dim], ':', box.end(dim));
  }
  return words + ']';
}

}  // namespace monarch::tensor
