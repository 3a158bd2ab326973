#pragma once

// Destination: the memory that a pull reads into, as its lanes have it. A lane asks for room for a piece, fills it, and
// says so. Memory of the host is its own room. Of GPUs, which a lane cannot write, there is another
// (device_destination.h): its rooms are few, and where memory that is read is known to the driver it copies straight
// from there.
//
// Thread: the pull's. Lifetime: longer than that of the lanes.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "transport/base/result.h"
#include "transport/tensor/cuda/driver.h"
#include "transport/tensor/lane.h"

namespace monarch::tensor {

class Destination {
 public:
  // Rows of a piece, each `pitch` bytes behind the one before it.
  struct Room {
    char* at = nullptr;
    std::uint64_t pitch = 0;
  };
  // Up to where something was copied.
  using Mark = std::uint64_t;

  Destination() = default;
  Destination(const Destination&) = delete;
  Destination& operator=(const Destination&) = delete;
  virtual ~Destination() = default;

  // Nothing: there is none now; what is filled leaves some, which go_on() finds.
  virtual std::optional<Room> room(const Piece& piece) { return Room{piece.destination, piece.destination_pitch}; }
  // Everything is in it; the room is the destination's again.
  virtual void filled(const Piece& /*piece*/, const Room& /*room*/) {}
  // Nothing is written there any more, and what is in it is not wanted.
  virtual void drop(const Room& /*room*/) {}

  // The driver to which a slot that is read is to be known, so that it can be copied from without a room; nullptr:
  // none.
  virtual Cuda* pins() { return nullptr; }
  // The driver does not take such a slot.
  virtual void refused(const std::string& /*why*/) {}
  // `from`: of the piece's first row, in memory that is known to the driver. False: not now, as room() has it.
  virtual bool copy(const Piece& /*piece*/, const char* /*from*/) { return false; }
  // Behind what was copied so far, and not before, `keeps` is let go of.
  virtual Mark mark(std::shared_ptr<const void> /*keeps*/) { return 0; }
  virtual bool has_passed(Mark /*mark*/) const { return true; }

  // As far as it can without waiting. kDevice: a copy has failed, and nothing of this run will be whole.
  virtual Status go_on() { return {}; }
  virtual bool is_idle() const { return true; }
};

}  // namespace monarch::tensor
