#pragma once

// Lane: the way that the bytes of one owner take to a reader, once there is a link: his slot, mapped (shm_lane.h), his
// memory through a network card (verbs/verbs_lane.h), or the link itself (tcp_lane.h). It is told what to fetch, and
// has then either all of it, and the owner's word after that, or its link has ended. It waits for nothing: the pull
// polls for all its lanes.
//
// Thread: the pull's. Lifetime: within that of the memory that is read into.

#include <poll.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/tensor/core/plan.h"
#include "transport/tensor/core/version.h"

namespace monarch::tensor {

enum class LaneKind : std::uint8_t { kShm, kVerbs, kTcp };
constexpr const char* lane_name(LaneKind kind) {
  switch (kind) {
    case LaneKind::kShm: return "shm";
    case LaneKind::kVerbs: return "verbs";
    case LaneKind::kTcp: return "tcp";
  }
  return "";
}

inline constexpr int kHostMemory = -1;  // among GPUs, as the process counts them

// Rows that are fetched together, of at most kPieceBytes unless it is less than two rows.
struct Piece {
  std::uint64_t source = 0;  // in the slot
  char* destination = nullptr;
  std::uint64_t row = 0;  // bytes
  std::uint32_t rows = 1;
  std::uint64_t source_pitch = 0;
  std::uint64_t destination_pitch = 0;
  int device = kHostMemory;  // whose memory the destination is: the GPU's

  std::uint64_t bytes() const { return row * rows; }
};
inline constexpr std::uint64_t kPieceBytes = 1U << 20U;
inline constexpr std::uint64_t kOwnersWordBytes = 4'096;  // behind what an owner says to a lane

// `to`: what the copy's destination counts from, memory of `device`.
void append_pieces(const Copy& copy, char* to, int device, std::vector<Piece>& pieces);

// What is fetched of one owner.
struct LaneWork {
  std::vector<Piece> pieces;
  std::uint64_t bytes = 0;
  std::uint64_t slot_bytes = 0;  // that his slot has at least
};

class Lane {
 public:
  Lane() = default;
  Lane(const Lane&) = delete;
  Lane& operator=(const Lane&) = delete;
  virtual ~Lane() = default;

  virtual LaneKind kind() const = 0;
  // Nothing of an earlier fetch is under way. `work` stays as it is until stop().
  virtual void begin(const VersionId& version, const LaneWork& work) = 0;
  // It has something to do without waiting.
  virtual bool is_busy() const = 0;
  virtual void poll_for(std::vector<pollfd>& descriptors) const = 0;
  // As far as it can without waiting. kBusy: its link has ended. kInvalid: what its owner says is none; the message
  // says what.
  virtual Status go_on() = 0;
  // After the last byte, the owner's word; nothing: it is not all here.
  virtual std::optional<std::uint64_t> word() = 0;
  // The owner hears that the version is read no more.
  virtual void say_read(const VersionId& version, bool whole) = 0;
  // Nothing is under way any more, and nothing is written into the destination. False: the lane is of no more use.
  [[nodiscard]] virtual bool stop() = 0;
};

}  // namespace monarch::tensor
