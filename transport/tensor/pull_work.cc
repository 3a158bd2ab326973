#include "transport/tensor/pull_work.h"

#include <algorithm>
#include <optional>

#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

Result<const TensorKind*> find_tensor(const Index& index, const std::string& name, const PullPlace& place) {
  const TensorKind* const there = index.find(name);
  if (there != nullptr) return there;
  std::vector<std::string> names;
  for (const TensorKind& one : index.tensors) names.push_back(one.name);
  return Error{ErrorCode::kInvalid,
               text(place.name(), " has no tensor ", printable(name), nearest_or_all(name, names))};
}

Status check_fit(const Index& index, const PullPart& part, const PullPlace& place) {
  MONARCH_ASSIGN(const TensorKind* const there, find_tensor(index, part.tensor.name, place));
  if (*there == part.tensor) return {};
  return Error{ErrorCode::kInvalid, text("tensor ", printable(part.tensor.name), " of ", place.name(), " is ",
                                         to_text(there->dtype), ' ', to_text(there->shape), ", and is wanted as ",
                                         to_text(part.tensor.dtype), ' ', to_text(part.tensor.shape))};
}

std::uint32_t number_of(const Index& index, const std::string& tensor) {
  return static_cast<std::uint32_t>(index.find(tensor) - index.tensors.data());
}

}  // namespace

std::string PullPlace::name() const { return text(publication, " of ", mesh); }

Result<PullWork> make_work(const Index& index, const std::map<std::uint32_t, Card>& cards, const PullPlace& place,
                           const std::vector<PullPart>& parts) {
  std::map<std::uint32_t, std::vector<Shard>> shards;  // by tensor, of those that are wanted
  for (const PullPart& part : parts) {
    MONARCH_TRY(check_fit(index, part, place));
    shards[number_of(index, part.tensor.name)];
  }
  for (const TensorPart& part : index.parts) {
    const auto wanted = shards.find(part.tensor);
    if (wanted == shards.end()) continue;
    const bool near = cards.at(part.owner).machine == place.ways.machine;
    // Of copies elsewhere readers take different ones.
    const std::uint32_t spread = (part.owner + place.reader.rank) % 1'024;
    wanted->second.push_back(
        {.box = part.box, .owner = part.owner, .offset = part.offset, .preference = near ? 0 : 1 + spread});
  }
  PullWork all;
  for (const PullPart& part : parts) {
    auto copies = make_plan(shards[number_of(index, part.tensor.name)], {{.box = part.box, .strides = part.strides}},
                            element_bytes(part.tensor.dtype));
    if (!copies.ok()) {
      return Error{copies.error().code, text("tensor ", printable(part.tensor.name), ": ", copies.error().message)};
    }
    for (const Copy& copy : *copies) {
      LaneWork& work = all.by_owner[copy.owner];
      append_pieces(copy, part.data, work.pieces);
      work.bytes += copy.bytes();
      std::uint64_t end = copy.source + copy.row;
      for (std::size_t loop = 0; loop < copy.depth; ++loop)
        end += (copy.loops[loop].count - 1) * copy.loops[loop].source;
      work.slot_bytes = std::max(work.slot_bytes, end);
      all.bytes += copy.bytes();
    }
  }
  return all;
}

Result<MappedTensor> find_mapped(const Index& index, const std::map<std::uint32_t, Card>& cards, const PullPlace& place,
                                 const std::string& tensor) {
  MONARCH_ASSIGN(const TensorKind* const kind, find_tensor(index, tensor, place));
  const std::uint32_t number = number_of(index, tensor);
  std::optional<std::uint32_t> elsewhere;
  for (const TensorPart& part : index.parts) {
    if (part.tensor != number || part.box != whole(kind->shape)) continue;
    if (cards.at(part.owner).machine != place.ways.machine) {
      elsewhere = part.owner;
      continue;
    }
    const std::uint64_t bytes = elements(kind->shape).value_or(0) * element_bytes(kind->dtype);
    return MappedTensor{.kind = *kind, .owner = part.owner, .offset = part.offset, .bytes = bytes};
  }
  const std::string name = text("tensor ", printable(tensor), " of ", place.name());
  if (elsewhere) {
    return Error{ErrorCode::kNotFound, text(name, " cannot be mapped: ", place.mesh, '/', *elsewhere,
                                            ", which has all of it, is on another machine")};
  }
  return Error{ErrorCode::kNotFound, text(name, " cannot be mapped: no rank has all of it")};
}

std::vector<VerbsDestination::Span> spans_of(const std::vector<PullPart>& parts) {
  std::vector<VerbsDestination::Span> spans;
  for (const PullPart& part : parts) {
    std::uint64_t bytes = element_bytes(part.tensor.dtype);
    for (std::size_t dim = 0; dim < part.box.size.size(); ++dim) {
      if (part.box.size[dim] > 0) bytes += (part.box.size[dim] - 1) * part.strides[dim];
    }
    spans.push_back({part.data, is_empty(part.box) ? 0 : bytes});
  }
  return spans;
}

}  // namespace monarch::tensor
