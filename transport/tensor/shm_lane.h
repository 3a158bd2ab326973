#pragma once

// ShmLane: an owner on this machine. His slots are mapped here once each, read-only, and their words say which holds
// the version: so a fetch is a copy, and asks him nothing. Where what is wanted is the mapping itself he is asked to
// leave the slot as it is: he has heard that once he says its word behind it.
//
// Thread, lifetime: a Lane's.

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "transport/tensor/destination.h"
#include "transport/tensor/lane.h"
#include "transport/tensor/row_copy.h"
#include "transport/tensor/slot.h"
#include "transport/tensor/stream_link.h"

namespace monarch::tensor {

class ShmLane final : public Lane {
 public:
  ShmLane(std::unique_ptr<StreamLink> link, Destination& destination, bool maps)
      : link_(std::move(link)), destination_(destination), maps_(maps) {}

  LaneKind kind() const override { return LaneKind::kShm; }
  void begin(const VersionId& version, const LaneWork& work) override;
  bool is_busy() const override { return slot_ != nullptr && (maps_ ? !kept_ : !is_copied() && !waits_for_room_); }
  void poll_for(std::vector<pollfd>& descriptors) const override;
  Status go_on() override;
  std::optional<std::uint64_t> word() override;
  void say_read(const VersionId& version, bool whole) override;
  [[nodiscard]] bool stop() override;
  // After a fetch that was whole, until the next; else nullptr.
  const char* mapped() const { return held_ == nullptr ? nullptr : held_->start(); }

 private:
  struct View {
    std::uint64_t serial = 0;
    std::shared_ptr<SlotView> slot;  // owners: this, and copies to GPUs that are under way
  };

  bool is_whole() const {
    if (maps_) return nowhere_ || answer_.has_value();
    return nowhere_ || (is_copied() && destination_.has_passed(mark_));
  }
  bool is_copied() const { return work_ != nullptr && slot_ != nullptr && next_ == work_->pieces.size(); }
  void find_slot();
  Status hear();
  Status take_slot(StreamLink::Received& word);
  Result<std::shared_ptr<SlotView>> open_slot(const StreamLink::Received& word);
  void copy_some();
  bool copy(const Piece& piece);
  void keep_slot();
  void let_go();

  std::unique_ptr<StreamLink> link_;
  Destination& destination_;
  const bool maps_;
  std::optional<VersionId> kept_;        // that he was asked to leave as it is
  std::shared_ptr<SlotView> held_;       // of a fetch that was whole
  int words_asked_ = 0;                  // without an answer yet
  std::optional<std::uint64_t> answer_;  // the last of them
  Status broken_;                        // what was to be said was not
  std::map<std::uint16_t, View> views_;
  const LaneWork* work_ = nullptr;
  VersionId version_;
  int asked_ = 0;                   // for slots, without an answer yet
  std::shared_ptr<SlotView> slot_;  // that has the version
  bool nowhere_ = false;            // none has it
  std::size_t next_ = 0;            // piece
  CopyWay way_ = CopyWay::kCached;
  bool waits_for_room_ = false;
  Destination::Mark mark_ = 0;  // of copies from the slot
};

}  // namespace monarch::tensor
