#pragma once

// Groups: ranks of several meshes that meet under a name. The first of their list holds the group, and counts its
// epochs: one is what all have called for, and it ends with whoever leaves it.
//
// Thread: values.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <monarch/fields.hpp>

namespace monarch::tensor {

inline constexpr std::size_t kMostMembers = 65'536;
inline constexpr std::size_t kMostMemberRuns = 4'096;
inline constexpr std::size_t kOfferBytes = 1'024;

struct GroupMember {
  std::string mesh;
  std::uint32_t rank = 0;
  auto operator<=>(const GroupMember&) const = default;
  std::string name() const;  // "generator/2"
};

// Neighbours of one mesh.
struct MemberRun {
  std::string mesh;
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  bool operator==(const MemberRun&) const = default;
};
MONARCH_FIELDS(MemberRun, mesh, first, count)

// A list of members, each once: the place in it is a member's rank in the group.
class GroupMembers {
 public:
  GroupMembers() = default;
  // As another has said them; nothing: they are none, too many, or one of them is there twice.
  static std::optional<GroupMembers> read(const std::vector<MemberRun>& runs);

  // Behind the others. False: it is there already, or there are as many as may be.
  bool add(const GroupMember& member);

  std::uint32_t size() const { return size_; }
  GroupMember at(std::uint32_t index) const;
  std::optional<std::uint32_t> find(const GroupMember& member) const;
  // One list has one form.
  const std::vector<MemberRun>& runs() const { return runs_; }
  // "trainer/0, generator/0 to 3"
  std::string text() const;
  bool operator==(const GroupMembers&) const = default;

 private:
  std::vector<MemberRun> runs_;
  std::uint32_t size_ = 0;
};

// Which of the times that a group has met: they rise.
struct GroupEpoch {
  std::uint64_t generation = 0;  // of the first member
  std::uint64_t count = 0;       // in that
  auto operator<=>(const GroupEpoch&) const = default;
};
MONARCH_FIELDS(GroupEpoch, generation, count)

// What the first member gives all of an epoch.
struct GroupOffer {
  std::string address;     // numeric, of its host for others
  std::uint16_t port = 0;  // that it holds there; 0: none
  std::string bytes;       // for whoever makes something of the epoch; kOfferBytes at most
  bool operator==(const GroupOffer&) const = default;
};

// What all members of an epoch are told.
struct GroupMeeting {
  GroupEpoch epoch;
  std::vector<std::uint64_t> generations;  // of each
  GroupOffer offer;
  bool operator==(const GroupMeeting&) const = default;
};

}  // namespace monarch::tensor
