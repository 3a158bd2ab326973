#include "worker/core/post/wish_table.h"

#include <algorithm>
#include <set>
#include <string>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kReportedBytes = 64U << 10U;  // of texts in one report; one wish fits always

std::string why_too_large(const SlotWish& what) {
  if (what.dims.size() > kClaimDims) return text("it has more than ", kClaimDims, " dimensions");
  const std::size_t bytes = text_bytes(what);
  if (bytes <= kClaimBytes) return {};
  return text("its program and variables have ", amount_text(bytes), " of text, and ", amount_text(kClaimBytes),
              " are the most: what is the same for all belongs in the mesh's env");
}

}  // namespace

void WishTable::came(DoorId door, ClaimOwner owner) {
  if (owner == ClaimOwner()) return;
  owners_[door] = owner;
}

std::string WishTable::why_not(DoorId door, const PostWish& wish) const {
  if (wish.owner == ClaimOwner() || wish.number == 0) return "a wish has a number and an owner";
  const auto known = owners_.find(door);
  if (known != owners_.end() && known->second != wish.owner) return "it wishes in the name of another owner";
  const auto mine =
      std::count_if(waiting_.begin(), waiting_.end(), [&](const Waiting& one) { return one.wish.owner == wish.owner; });
  if (static_cast<std::size_t>(mine) >= kWishesOfADoor) return text(mine, " wishes of this process wait already");
  return why_too_large(wish.what);
}

void WishTable::said(DoorId door, const PostWish& wish) {
  if (std::string why = why_not(door, wish); !why.empty()) {
    answers_.push_back({door, {.number = wish.number, .error = std::move(why), .mesh = {}, .ranks = {}}});
    return;
  }
  came(door, wish.owner);
  // Said anew by a connection that came after the one it was said by.
  std::erase_if(waiting_,
                [&](const Waiting& one) { return one.wish.owner == wish.owner && one.wish.number == wish.number; });
  if (wish.let_go != 0) drop(wish.owner, wish.let_go, "it was let go before it was granted");
  waiting_.push_back({door, wish});
  changed_ = true;
}

void WishTable::drop(ClaimOwner owner, std::uint64_t number, const char* why) {
  answered({.owner = owner, .granted = {.number = number, .error = why, .mesh = {}, .ranks = {}}});
}

void WishTable::left(DoorId door) {
  changed_ = std::erase_if(waiting_, [&](const Waiting& one) { return one.door == door; }) > 0 || changed_;
  changed_ = owners_.erase(door) > 0 || changed_;
}

void WishTable::answered(const ClaimAnswer& answer) {
  const auto found = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
    return one.wish.owner == answer.owner && one.wish.number == answer.granted.number;
  });
  if (found == waiting_.end()) return;
  answers_.emplace_back(found->door, answer.granted);
  waiting_.erase(found);
  changed_ = true;
}

std::vector<PostWish> WishTable::reported() const {
  std::vector<PostWish> first;
  std::size_t bytes = 0;
  for (const Waiting& one : waiting_) {
    bytes += text_bytes(one.wish.what);
    if (first.size() == kWishesReported || (bytes > kReportedBytes && !first.empty())) break;
    first.push_back(one.wish);
  }
  return first;
}

std::vector<ClaimOwner> WishTable::owners() const {
  std::set<ClaimOwner> here;
  for (const auto& [door, owner] : owners_) here.insert(owner);
  return {here.begin(), here.end()};
}

}  // namespace monarch
