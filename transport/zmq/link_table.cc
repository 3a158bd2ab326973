#include "transport/zmq/link_table.h"

namespace monarch {

bool newer(LinkId left, LinkId right) { return static_cast<std::int32_t>(left.value() - right.value()) > 0; }

LinkTable::Bound LinkTable::bind(LinkId link, std::string_view user_id, std::string_view claimed) {
  if (user_id != claimed) return Bound::kForged;
  const auto found = links_.find(user_id);
  if (found == links_.end()) {
    links_.emplace(user_id, link);
    return Bound::kNew;
  }
  if (found->second == link) return Bound::kSame;
  if (!newer(link, found->second)) return Bound::kStale;
  found->second = link;
  return Bound::kMoved;
}

std::optional<LinkId> LinkTable::link_of(std::string_view user_id) const {
  const auto found = links_.find(user_id);
  if (found == links_.end()) return std::nullopt;
  return found->second;
}

void LinkTable::forget(std::string_view user_id, LinkId link) {
  const auto found = links_.find(user_id);
  if (found != links_.end() && found->second == link) links_.erase(found);
}

}  // namespace monarch
