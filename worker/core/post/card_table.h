#pragma once

// CardTable: the cards that ranks of this host have put at the door, and who asks for them. A card is a few bytes by
// which a rank is found (where it listens, a secret of its); it is its process's, and goes with the connection that has
// put it. A rank that has stopped is found still: nobody asks the rank. An ask waits here until there is a card for it;
// who has asked knows whether it is the right host, and takes it back if not. Of a card's key each who asks has a
// secret of his own: by that the card's owner knows which rank comes.
//
// Thread: a value of the core's; pure.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/messages/post.h"
#include "worker/core/post/bodies.h"
#include "worker/core/post/delivery_table.h"
#include "worker/core/post/post_limits.h"
#include "worker/core/post/shared_room.h"

namespace monarch {

class CardTable {
 public:
  // Beyond all numbers of deliveries, so that both have one space.
  static constexpr DeliveryTable::Number kFirst = DeliveryTable::Number{1} << 63U;
  static bool is_one(DeliveryTable::Number number) { return number >= kFirst; }

  explicit CardTable(const PostLimits& limits)
      : limits_(limits), room_({limits.card_asks, limits.card_ask_bytes}, limits.share) {}

  // An empty text takes it away. Empty: done; else why that may not be.
  std::string put(DoorId door, const CallerName& who, const std::string& name, HeldBody text, std::string key);
  void left(DoorId door);
  // A newer roster is here. `passed`: a later start has that one's place.
  void drop_passed(const std::function<bool(const CallerName&)>& passed);

  // Answered with the card of a generation after `since`, which may come only later. 0: it has ended already.
  DeliveryTable::Number ask(const DeliveryOrigin& origin, const CallerName& who, const RankId& rank,
                            const std::string& name, std::uint64_t since);
  // Nobody waits for it any more. One that came by a line ends all the same.
  void take_back(DeliveryTable::Number number);
  // The same of all that came by the line of a root's earlier starts.
  void root_passed(HostId root, const PostStart& now);

  std::vector<DeliveryTable::Done> take_done() { return std::exchange(done_, {}); }
  std::size_t asks() const { return asks_.size(); }

 private:
  struct Card {
    DoorId door;
    std::uint64_t generation = 0;
    HeldBody text;
    std::string key;  // empty: it has none
  };
  struct Owner {
    std::map<std::string, Card> cards;
    std::set<DeliveryTable::Number> asks;
  };
  struct Ask {
    DeliveryOrigin origin;
    CallerName who;
    RankId rank;
    std::string name;
    std::uint64_t since = 0;
    // What is kept of it.
    std::uint64_t bytes() const { return sizeof(Ask) + name.size() + who.mesh.size(); }
  };
  void erase_cards(const std::function<bool(const RankId&, const Card&)>& which);
  void erase_ask(std::map<DeliveryTable::Number, Ask>::iterator ask);
  void answer(DeliveryTable::Number number, CallOutcome outcome, HeldBody text);
  void answer_with(DeliveryTable::Number number, const Card& card);

  const PostLimits limits_;
  std::map<RankId, Owner> owners_;
  std::map<DeliveryTable::Number, Ask> asks_;
  SharedRoom<std::optional<HostId>> room_;  // for these; nothing: of this host
  std::vector<DeliveryTable::Done> done_;
  DeliveryTable::Number next_ = kFirst;
};

}  // namespace monarch
