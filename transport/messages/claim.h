#pragma once

// Claims: a process at the door of a post asks for idle slots of a mesh, has them, and lets them go. What it asks is
// part of what its host's post reports until it is answered, so that neither a post, a daemon nor a supervisor that is
// started again loses it; a claim that was asked for twice is one.
//
// Thread: values.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/messages/message.h"
#include "transport/messages/roster.h"

namespace monarch {

// What a process says of itself at each connection that has claims: a random number that is its own.
using ClaimOwner = StrongId<struct ClaimOwnerTag, std::uint64_t>;
using ClaimId = StrongId<struct ClaimIdTag, std::uint64_t>;  // from 1, over the job

// Slots that a process wants: all of them or none.
struct SlotWish {
  std::string mesh;                                          // empty: the first that is idle and has slots there
  std::vector<std::string> hosts;                            // by name; empty: the one where this is said
  std::uint32_t count = 1;                                   // on each of them
  std::string name;                                          // for people
  std::vector<RosterDim> dims;                               // likewise
  std::vector<std::string> program;                          // empty: the mesh's
  std::string workdir;                                       // empty: the mesh's
  std::map<std::string, std::string> env;                    // of all their ranks, over the mesh's
  std::vector<std::map<std::string, std::string>> rank_env;  // of each, in order; or empty
  bool operator==(const SlotWish&) const = default;
};
MONARCH_FIELDS(SlotWish, mesh, hosts, count, name, dims, program, workdir, env, rank_env)

inline constexpr std::size_t kClaimBytes = 48U << 10U;  // of all texts of a wish, each with one byte more
inline constexpr std::size_t kClaimDims = 8;

// What counts of kClaimBytes.
inline std::size_t text_bytes(const std::string& text) { return text.size() + 1; }
inline std::size_t text_bytes(const RosterDim& dim) { return text_bytes(dim.name); }
inline std::size_t text_bytes(const std::map<std::string, std::string>& env) {
  std::size_t bytes = 1;
  for (const auto& [name, value] : env) bytes += text_bytes(name) + text_bytes(value);
  return bytes;
}
template <class T>
std::size_t text_bytes(const std::vector<T>& list) {
  std::size_t bytes = 0;
  for (const T& one : list) bytes += text_bytes(one);
  return bytes;
}
inline std::size_t text_bytes(const SlotWish& wish) {
  return text_bytes(wish.mesh) + text_bytes(wish.hosts) + text_bytes(wish.name) + text_bytes(wish.dims) +
         text_bytes(wish.program) + text_bytes(wish.workdir) + text_bytes(wish.env) + text_bytes(wish.rank_env);
}

// process → post, by a connection that calls, and in the post's report until it is answered.
struct PostWish {
  std::uint64_t number = 0;  // the process counts them, from 1, and never uses one twice
  ClaimOwner owner;          // its own, as in its later hellos
  std::uint64_t let_go = 0;  // the number of the wish whose claim ends; 0: it wants slots
  SlotWish what;             // of one that lets go: nothing
  bool operator==(const PostWish&) const = default;
};
MONARCH_MESSAGE(PostWish, 171, number, owner, let_go, what)

// post → process.
struct PostGranted {
  std::uint64_t number = 0;  // of its wish
  std::string error;         // why nothing was claimed; empty: it is done
  std::string mesh;
  std::vector<Rank> ranks;  // host after host
  bool operator==(const PostGranted&) const = default;
};
MONARCH_MESSAGE(PostGranted, 172, number, error, mesh, ranks)

// supervisor → post, by its daemon. It may come again.
struct ClaimAnswer {
  ClaimOwner owner;
  PostGranted granted;
};
MONARCH_MESSAGE(ClaimAnswer, 179, owner, granted)

inline constexpr std::size_t kWishesOfADoor = 256;  // that wait
inline constexpr std::size_t kWishesReported = 64;  // at a time, the first ones
inline constexpr std::size_t kOwnersReported = 4'096;

}  // namespace monarch
