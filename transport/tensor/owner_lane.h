#pragma once

// OwnerLane: one owner as a reader has him: a link to him, made when it is wanted, and the lane that it opens. Memory
// of the machine is taken where both are on one and see each other there, else verbs where both have a device, else
// TCP.
//
// Thread: the pull's. Lifetime: within that of what Lane says.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/tensor/core/card.h"
#include "transport/tensor/destination.h"
#include "transport/tensor/lane.h"
#include "transport/tensor/link_dial.h"
#include "transport/tensor/link_ways.h"
#include "transport/tensor/shm_lane.h"
#include "transport/tensor/verbs/verbs_destination.h"
#include "transport/tensor/verbs/verbs_lane.h"

namespace monarch::tensor {

class OwnerLane {
 public:
  // `maps`: his slot is mapped, and nothing is copied from it.
  OwnerLane(Card card, HelloAsk ask, LinkWays ways, Destination& destination, VerbsDestination& verbs, bool maps);

  const std::string& name() const { return name_; }
  // Once there is a link.
  std::optional<LaneKind> kind() const { return lane_ ? std::optional(lane_->kind()) : std::nullopt; }
  const std::string& why_not_shm() const { return dial_.why_not_on_machine(); }
  // The first byte of his slot, where that is mapped.
  const char* mapped() const { return mapping_ == nullptr ? nullptr : mapping_->mapped(); }
  // Empty: it goes by verbs, or is not to.
  std::string why_not_verbs() const { return verbs_ == nullptr ? std::string() : verbs_->why_not(); }
  void begin(const VersionId& version, const LaneWork& work);
  // It has something to do without waiting.
  bool is_busy() const { return lane_ ? lane_->is_busy() : work_ != nullptr && !dial_.is_under_way(); }
  void poll_for(std::vector<pollfd>& descriptors) const;
  Instant next_due() const { return dial_.next_due(); }
  // As Lane's; and kGone: nobody is there. kTimeout: he is not reached.
  Status go_on(Instant now);
  // After kBusy: he has no place for a link, and may have one in so long.
  std::optional<Duration> again() const { return lane_ ? std::nullopt : dial_.again(); }
  std::optional<std::uint64_t> word() { return lane_ ? lane_->word() : std::nullopt; }
  void say_read(const VersionId& version, bool whole);
  void stop();

 private:
  void open_lane(WayDial::Linked linked);

  const Card card_;
  const HelloAsk ask_;
  const LinkWays ways_;
  const std::string name_;
  WayDial dial_;
  Destination& destination_;
  VerbsDestination& verbs_destination_;
  std::unique_ptr<Lane> lane_;
  VerbsLane* verbs_ = nullptr;  // where that is the lane
  const bool maps_;
  ShmLane* mapping_ = nullptr;  // the same
  VersionId version_;
  const LaneWork* work_ = nullptr;  // under way
};

}  // namespace monarch::tensor
