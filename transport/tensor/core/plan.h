#pragma once

// make_plan(): which bytes of which owners' memory make up what a reader wants of a tensor. Each byte that is wanted
// is taken once, from one owner. There are no lists of elements: what two boxes have in common is one strided copy,
// and rows that lie behind each other on both sides are one.
//
// Thread: pure functions.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "transport/base/result.h"
#include "transport/tensor/core/box.h"

namespace monarch::tensor {

// A shard that an owner has, dense and row-major.
struct Shard {
  Box box;
  std::uint32_t owner = 0;
  std::uint64_t offset = 0;      // of its first byte, in the owner's memory
  std::uint32_t preference = 0;  // among shards of the same box the lowest is taken
};

// Memory of the reader for a box.
struct Place {
  Box box;
  Extents strides;           // in bytes, one for each dimension; the last is that of an element
  std::uint64_t offset = 0;  // of its first byte, in what the reader has
};

// Rows of `row` bytes, nested `loops` deep, the outermost first.
struct Copy {
  struct Loop {
    std::uint64_t count = 0;
    std::uint64_t source = 0;       // bytes from one to the next
    std::uint64_t destination = 0;  // the same
    bool operator==(const Loop&) const = default;
  };
  std::uint32_t owner = 0;
  std::size_t place = 0;          // which of the places it is for
  std::uint64_t source = 0;       // of the first row, in the owner's memory
  std::uint64_t destination = 0;  // the same, in the reader's
  std::uint64_t row = 0;
  std::array<Loop, kDims> loops{};
  std::size_t depth = 0;
  bool operator==(const Copy&) const = default;

  std::uint64_t rows() const;
  std::uint64_t bytes() const { return rows() * row; }
};

inline constexpr std::uint64_t kPlanSteps = 1ULL << 28U;  // seconds
inline constexpr std::size_t kPlanCopies = 1U << 21U;     // of one tensor, with the boxes that are open

// What plans may take together. Shards are somebody else's, who may have cut them so that each is compared with what
// every other one has left.
struct PlanBudget {
  std::uint64_t steps = kPlanSteps;  // boxes that are compared, or moved by 64
  std::function<bool()> is_over{};   // asked each 65,536 steps: there is no more time
  std::uint64_t asked_at = kPlanSteps;

  // kInvalid: there are not so many; kTimeout: it is over.
  Status spend(std::uint64_t count);
};

// kNotFound: some of a place is in no shard; the message names the first such box. All boxes are of one tensor, with
// elements of that many bytes, and within its shape. kInvalid and kTimeout: of the budget.
Result<std::vector<Copy>> make_plan(const std::vector<Shard>& shards, const std::vector<Place>& places,
                                    std::uint64_t element, PlanBudget& budget);
inline Result<std::vector<Copy>> make_plan(const std::vector<Shard>& shards, const std::vector<Place>& places,
                                           std::uint64_t element) {
  PlanBudget budget;
  return make_plan(shards, places, element, budget);
}

// kInvalid: memory with such strides is not written row by row; the message says why. `shape`: of the box.
Status check_strides(const Extents& shape, const Extents& strides, std::uint64_t element);
// Of dense memory, row-major.
Extents dense_strides(const Extents& shape, std::uint64_t element);

// Calls run(source, destination) with the offsets of each row.
template <class Run>
void for_each_row(const Copy& copy, const Run& run) {
  std::array<std::uint64_t, kDims> at{};
  std::uint64_t source = copy.source;
  std::uint64_t destination = copy.destination;
  for (std::uint64_t left = copy.rows(); left > 0; --left) {
    run(source, destination);
    for (std::size_t loop = copy.depth; loop-- > 0;) {
      const Copy::Loop& one = copy.loops[loop];
      source += one.source;
      destination += one.destination;
      if (++at[loop] < one.count) break;
      source -= one.count * one.source;
      destination -= one.count * one.destination;
      at[loop] = 0;
    }
  }
}

// Calls run(source, destination, loop) with the offsets of the first row of each run: `loop` says how many rows are
// in a run, and how far each lies behind the one before it.
template <class Run>
void for_each_run(const Copy& copy, const Run& run) {
  Copy firsts = copy;
  Copy::Loop loop{.count = 1, .source = copy.row, .destination = copy.row};
  if (firsts.depth > 0) loop = firsts.loops[--firsts.depth];
  for_each_row(firsts, [&](std::uint64_t source, std::uint64_t destination) { run(source, destination, loop); });
}

}  // namespace monarch::tensor
