#include "transport/tensor/link_ways.h"

#include <utility>

#include "transport/base/text.h"

namespace monarch::tensor {

WayDial::WayDial(const Card& card, const HelloAsk& ask, const LinkWays& ways, bool for_rows)
    : card_(card), ask_(ask), row_link_(for_rows ? 1 : 0) {
  const bool same = card.machine == ways.machine;
  if (same && (ways.shm || !for_rows)) all_.push_back(LinkWay::kOnMachine);
  if (!card.address.empty() && (ways.tcp || ways.verbs || !for_rows)) all_.push_back(LinkWay::kToHost);
  if (!same) {
    why_not_on_machine_ = "another machine";
  } else if (!ways.shm && for_rows) {
    why_not_on_machine_ = "shm is not among `tensors.transports`";
  }
  if (!all_.empty()) return;
  why_none_ = text(ask.owner.name(), same ? " is on this machine" : " is on another machine", " and ",
                   card.address.empty() ? "listens for no other host" : "may not be read from over verbs or tcp",
                   same ? ", and shm is not among `tensors.transports`" : "");
}

Status WayDial::start(Instant now) {
  at_ = 0;
  again_.reset();
  if (all_.empty()) return Error{ErrorCode::kTimeout, text("no common transport: ", why_none_)};
  until_ = now + kPatience;
  auto dial = LinkDial::start(card_, all_[at_], ask_, row_link_);
  if (!dial.ok()) return start_next(std::move(dial).error(), now);
  dial_ = std::move(*dial);
  return {};
}

Status WayDial::start_next(Error why, Instant now) {
  dial_.reset();
  while (why.code == ErrorCode::kGone && ++at_ < all_.size()) {
    why_not_on_machine_ = card_.path.starts_with('@') ? "another network namespace" : "another mount namespace";
    until_ = now + kPatience;
    auto dial = LinkDial::start(card_, all_[at_], ask_, row_link_);
    if (dial.ok()) {
      dial_ = std::move(*dial);
      return {};
    }
    why = std::move(dial).error();
  }
  return why;
}

void WayDial::poll_for(std::vector<pollfd>& descriptors) const {
  if (dial_) descriptors.push_back({dial_->descriptor(), dial_->events(), 0});
}

Result<std::optional<WayDial::Linked>> WayDial::go_on(Instant now) {
  if (!dial_) return std::optional<Linked>();
  auto link = dial_->go_on();
  if (!link.ok()) {
    again_ = dial_->again();
    MONARCH_TRY(start_next(std::move(link).error(), now));
    return std::optional<Linked>();
  }
  if (*link != nullptr) {
    const std::uint32_t row_links = dial_->row_links();
    dial_.reset();
    return std::optional(Linked{std::move(*link), all_[at_], row_links});
  }
  if (now < until_) return std::optional<Linked>();
  dial_.reset();
  return Error{ErrorCode::kTimeout, text("no link to ", ask_.owner.name(), " within ", to_text(kPatience))};
}

}  // namespace monarch::tensor
