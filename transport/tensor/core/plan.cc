#include "transport/tensor/core/plan.h"

#include <algorithm>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

// Of each box the shard that is taken, by where they begin.
std::vector<const Shard*> distinct(const std::vector<Shard>& shards) {
  std::vector<const Shard*> sorted;
  sorted.reserve(shards.size());
  for (const Shard& shard : shards) {
    if (!is_empty(shard.box)) sorted.push_back(&shard);
  }
  const auto before = [](const Shard* one, const Shard* other) {
    if (one->box.at != other->box.at) return one->box.at < other->box.at;
    if (one->box.size != other->box.size) return one->box.size < other->box.size;
    return std::pair(one->preference, one->owner) < std::pair(other->preference, other->owner);
  };
  std::sort(sorted.begin(), sorted.end(), before);
  const auto same = [](const Shard* one, const Shard* other) { return one->box == other->box; };
  sorted.erase(std::unique(sorted.begin(), sorted.end(), same), sorted.end());
  return sorted;
}

Copy copy_of(const Box& piece, const Shard& shard, const Place& place, std::uint64_t element) {
  const Extents from = dense_strides(shard.box.size, element);
  Copy copy{.owner = shard.owner, .source = shard.offset, .destination = place.offset, .row = element};
  for (std::size_t dim = 0; dim < piece.at.size(); ++dim) {
    copy.source += (piece.at[dim] - shard.box.at[dim]) * from[dim];
    copy.destination += (piece.at[dim] - place.box.at[dim]) * place.strides[dim];
  }
  std::size_t dim = piece.at.size();
  for (; dim > 0; --dim) {
    const bool goes_on = from[dim - 1] == copy.row && place.strides[dim - 1] == copy.row;
    if (piece.size[dim - 1] != 1 && !goes_on) break;
    copy.row *= piece.size[dim - 1];
  }
  // From the innermost loop outwards; then turned round.
  for (; dim > 0; --dim) {
    const Copy::Loop loop{piece.size[dim - 1], from[dim - 1], place.strides[dim - 1]};
    if (loop.count == 1) continue;
    if (copy.depth > 0) {
      Copy::Loop& inner = copy.loops[copy.depth - 1];
      if (loop.source == inner.count * inner.source && loop.destination == inner.count * inner.destination) {
        inner.count *= loop.count;
        continue;
      }
    }
    copy.loops[copy.depth++] = loop;
  }
  std::reverse(copy.loops.begin(), copy.loops.begin() + static_cast<std::ptrdiff_t>(copy.depth));
  return copy;
}

Error too_much() {
  return {ErrorCode::kInvalid, "its parts are cut so that a plan of them would take too much time or memory"};
}

// The sweep: shards by their first index, so that those which may touch a place are neighbours.
class Sweep {
 public:
  Sweep(const std::vector<Shard>& shards, std::uint64_t element, PlanBudget& budget)
      : shards_(distinct(shards)), element_(element), budget_(budget) {
    for (const Shard* shard : shards_) {
      if (shard->box.at.size() > 0) longest_ = std::max(longest_, shard->box.size[0]);
    }
  }

  // What no shard has is left in `missing`.
  Status cover(const Place& place, std::vector<Copy>& copies, std::vector<Box>& missing) const {
    missing.clear();
    if (is_empty(place.box)) return {};
    missing.push_back(place.box);
    for (auto shard = first_of(place.box); shard != shards_.end() && !missing.empty(); ++shard) {
      if (place.box.at.size() > 0 && (*shard)->box.at[0] >= place.box.end(0)) return {};
      MONARCH_TRY(take(**shard, place, copies, missing));
    }
    return {};
  }

 private:
  using Shards = std::vector<const Shard*>;

  Shards::const_iterator first_of(const Box& box) const {
    if (box.at.size() == 0) return shards_.begin();
    const std::uint64_t from = box.at[0] < longest_ ? 0 : box.at[0] - longest_;
    return std::lower_bound(shards_.begin(), shards_.end(), from,
                            [](const Shard* shard, std::uint64_t at) { return shard->box.at[0] < at; });
  }

  Status take(const Shard& shard, const Place& place, std::vector<Copy>& copies, std::vector<Box>& missing) const {
    MONARCH_TRY(budget_.spend(1 + missing.size()));
    for (std::size_t i = 0; i < missing.size();) {
      const Box open = missing[i];
      const auto piece = intersection(open, shard.box);
      if (!piece) {
        ++i;
        continue;
      }
      MONARCH_TRY(budget_.spend(1 + (missing.size() - i) / 64));  // what lies behind it is moved
      if (copies.size() + missing.size() > kPlanCopies) return too_much();
      copies.push_back(copy_of(*piece, shard, place, element_));
      missing.erase(missing.begin() + static_cast<std::ptrdiff_t>(i));
      const auto left = without(open, *piece);  // none of it is the shard's
      missing.insert(missing.begin() + static_cast<std::ptrdiff_t>(i), left.begin(), left.end());
      i += left.size();
    }
    return {};
  }

  Shards shards_;
  std::uint64_t longest_ = 0;  // in dimension 0
  std::uint64_t element_;
  PlanBudget& budget_;
};

}  // namespace

std::uint64_t Copy::rows() const {
  std::uint64_t count = 1;
  for (std::size_t loop = 0; loop < depth; ++loop) count *= loops[loop].count;
  return count;
}

Status PlanBudget::spend(std::uint64_t count) {
  constexpr std::uint64_t kBetween = 1U << 16U;
  if (count > steps) return too_much();
  steps -= count;
  if (!is_over || asked_at - steps < kBetween) return {};
  asked_at = steps;
  if (is_over()) return Error{ErrorCode::kTimeout, "no plan of its parts was made in time"};
  return {};
}

Result<std::vector<Copy>> make_plan(const std::vector<Shard>& shards, const std::vector<Place>& places,
                                    std::uint64_t element, PlanBudget& budget) {
  const Sweep sweep(shards, element, budget);
  std::vector<Copy> copies;
  std::vector<Box> missing;
  for (std::size_t place = 0; place < places.size(); ++place) {
    const std::size_t before = copies.size();
    MONARCH_TRY(sweep.cover(places[place], copies, missing));
    for (std::size_t copy = before; copy < copies.size(); ++copy) copies[copy].place = place;
    if (!missing.empty()) return Error{ErrorCode::kNotFound, text("nobody has ", to_text(missing.front()))};
  }
  return copies;
}

Extents dense_strides(const Extents& shape, std::uint64_t element) {
  Extents strides(shape.size());
  std::uint64_t next = element;
  for (std::size_t dim = shape.size(); dim-- > 0;) {
    strides[dim] = next;
    next *= shape[dim];
  }
  return strides;
}

Status check_strides(const Extents& shape, const Extents& strides, std::uint64_t element) {
  if (strides.size() != shape.size()) {
    return Error{ErrorCode::kInvalid, text(strides.size(), " strides for ", shape.size(), " dimensions")};
  }
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] == 0) return {};
  }
  std::vector<std::size_t> dims;  // those that are stepped along
  for (std::size_t dim = 0; dim < shape.size(); ++dim) {
    if (shape[dim] > 1) dims.push_back(dim);
  }
  if (dims.empty()) return {};
  if (dims.back() + 1 == shape.size() && strides[dims.back()] != element) {
    return Error{ErrorCode::kInvalid, text("its last dimension is not dense: elements of ", element, " bytes are ",
                                           strides[dims.back()], " bytes from one to the next")};
  }
  // From the shortest step to the longest, each goes over all that the one before it goes along.
  std::sort(dims.begin(), dims.end(),
            [&](std::size_t one, std::size_t other) { return strides[one] < strides[other]; });
  std::uint64_t inside = element;
  for (const std::size_t dim : dims) {
    if (strides[dim] < inside) {
      return Error{ErrorCode::kInvalid, text("its elements lie on each other: dimension ", dim, " has a stride of ",
                                             strides[dim], " bytes, and what it steps over has ", inside)};
    }
    if (__builtin_mul_overflow(strides[dim], shape[dim], &inside)) {
      return Error{ErrorCode::kInvalid, text("dimension ", dim, " is larger than can be counted")};
    }
  }
  return {};
}

}  // namespace monarch::tensor
