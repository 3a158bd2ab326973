#pragma once

// DeviceDestination: memory of GPUs, and of the host beside it, that a pull reads into. What lanes bring comes into
// rooms of the host's memory, and goes on from there on the caller's stream; a slot of this machine that the driver
// knows needs none. Events say what has arrived; GPUs have no descriptor that could be polled for that.
//
// Thread, lifetime: a Destination's.

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transport/tensor/destination.h"
#include "transport/tensor/verbs/verbs_destination.h"

namespace monarch::tensor {

class DeviceDestination : public Destination {
 public:
  static constexpr std::size_t kRooms = 16;  // of kPieceBytes each
  // From slots, under way: a driver that has a thousand or so to do on a stream has the caller of the next one wait.
  static constexpr std::uint64_t kCopies = 256;

  // `parts`: spans of the host's memory among what is pulled. `name`: of what is pulled.
  DeviceDestination(SharedCuda cuda, CudaEnd end, std::string name, std::vector<VerbsDestination::Span> parts);
  // What is under way then keeps its memory for ever.
  ~DeviceDestination() override;

  // A run on that stream of each GPU begins. kInvalid: nothing may be copied on it.
  Status begin(const std::set<int>& devices, std::uint64_t stream);
  // Where rows are READ to.
  std::vector<VerbsDestination::Span> spans() const;
  // For whom it waits, in words: "a stream of GPU 0".
  std::string waits_for() const;
  // Of some of it no event says when it ends.
  bool is_lost() const { return lost_; }
  // What is under way is nobody's any more, and keeps its memory for ever; one line says so.
  void give_up();

  std::optional<Room> room(const Piece& piece) override;
  void filled(const Piece& piece, const Room& room) override;
  void drop(const Room& room) override;
  Cuda* pins() override { return end_.pins && !refused_ ? cuda_.get() : nullptr; }
  // The others are not tried.
  void refused(const std::string& why) override;
  bool copy(const Piece& piece, const char* from) override;
  Mark mark(std::shared_ptr<const void> keeps) override;
  bool has_passed(Mark mark) const override { return mark <= passed_; }
  Status go_on() override;
  bool is_idle() const override { return under_way_.empty(); }

 private:
  static constexpr std::size_t kRoomBytes = kRooms * kPieceBytes;
  struct Unmap {
    void operator()(char* memory) const;
  };
  // Memory of rooms, with what the driver knows of it; that ends first.
  struct Rooms {
    std::unique_ptr<char, Unmap> memory;
    std::unique_ptr<CudaPin> pin;
  };
  // In the order in which they were enqueued.
  struct UnderWay {
    std::unique_ptr<CudaEvent> event;  // nullptr: there is none
    int device = 0;
    char* room = nullptr;  // that it is a copy from, else a mark
    Mark mark = 0;
    std::shared_ptr<const void> keeps;
    bool has_failed = false;   // it is not under way
    std::uint64_t copies = 0;  // from slots
  };

  CudaStream stream_of(int device) const { return {device, stream_}; }
  void copy_to_device(const Piece& piece, const char* from, std::uint64_t pitch);
  // Behind all that is enqueued on the stream of its GPU.
  void record(UnderWay one);
  void failed(const Error& error);

  const SharedCuda cuda_;
  const CudaEnd end_;
  const std::string name_;
  const std::vector<VerbsDestination::Span> parts_;
  std::uint64_t stream_ = 0;
  std::shared_ptr<Rooms> rooms_;  // nullptr: it was given up
  std::vector<char*> free_;
  std::deque<UnderWay> under_way_;
  Mark marked_ = 0;
  Mark passed_ = 0;
  std::set<int> copied_;        // GPUs, since the last mark
  std::uint64_t unmarked_ = 0;  // copies, since then
  std::uint64_t copies_ = 0;    // that are under way
  Status failure_;              // of this run
  bool lost_ = false;
  bool refused_ = false;
};

}  // namespace monarch::tensor
