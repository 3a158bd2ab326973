#pragma once

// VerbsDestination: the memory that a pull reads into, as the device of this process knows it: from the first lane that
// wants it, until the pull goes.
//
// Thread: the pull's. Lifetime: longer than that of the lanes that READ into it.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/result.h"
#include "transport/tensor/verbs/verbs.h"

namespace monarch::tensor {

class VerbsDestination {
 public:
  struct Span {
    char* start = nullptr;
    std::uint64_t bytes = 0;
  };

  VerbsDestination(VerbsEnd end, std::vector<Span> spans) : end_(std::move(end)), spans_(std::move(spans)) {}

  // nullptr: there is none.
  VerbsDevice* device() const { return end_.device.get(); }
  const std::string& why_not() const { return end_.why_not; }
  std::uint64_t short_row() const { return end_.short_row; }
  // All of it, once.
  Status know();
  // Of memory that is within it.
  std::uint32_t key_of(const char* at) const;

 private:
  const VerbsEnd end_;
  const std::vector<Span> spans_;
  std::optional<Status> known_;
  std::map<const char*, std::unique_ptr<VerbsMemory>> memory_;  // by its last byte
};

}  // namespace monarch::tensor
