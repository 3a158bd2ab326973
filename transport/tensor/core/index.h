#pragma once

// Index: what a gang publishes under one name: which tensors, of what shape, and who has which part of them where. It
// is fixed by the first version of a generation. Publishers tell theirs to the gang's registrar, which gives readers
// that of all.
//
// Thread: values.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <monarch/codec.hpp>

#include "transport/base/result.h"
#include "transport/tensor/core/box.h"
#include "transport/tensor/core/dtype.h"
#include "transport/tensor/core/plan.h"

namespace monarch::tensor {

inline constexpr std::size_t kTensorNameBytes = 128;
inline constexpr std::size_t kIndexParts = 1U << 21U;     // 32,768 tensors that lie in rows at 64 ranks
inline constexpr std::size_t kIndexBytes = 64U << 20U;    // as it travels
inline constexpr std::size_t kIndexMemory = 384U << 20U;  // of its lists, in whoever reads it
inline constexpr std::uint64_t kSlotHeaderBytes = 4096;   // before the first tensor of a slot
inline constexpr std::uint64_t kTensorAlignment = 256;    // of each in a slot

// A tensor as all that have a part of it must say it is.
struct TensorKind {
  std::string name;
  Dtype dtype;
  Extents shape;
  bool operator==(const TensorKind&) const = default;
};
MONARCH_FIELDS(TensorKind, name, dtype, shape)

// What one publisher has of it.
struct TensorPart {
  std::uint32_t tensor = 0;  // its place among those of the index
  std::uint32_t owner = 0;   // the rank that has it, within the mesh
  Box box;
  std::uint64_t offset = 0;  // of its first byte, from the beginning of the slot
  bool operator==(const TensorPart&) const = default;
};
MONARCH_FIELDS(Box, at, size)
MONARCH_FIELDS(TensorPart, tensor, owner, box, offset)

struct Index {
  std::vector<TensorKind> tensors;
  std::vector<TensorPart> parts;
  bool operator==(const Index&) const = default;
};
// Nothing of a list is read before its items are counted and have room in kIndexMemory: the smallest part takes 20
// times as much memory as it has bytes on the wire.
void codec_write(codec::Writer& writer, const Index& index);
bool codec_read(codec::Reader& reader, Index& index);

// Reads a list of at most `memory` bytes, and takes what it has from them.
template <class T>
bool read_within(codec::Reader& reader, std::vector<T>& list, std::size_t& memory) {
  list.clear();
  const auto array = reader.array();
  if (!array) return false;
  if (array.count() > memory / sizeof(T)) return reader.fail("more than anybody has memory for");
  memory -= array.count() * sizeof(T);
  list.reserve(array.count());
  for (std::size_t i = 0; i < array.count(); ++i) {
    if (!codec::read(reader, list.emplace_back())) return list.pop_back(), false;
  }
  return true;
}

// An index as it travels may have many items; a part has some twenty.
inline constexpr codec::DecodeLimits kIndexLimits{.items = 64U << 20U};

// What is wrong with an index that could not be decoded, and with which tensor or part of it: `read` is what came of
// it up to there.
std::string unreadable(const Index& read, const codec::DecodeError& error);

// Where the tensors of an index are in it, by their names. Lifetime: within that of the index.
class IndexNames {
 public:
  explicit IndexNames(const Index& index);
  // Nothing: there is none of that name.
  std::optional<std::uint32_t> find(std::string_view name) const;

 private:
  std::map<std::string_view, std::uint32_t> numbers_;
};

// kInvalid: it is none that anybody may send; the message names what is wrong. `slot_bytes`: of a publisher's slot; 0:
// of any.
Status check_index(const Index& index, std::uint64_t slot_bytes = 0);

// kInvalid: a box of such a tensor, in memory with such strides, is not one that can be read or written; the message
// names the tensor.
Status check_wanted(const TensorKind& tensor, const Box& box, const Extents& strides);

// An index that grows as its publishers tell theirs.
class IndexBuilder {
 public:
  explicit IndexBuilder(std::size_t memory = kIndexMemory) : memory_(memory) {}
  // kInvalid: it does not fit what others have told: the message names the tensor, both owners and both values.
  Status add(std::uint32_t owner, const Index& part);
  const Index& index() const { return index_; }

 private:
  const std::size_t memory_;
  Index index_;
  std::map<std::string, std::uint32_t, std::less<>> places_;
  std::vector<std::uint32_t> first_owners_;  // who told of a tensor first
};

// What a publisher puts into a slot, one behind the other.
class SlotLayout {
 public:
  // The offset of what is put there; kInvalid: it is put already, or is none. kBusy: too many.
  Result<std::uint64_t> put(const TensorKind& tensor, const Box& box, std::uint32_t owner);
  // Of a slot that has all of it, with its header.
  std::uint64_t bytes() const { return end_; }
  const Index& index() const { return index_; }
  // nullptr: it is none.
  const TensorKind* kind(std::string_view name) const;
  // The part of exactly that box; nullptr: it is none.
  const TensorPart* find(std::string_view name, const Box& box) const;

 private:
  struct Known {
    std::uint32_t tensor = 0;
    std::map<Box, std::size_t, BoxOrder> parts;
  };
  Index index_;
  std::map<std::string, Known, std::less<>> known_;
  std::uint64_t end_ = kSlotHeaderBytes;
};

}  // namespace monarch::tensor
