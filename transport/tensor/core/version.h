#pragma once

// VersionId: which version of a publication. Numbers rise within a generation of its gang; one that is started again
// may begin at an earlier one, from a checkpoint.
//
// Thread: values.

#include <compare>
#include <cstdint>

#include <monarch/fields.hpp>

namespace monarch::tensor {

struct VersionId {
  std::uint64_t generation = 0;
  std::uint64_t number = 0;
  auto operator<=>(const VersionId&) const = default;
};
MONARCH_FIELDS(VersionId, generation, number)

// Who is connected to an owner, as that counts them.
using LinkNumber = std::uint64_t;

}  // namespace monarch::tensor
