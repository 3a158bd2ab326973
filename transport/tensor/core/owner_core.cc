#include "transport/tensor/core/owner_core.h"

#include <algorithm>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch::tensor {

OwnerActions OwnerCore::step(const OwnerEvent& event, Instant now) {
  now_ = now;
  out_.clear();
  std::visit([this](const auto& one) { on(one); }, event);
  try_to_write();
  return std::exchange(out_, {});
}

std::optional<std::size_t> OwnerCore::slot_of(std::uint64_t number) const {
  for (std::size_t slot = 0; slot < slots_.size(); ++slot) {
    if (slots_[slot].number == number) return slot;
  }
  return std::nullopt;
}

void OwnerCore::on(const owner_event::Begin& event) {
  if (writing_) return refuse(text("version ", writing_->number, " is being written"));
  if (wanted_) return refuse(text("version ", wanted_->number, " waits to be written"));
  if (newest_ && event.number <= *newest_) {
    return refuse(text("version ", event.number, " after version ", *newest_, ": they rise within a generation"));
  }
  // One that holds nothing, else the oldest.
  const auto older = [](const Slot& one, const Slot& other) { return one.number < other.number; };
  const auto slot = std::min_element(slots_.begin(), slots_.end(), older);
  wanted_ = {event.number, static_cast<std::size_t>(slot - slots_.begin()), now_ + options_.patience};
}

void OwnerCore::try_to_write() {
  if (!wanted_) return;
  Slot& slot = slots_[wanted_->slot];
  const bool patient = now_ < wanted_->due;
  if (slot.number && all_hold_ < newest_ && patient) return;
  if (!slot.mapped.empty() && left_.size() >= options_.left) {
    if (patient) return;
    end_oldest_left();
  }
  if (!slot.mapped.empty()) {
    left_[*slot.number] = std::exchange(slot.mapped, {});
    out_.emplace_back(owner_action::Renew{wanted_->slot});
    return write(wanted_->slot);  // who reads the memory that was left may go on
  }
  if (!slot.readers.empty() && patient) return;
  write(wanted_->slot);
}

// Whatever readers do, a version is written.
void OwnerCore::end_oldest_left() {
  const auto oldest = left_.begin();
  for (const LinkNumber link : oldest->second) {
    out_.emplace_back(owner_action::EndLink{
        link, text("it keeps version ", oldest->first, " mapped, and readers may keep ", options_.left, " old ones")});
  }
  left_.erase(oldest);
}

void OwnerCore::write(std::size_t slot) {
  writing_ = {wanted_->number, slot};
  wanted_.reset();
  slots_[slot] = {};
  out_.emplace_back(owner_action::Write{slot});
}

void OwnerCore::on(const owner_event::Commit&) {
  MONARCH_ASSERT(writing_.has_value());
  slots_[writing_->slot].number = newest_ = writing_->number;
  out_.emplace_back(owner_action::Offer{writing_->slot, writing_->number});
  writing_.reset();
}

void OwnerCore::on(const owner_event::Abandon&) { writing_.reset(); }

// Of a version that is held no more nothing is to be waited for: its reader finds another word.
void OwnerCore::on(const owner_event::Reading& event) {
  if (const auto slot = slot_of(event.number)) slots_[*slot].readers.insert(event.link);
}

void OwnerCore::on(const owner_event::Read& event) {
  if (const auto slot = slot_of(event.number)) slots_[*slot].readers.erase(event.link);
}

void OwnerCore::on(const owner_event::Given& event) {
  if (const auto slot = slot_of(event.number)) slots_[*slot].given.insert(event.link);
}

void OwnerCore::on(const owner_event::Mapped& event) {
  const auto slot = slot_of(event.number);
  if (slot && slots_[*slot].given.contains(event.link)) slots_[*slot].mapped.insert(event.link);
}

void OwnerCore::on(const owner_event::Unmapped& event) {
  if (const auto slot = slot_of(event.number)) slots_[*slot].mapped.erase(event.link);
  const auto left = left_.find(event.number);
  if (left != left_.end() && left->second.erase(event.link) > 0 && left->second.empty()) left_.erase(left);
}

void OwnerCore::on(const owner_event::AllHold& event) { all_hold_ = std::max(all_hold_, std::optional(event.number)); }

void OwnerCore::on(const owner_event::LinkLeft& event) {
  for (Slot& slot : slots_) {
    slot.readers.erase(event.link);
    slot.given.erase(event.link);
    slot.mapped.erase(event.link);
  }
  for (auto left = left_.begin(); left != left_.end();) {
    left->second.erase(event.link);
    left = left->second.empty() ? left_.erase(left) : std::next(left);
  }
}

}  // namespace monarch::tensor
