#pragma once

// The identities of the control plane, each a type of its own so that one cannot be passed for another. All are values.

#include <array>
#include <compare>
#include <cstdint>
#include <string>

namespace monarch {

template <class Tag, class Int>
class StrongId {
 public:
  constexpr StrongId() = default;
  explicit constexpr StrongId(Int value) : value_(value) {}
  constexpr Int value() const { return value_; }
  constexpr auto operator<=>(const StrongId&) const = default;

 private:
  Int value_{};
};

using HostId = StrongId<struct HostIdTag, std::uint32_t>;  // index into the job's pool, in order of writing
using MeshId = StrongId<struct MeshIdTag, std::uint32_t>;  // index into the spec's meshes, in order of writing
using Rank = StrongId<struct RankTag, std::uint32_t>;      // row-major index within its mesh
using Term = StrongId<struct TermTag, std::uint64_t>;      // the supervisor's incarnation; 0 is none
using GangId = StrongId<struct GangIdTag, std::uint32_t>;  // index of a gang within its mesh

// A rank of a job: a slot that survives the replacement of its process.
struct RankId {
  MeshId mesh;
  Rank rank;
  constexpr auto operator<=>(const RankId&) const = default;
};

// A gang's incarnation: (term, counter), compared in that order. The counter never resets; users see it.
struct Generation {
  Term term;
  std::uint64_t counter = 0;
  constexpr auto operator<=>(const Generation&) const = default;
};

// One process of a rank: there is never more than one for an incarnation (I4).
struct Incarnation {
  RankId rank;
  Generation generation;
  constexpr auto operator<=>(const Incarnation&) const = default;
};

// 128 random bits; what the wire, environments and cgroups carry.
struct JobUuid {
  std::array<std::uint8_t, 16> bytes{};
  auto operator<=>(const JobUuid&) const = default;
  std::string to_text() const;  // 32 hex digits
};

}  // namespace monarch
