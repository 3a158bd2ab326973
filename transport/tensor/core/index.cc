#include "transport/tensor/core/index.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

Error invalid(std::string words) { return {ErrorCode::kInvalid, std::move(words)}; }

// The bytes of a box of such elements; nothing: more than can be counted.
std::optional<std::uint64_t> bytes_of(const Dtype& dtype, const Extents& size) {
  const auto count = elements(size);
  std::uint64_t bytes = 0;
  if (!count || __builtin_mul_overflow(*count, element_bytes(dtype), &bytes)) return std::nullopt;
  return bytes;
}

Status check_kind(const TensorKind& tensor) {
  if (tensor.name.empty() || tensor.name.size() > kTensorNameBytes) {
    return invalid(text("a tensor's name has 1 to ", kTensorNameBytes, " bytes, and not ", tensor.name.size()));
  }
  if (element_bytes(tensor.dtype) == 0) {
    return invalid(
        text("tensor ", printable(tensor.name), ": elements of ", to_text(tensor.dtype), " do not lie in whole bytes"));
  }
  if (!bytes_of(tensor.dtype, tensor.shape)) {
    return invalid(
        text("tensor ", printable(tensor.name), ": ", to_text(tensor.shape), " is more than can be counted"));
  }
  return {};
}

Status check_part(const TensorKind& tensor, const Box& box) {
  if (is_within(box, tensor.shape)) return {};
  return invalid(text("tensor ", printable(tensor.name), ": ", to_text(box), " is outside of ", to_text(tensor.shape)));
}

std::size_t memory_of(std::size_t tensors, std::size_t parts) {
  return tensors * sizeof(TensorKind) + parts * sizeof(TensorPart);
}

}  // namespace

void codec_write(codec::Writer& writer, const Index& index) {
  const auto array = writer.array(2);
  codec::write(writer, index.tensors);
  codec::write(writer, index.parts);
}

bool codec_read(codec::Reader& reader, Index& index) {
  const auto array = reader.array();
  if (!array) return false;
  if (array.count() < 2) return reader.fail("a struct misses fields");
  std::size_t memory = kIndexMemory;
  if (!read_within(reader, index.tensors, memory) || !read_within(reader, index.parts, memory)) return false;
  for (std::size_t field = 2; field < array.count(); ++field) {
    if (!reader.skip()) return false;
  }
  return true;
}

std::string unreadable(const Index& read, const codec::DecodeError& error) {
  std::string place = text("tensor ", read.tensors.size());
  if (!read.parts.empty()) {
    place = text("part ", read.parts.size());
    const std::uint32_t last = read.parts.back().tensor;
    if (last < read.tensors.size()) place += text(", after one of tensor ", printable(read.tensors[last].name));
  } else if (!read.tensors.empty()) {
    place += text(", after ", printable(read.tensors.back().name));
  }
  return text("its index cannot be read at ", place, ": ", error.what, " (byte ", error.offset, ')');
}

IndexNames::IndexNames(const Index& index) {
  for (std::uint32_t number = 0; number < index.tensors.size(); ++number) {
    numbers_.emplace(index.tensors[number].name, number);
  }
}

std::optional<std::uint32_t> IndexNames::find(std::string_view name) const {
  const auto found = numbers_.find(name);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

Status check_index(const Index& index, std::uint64_t slot_bytes) {
  if (index.parts.size() > kIndexParts || index.tensors.size() > kIndexParts) {
    return invalid(text("more than ", kIndexParts, " parts of tensors"));
  }
  std::set<std::string_view> names;
  for (const TensorKind& tensor : index.tensors) {
    MONARCH_TRY(check_kind(tensor));
    if (!names.insert(tensor.name).second) return invalid(text("two tensors are called ", printable(tensor.name)));
  }
  for (const TensorPart& part : index.parts) {
    if (part.tensor >= index.tensors.size()) return invalid(text("a part of tensor ", part.tensor, ", which is none"));
    const TensorKind& tensor = index.tensors[part.tensor];
    MONARCH_TRY(check_part(tensor, part.box));
    const std::uint64_t bytes = bytes_of(tensor.dtype, part.box.size).value_or(0);
    std::uint64_t end = 0;
    const bool counts = !__builtin_add_overflow(part.offset, bytes, &end);
    if (!counts || part.offset < kSlotHeaderBytes || (slot_bytes > 0 && end > slot_bytes)) {
      return invalid(text("tensor ", printable(tensor.name), ": ", to_text(part.box), " of rank ", part.owner,
                          " is not within its slot"));
    }
  }
  return {};
}

Status check_wanted(const TensorKind& tensor, const Box& box, const Extents& strides) {
  MONARCH_TRY(check_kind(tensor));
  MONARCH_TRY(check_part(tensor, box));
  const Status rows = check_strides(box.size, strides, element_bytes(tensor.dtype));
  return rows.ok() ? rows : invalid(text("tensor ", printable(tensor.name), ": ", rows.error().message));
}

Status IndexBuilder::add(std::uint32_t owner, const Index& part) {
  MONARCH_TRY(check_index(part));
  if (index_.parts.size() + part.parts.size() > kIndexParts) {
    return invalid(text("more than ", kIndexParts, " parts of tensors"));
  }
  for (const TensorKind& tensor : part.tensors) {
    const auto known = places_.find(tensor.name);
    if (known == places_.end() || index_.tensors[known->second] == tensor) continue;
    const TensorKind& first = index_.tensors[known->second];
    const auto words = [](const TensorKind& one) { return text(to_text(one.dtype), ' ', to_text(one.shape)); };
    return invalid(text("tensor ", printable(tensor.name), " is ", words(first), " at rank ",
                        first_owners_[known->second], " and ", words(tensor), " at rank ", owner));
  }
  const auto fresh_tensors = std::count_if(part.tensors.begin(), part.tensors.end(),
                                           [this](const TensorKind& one) { return !places_.contains(one.name); });
  const std::size_t tensors = index_.tensors.size() + static_cast<std::size_t>(fresh_tensors);
  if (memory_of(tensors, index_.parts.size() + part.parts.size()) > memory_) {
    return invalid(text(tensors, " tensors of this publication, with those of rank ", owner,
                        ", are more than anybody has memory for"));
  }
  std::vector<std::uint32_t> places;
  for (const TensorKind& tensor : part.tensors) {
    const auto [known, fresh] = places_.try_emplace(tensor.name, static_cast<std::uint32_t>(index_.tensors.size()));
    places.push_back(known->second);
    if (!fresh) continue;
    index_.tensors.push_back(tensor);
    first_owners_.push_back(owner);
  }
  for (TensorPart one : part.parts) {
    one.tensor = places[one.tensor];
    one.owner = owner;
    index_.parts.push_back(one);
  }
  return {};
}

Result<std::uint64_t> SlotLayout::put(const TensorKind& tensor, const Box& box, std::uint32_t owner) {
  MONARCH_TRY(check_kind(tensor));
  MONARCH_TRY(check_part(tensor, box));
  if (index_.parts.size() >= kIndexParts) return Error{ErrorCode::kBusy, text("more than ", kIndexParts, " parts")};
  if (find(tensor.name, box) != nullptr) {
    return invalid(text("tensor ", printable(tensor.name), ": ", to_text(box), " is put twice"));
  }
  const std::uint64_t bytes = bytes_of(tensor.dtype, box.size).value_or(0);
  constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max() - kTensorAlignment;
  if (bytes > kMost - end_) return invalid(text("tensor ", printable(tensor.name), ": a slot cannot have so much"));
  const auto place = static_cast<std::uint32_t>(index_.tensors.size());
  const auto [known, fresh] = known_.try_emplace(tensor.name, Known{place, {}});
  if (fresh) index_.tensors.push_back(tensor);
  const TensorKind& kind = index_.tensors[known->second.tensor];
  if (kind != tensor) {
    return invalid(text("tensor ", printable(tensor.name), " is ", to_text(kind.dtype), ' ', to_text(kind.shape),
                        " and is put as ", to_text(tensor.dtype), ' ', to_text(tensor.shape)));
  }
  known->second.parts.emplace(box, index_.parts.size());
  index_.parts.push_back({.tensor = known->second.tensor, .owner = owner, .box = box, .offset = end_});
  return std::exchange(end_, (end_ + bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment);
}

const TensorKind* SlotLayout::kind(std::string_view name) const {
  const auto known = known_.find(name);
  return known == known_.end() ? nullptr : &index_.tensors[known->second.tensor];
}

const TensorPart* SlotLayout::find(std::string_view name, const Box& box) const {
  const auto known = known_.find(name);
  if (known == known_.end()) return nullptr;
  const auto part = known->second.parts.find(box);
  return part == known->second.parts.end() ? nullptr : &index_.parts[part->second];
}

}  // namespace monarch::tensor
