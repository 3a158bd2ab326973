#include "transport/tensor/shm_lane.h"

#include <utility>

#include "transport/base/text.h"

namespace monarch::tensor {

namespace {

constexpr std::uint64_t kCopiedAtOnce = 8U << 20U;  // before others are looked at

}  // namespace

void ShmLane::begin(const VersionId& version, const LaneWork& work) {
  let_go();
  version_ = version;
  work_ = &work;
  next_ = 0;
  waits_for_room_ = false;
  mark_ = 0;
  nowhere_ = false;
  slot_ = nullptr;
  way_ = way_for(work.bytes);
  broken_ = link_->send({.kind = FrameKind::kReading, .version = version});
  find_slot();
  if (slot_ == nullptr && broken_.ok()) {
    ++asked_;
    const std::uint16_t flags = destination_.pins() != nullptr ? kPinned : std::uint16_t{0};
    broken_ = link_->send({.kind = FrameKind::kSlot, .flags = flags, .version = version});
  }
  if (broken_.ok()) broken_ = link_->flush();
}

void ShmLane::find_slot() {
  for (const auto& [number, view] : views_) {
    if (view.slot->word() == word_of(version_.number) && view.slot->bytes() >= work_->slot_bytes) {
      slot_ = view.slot;
    }
  }
}

void ShmLane::poll_for(std::vector<pollfd>& descriptors) const {
  const bool writes = link_->wants_to_write();
  descriptors.push_back({link_->descriptor(), static_cast<short>(POLLIN | (writes ? POLLOUT : 0)), 0});
}

Status ShmLane::go_on() {
  if (broken_.ok()) broken_ = link_->flush();
  if (broken_.ok()) broken_ = hear();
  if (!broken_.ok() && broken_.error().code != ErrorCode::kInvalid) {
    return Error{ErrorCode::kBusy, broken_.error().message};
  }
  MONARCH_TRY(broken_);
  if (maps_) {
    keep_slot();
    return broken_;
  }
  copy_some();
  return {};
}

void ShmLane::keep_slot() {
  if (slot_ == nullptr || kept_) return;
  kept_ = version_;
  ++words_asked_;
  broken_ = link_->send({.kind = FrameKind::kMapped, .version = version_});
  if (broken_.ok()) broken_ = link_->send({.kind = FrameKind::kWord, .version = version_});
  if (broken_.ok()) broken_ = link_->flush();
}

void ShmLane::let_go() {
  answer_.reset();
  held_ = nullptr;
  if (!kept_) return;
  const VersionId version = *std::exchange(kept_, std::nullopt);
  if (broken_.ok()) broken_ = link_->send({.kind = FrameKind::kUnmapped, .version = version});
}

Status ShmLane::hear() {
  for (;;) {
    MONARCH_ASSIGN(auto received, link_->receive(kOwnersWordBytes));
    if (!received) return {};
    if (received->frame.kind == FrameKind::kUnfit) return Error{ErrorCode::kInvalid, printable(received->behind)};
    if (received->frame.kind == FrameKind::kWord && words_asked_ > 0) {
      if (--words_asked_ == 0 && kept_) answer_ = received->frame.offset;
      continue;
    }
    if (received->frame.kind != FrameKind::kSlot || asked_ == 0) {
      return Error{ErrorCode::kInvalid, "it says what nobody has asked"};
    }
    --asked_;
    MONARCH_TRY(take_slot(*received));
  }
}

// That of a fetch that was stopped is taken as well: the next one finds it.
Status ShmLane::take_slot(StreamLink::Received& word) {
  const LinkFrame& frame = word.frame;
  const bool wanted = work_ != nullptr && slot_ == nullptr && frame.version == version_;
  if (frame.length == 0) {
    nowhere_ = wanted;
    return {};
  }
  if (!word.descriptor.valid()) return Error{ErrorCode::kInvalid, "a slot without its descriptor"};
  View& view = views_[frame.slot];
  if (view.slot == nullptr || view.serial != frame.offset) {
    MONARCH_ASSIGN(view.slot, open_slot(word));
    view.serial = frame.offset;
  }
  if (!wanted) return {};
  if (frame.length < work_->slot_bytes) {
    return Error{ErrorCode::kInvalid,
                 text("a slot of ", frame.length, " bytes, and its index speaks of ", work_->slot_bytes)};
  }
  slot_ = view.slot;
  return {};
}

// Where the driver does not take it, it is copied from as for memory of the host.
Result<std::shared_ptr<SlotView>> ShmLane::open_slot(const StreamLink::Received& word) {
  Cuda* const cuda = destination_.pins();
  if (cuda != nullptr && (word.frame.flags & kPinned) != 0) {
    auto pinned = SlotView::open_pinned(word.descriptor, word.frame.length, *cuda);
    if (pinned.ok()) return std::shared_ptr<SlotView>(std::move(*pinned));
    destination_.refused(pinned.error().message);
  }
  MONARCH_ASSIGN(auto opened, SlotView::open(word.descriptor, word.frame.length));
  return std::shared_ptr<SlotView>(std::move(opened));
}

void ShmLane::copy_some() {
  if (slot_ == nullptr || is_copied()) return;
  waits_for_room_ = false;
  for (std::uint64_t done = 0; done < kCopiedAtOnce && next_ < work_->pieces.size(); ++next_) {
    const Piece& piece = work_->pieces[next_];
    waits_for_room_ = !copy(piece);
    if (waits_for_room_) break;
    done += piece.bytes();
  }
  mark_ = destination_.mark(slot_);
  if (is_copied()) finish_rows();
}

// False: not now.
bool ShmLane::copy(const Piece& piece) {
  const char* const from = slot_->start() + piece.source;
  const bool is_of_host = piece.device == kHostMemory;
  if (!is_of_host && slot_->is_pinned()) return destination_.copy(piece, from);
  const auto room = destination_.room(piece);
  if (!room) return false;
  copy_run({.from = from,
            .to = room->at,
            .row = static_cast<std::size_t>(piece.row),
            .rows = piece.rows,
            .source_pitch = piece.source_pitch,
            .destination_pitch = room->pitch},
           is_of_host ? way_ : CopyWay::kCached);
  destination_.filled(piece, *room);
  return true;
}

std::optional<std::uint64_t> ShmLane::word() {
  if (!is_whole()) return std::nullopt;
  return nowhere_ ? 0 : maps_ ? *answer_ : slot_->word();
}

void ShmLane::say_read(const VersionId& version, bool whole) {
  if (maps_ && whole) held_ = slot_;
  const std::uint16_t flags = whole ? kWhole : std::uint16_t{0};
  if (broken_.ok()) broken_ = link_->send({.kind = FrameKind::kRead, .flags = flags, .version = version});
  if (broken_.ok()) broken_ = link_->flush();
}

bool ShmLane::stop() {
  if (held_ == nullptr) let_go();
  work_ = nullptr;
  slot_ = nullptr;
  return broken_.ok();
}

}  // namespace monarch::tensor
