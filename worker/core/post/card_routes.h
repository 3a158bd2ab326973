#pragma once

// CardRoutes: where the asks for cards are that callers of this host wait for. A rank may be started again elsewhere:
// then its ask goes there, and until it is known where, it waits here. So a caller who waits for a card waits through
// restarts, and hears of an end only where none will come.
//
// Thread: a value of the core's; pure.

#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "worker/core/post/call_table.h"
#include "worker/core/post/delivery_table.h"

namespace monarch {

class CardRoutes {
 public:
  struct Route {
    SharedContent content;
    std::optional<HostId> host;  // that was asked; nothing: the rank is nowhere
    CallPlace place;             // the ask, if a host was asked
  };
  using Key = std::pair<CallKey, Rank>;

  Route* find(const Key& key);
  void set(const Key& key, Route route) { routes_.insert_or_assign(key, std::move(route)); }
  void erase(const Key& key) { routes_.erase(key); }
  // The call is over.
  void over(const CallKey& call);
  void left(DoorId door);
  std::vector<Key> keys() const;
  std::size_t size() const { return routes_.size(); }

 private:
  std::map<Key, Route> routes_;
};

}  // namespace monarch
