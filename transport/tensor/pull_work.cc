#include "transport/tensor/pull_work.h"

#include <algorithm>
#include <optional>

#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

Error no_tensor(const Index& index, const std::string& name, const PullPlace& place) {
  std::vector<std::string> names;
  for (const TensorKind& one : index.tensors) names.push_back(one.name);
  return {ErrorCode::kInvalid, text(place.name(), " has no tensor ", printable(name), nearest_or_all(name, names))};
}

Status check_fit(const TensorKind& there, const PullPart& part, const PullPlace& place) {
  if (there == part.tensor) return {};
  return Error{ErrorCode::kInvalid, text("tensor ", printable(part.tensor.name), " of ", place.name(), " is ",
                                         to_text(there.dtype), ' ', to_text(there.shape), ", and is wanted as ",
                                         to_text(part.tensor.dtype), ' ', to_text(part.tensor.shape))};
}

// What is wanted of one tensor, and who has what of it.
struct Wanted {
  std::vector<const PullPart*> parts;
  std::vector<Place> places;  // of each part
  std::vector<Shard> shards;
};

// By tensor.
Result<std::map<std::uint32_t, Wanted>> look_up(const Index& index, const std::map<std::uint32_t, Card>& cards,
                                                const PullPlace& place, const std::vector<PullPart>& parts) {
  const IndexNames names(index);
  std::map<std::uint32_t, Wanted> wanted;
  for (const PullPart& part : parts) {
    const auto number = names.find(part.tensor.name);
    if (!number) return no_tensor(index, part.tensor.name, place);
    MONARCH_TRY(check_fit(index.tensors[*number], part, place));
    Wanted& tensor = wanted[*number];
    tensor.parts.push_back(&part);
    tensor.places.push_back({.box = part.box, .strides = part.strides});
  }
  for (const TensorPart& part : index.parts) {
    const auto tensor = wanted.find(part.tensor);
    if (tensor == wanted.end()) continue;
    const bool near = cards.at(part.owner).machine == place.ways.machine;
    // Of copies elsewhere readers take different ones.
    const std::uint32_t spread = (part.owner + place.reader.rank) % 1'024;
    tensor->second.shards.push_back(
        {.box = part.box, .owner = part.owner, .offset = part.offset, .preference = near ? 0 : 1 + spread});
  }
  return wanted;
}

// How many pieces it is.
std::size_t append(const Copy& copy, const PullPart& part, PullWork& all) {
  LaneWork& work = all.by_owner[copy.owner];
  const std::size_t before = work.pieces.size();
  append_pieces(copy, part.data, part.device, work.pieces);
  work.bytes += copy.bytes();
  std::uint64_t end = copy.source + copy.row;
  for (std::size_t loop = 0; loop < copy.depth; ++loop) end += (copy.loops[loop].count - 1) * copy.loops[loop].source;
  work.slot_bytes = std::max(work.slot_bytes, end);
  all.bytes += copy.bytes();
  return work.pieces.size() - before;
}

}  // namespace

std::string PullPlace::name() const { return text(publication, " of ", mesh); }

Result<PullWork> make_work(const Index& index, const std::map<std::uint32_t, Card>& cards, const PullPlace& place,
                           const std::vector<PullPart>& parts, PlanBudget& budget) {
  MONARCH_ASSIGN(const auto wanted, look_up(index, cards, place, parts));
  PullWork all;
  for (const auto& [number, tensor] : wanted) {
    const TensorKind& kind = index.tensors[number];
    auto copies = make_plan(tensor.shards, tensor.places, element_bytes(kind.dtype), budget);
    if (!copies.ok()) {
      return Error{copies.error().code, text("tensor ", printable(kind.name), ": ", copies.error().message)};
    }
    for (const Copy& copy : *copies) {
      MONARCH_TRY(budget.spend(1 + append(copy, *tensor.parts[copy.place], all)));
    }
  }
  return all;
}

Result<MappedTensor> find_mapped(const Index& index, const std::map<std::uint32_t, Card>& cards, const PullPlace& place,
                                 const std::string& tensor) {
  const auto found = std::find_if(index.tensors.begin(), index.tensors.end(),
                                  [&](const TensorKind& one) { return one.name == tensor; });
  if (found == index.tensors.end()) return no_tensor(index, tensor, place);
  const auto number = static_cast<std::uint32_t>(found - index.tensors.begin());
  std::optional<std::uint32_t> elsewhere;
  for (const TensorPart& part : index.parts) {
    if (part.tensor != number || part.box != whole(found->shape)) continue;
    if (cards.at(part.owner).machine != place.ways.machine) {
      elsewhere = part.owner;
      continue;
    }
    const std::uint64_t bytes = elements(found->shape).value_or(0) * element_bytes(found->dtype);
    return MappedTensor{.kind = *found, .owner = part.owner, .offset = part.offset, .bytes = bytes};
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
    if (part.device != kHostMemory) continue;
    std::uint64_t bytes = element_bytes(part.tensor.dtype);
    for (std::size_t dim = 0; dim < part.box.size.size(); ++dim) {
      if (part.box.size[dim] > 0) bytes += (part.box.size[dim] - 1) * part.strides[dim];
    }
    spans.push_back({part.data, is_empty(part.box) ? 0 : bytes});
  }
  return spans;
}

}  // namespace monarch::tensor
