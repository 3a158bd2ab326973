#include "transport/tensor/owner_lane.h"

#include <utility>

#include "transport/base/text.h"
#include "transport/tensor/tcp_lane.h"

namespace monarch::tensor {

OwnerLane::OwnerLane(Card card, HelloAsk ask, LinkWays ways, Destination& destination, VerbsDestination& verbs,
                     bool maps)
    : card_(std::move(card)),
      ask_(std::move(ask)),
      ways_(std::move(ways)),
      name_(ask_.owner.name()),
      dial_(card_, ask_, ways_, true),
      destination_(destination),
      verbs_destination_(verbs),
      maps_(maps) {}

void OwnerLane::begin(const VersionId& version, const LaneWork& work) {
  version_ = version;
  work_ = &work;
  if (lane_) lane_->begin(version, work);
}

void OwnerLane::poll_for(std::vector<pollfd>& descriptors) const {
  if (lane_) return lane_->poll_for(descriptors);
  dial_.poll_for(descriptors);
}

Status OwnerLane::go_on(Instant now) {
  if (lane_) {
    const Status went = lane_->go_on();
    if (went.ok()) return {};
    return Error{went.error().code, text(name_, ": ", went.error().message)};
  }
  if (work_ == nullptr) return {};
  if (!dial_.is_under_way()) MONARCH_TRY(dial_.start(now));
  MONARCH_ASSIGN(auto linked, dial_.go_on(now));
  if (!linked) return {};
  open_lane(std::move(*linked));
  lane_->begin(version_, *work_);
  return {};
}

void OwnerLane::open_lane(WayDial::Linked linked) {
  verbs_ = nullptr;
  mapping_ = nullptr;
  if (linked.way == LinkWay::kOnMachine) {
    auto shm = std::make_unique<ShmLane>(std::move(linked.stream), destination_, maps_);
    if (maps_) mapping_ = shm.get();
    lane_ = std::move(shm);
    return;
  }
  const auto dial = [this](std::uint32_t link) { return LinkDial::start(card_, LinkWay::kToHost, ask_, link); };
  auto tcp = std::make_unique<TcpLane>(std::move(linked.stream), destination_, dial, linked.row_links);
  if (!ways_.verbs) {
    lane_ = std::move(tcp);
    return;
  }
  auto verbs = std::make_unique<VerbsLane>(std::move(tcp), destination_, verbs_destination_,
                                           VerbsLane::Options{.towards = card_.address, .tcp = ways_.tcp});
  verbs_ = verbs.get();
  lane_ = std::move(verbs);
}

void OwnerLane::say_read(const VersionId& version, bool whole) {
  if (lane_) lane_->say_read(version, whole);
}

void OwnerLane::stop() {
  work_ = nullptr;
  dial_.drop();
  if (!lane_ || lane_->stop()) return;
  verbs_ = nullptr;
  mapping_ = nullptr;
  lane_.reset();
}

}  // namespace monarch::tensor
