#include "worker/core/post/card_routes.h"

namespace monarch {

CardRoutes::Route* CardRoutes::find(const Key& key) {
  const auto found = routes_.find(key);
  return found == routes_.end() ? nullptr : &found->second;
}

void CardRoutes::over(const CallKey& call) {
  for (auto at = routes_.lower_bound({call, Rank(0)}); at != routes_.end() && at->first.first == call;) {
    at = routes_.erase(at);
  }
}

void CardRoutes::left(DoorId door) {
  for (auto at = routes_.lower_bound({{door, 0}, Rank(0)}); at != routes_.end() && at->first.first.door == door;) {
    at = routes_.erase(at);
  }
}

std::vector<CardRoutes::Key> CardRoutes::keys() const {
  std::vector<Key> keys;
  for (const auto& [key, route] : routes_) keys.push_back(key);
  return keys;
}

}  // namespace monarch
