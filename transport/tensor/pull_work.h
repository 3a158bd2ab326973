#pragma once

// make_work(): what a pull fetches of which owner, by what is published and what is wanted of it.
//
// Thread: pure functions.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/tensor/core/card.h"
#include "transport/tensor/core/hello.h"
#include "transport/tensor/core/index.h"
#include "transport/tensor/lane.h"
#include "transport/tensor/link_ways.h"
#include "transport/tensor/verbs/verbs_destination.h"

namespace monarch::tensor {

// A part of a tensor, and memory for it.
struct PullPart {
  TensorKind tensor;
  Box box;
  char* data = nullptr;
  Extents strides;           // in bytes
  int device = kHostMemory;  // whose memory it is: the GPU's
};

struct PullPlace {
  LinkRank reader;
  std::string mesh;  // whose ranks publish it
  std::string publication;
  LinkWays ways;
  VerbsEnd verbs{};

  // "weights of trainer"
  std::string name() const;
};

struct PullWork {
  std::map<std::uint32_t, LaneWork> by_owner;  // ranks
  std::uint64_t bytes = 0;
};

// `cards`: of the owners that the index has. kInvalid: what is wanted does not fit, or its plan would take too much;
// kNotFound: nobody has some of it; kTimeout: there is no more time.
Result<PullWork> make_work(const Index& index, const std::map<std::uint32_t, Card>& cards, const PullPlace& place,
                           const std::vector<PullPart>& parts, PlanBudget& budget);

// All of a tensor, as one owner of this machine has it in his slot, which is mapped.
struct MappedTensor {
  TensorKind kind;
  std::uint32_t owner = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};
// kInvalid: there is no such tensor; kNotFound: no rank of this machine has all of it.
Result<MappedTensor> find_mapped(const Index& index, const std::map<std::uint32_t, Card>& cards, const PullPlace& place,
                                 const std::string& tensor);

// From the first byte of each part in memory of the host to its last.
std::vector<VerbsDestination::Span> spans_of(const std::vector<PullPart>& parts);

}  // namespace monarch::tensor
