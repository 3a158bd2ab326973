#pragma once

// LinkTable: which link answers to a User-Id go to. Pure. A peer that reconnects comes by a new link while the ROUTER
// may still hold the old one: each hello and heartbeat binds its link, and the newest link wins. A peer that claims to
// be somebody else is refused, whatever its message says.
//
// Thread: a value of the loop's.

#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "transport/base/ids.h"

namespace monarch {

// The ROUTER's name for one connection; a peer cannot choose it.
using LinkId = StrongId<struct LinkIdTag, std::uint32_t>;

// libzmq counts links up from a random start and around (router.cpp, 4.3.4).
bool newer(LinkId left, LinkId right);

class LinkTable {
 public:
  enum class Bound : std::uint8_t {
    kNew,     // the user had no link
    kSame,    // the link it has
    kMoved,   // a newer link replaced the old one: the peer has reconnected and may have missed messages
    kStale,   // read late from a link that was replaced: no answer goes there
    kForged,  // the claim is not the User-Id that the sender proved: refuse the message
  };
  Bound bind(LinkId link, std::string_view user_id, std::string_view claimed);

  std::optional<LinkId> link_of(std::string_view user_id) const;
  // After kGone from a send; a newer link of the user stays.
  void forget(std::string_view user_id, LinkId link);
  std::size_t size() const { return links_.size(); }

 private:
  std::map<std::string, LinkId, std::less<>> links_;  // as many as the ZAP table has users
};

}  // namespace monarch
