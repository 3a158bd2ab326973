#pragma once

// WayDial: a link to an owner by whichever way there is: on the machine where both are on one, else, or where he is not
// seen there (another namespace), to his host.
//
// Thread: one.

#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/tensor/link_dial.h"

namespace monarch::tensor {

// What a reader may use.
struct LinkWays {
  std::string machine;  // that it runs on
  bool shm = true;
  bool verbs = true;
  bool tcp = true;
};

class WayDial {
 public:
  static constexpr Duration kPatience = Duration::seconds(5);

  struct Linked {
    std::unique_ptr<StreamLink> stream;
    LinkWay way = LinkWay::kOnMachine;
    std::uint32_t row_links = 1;  // that one reader may have
  };

  // `for_rows`: they go by what is allowed alone; words go by any way.
  WayDial(const Card& card, const HelloAsk& ask, const LinkWays& ways, bool for_rows);

  // Why the way of the machine was not taken; empty: it was, or nothing was yet.
  const std::string& why_not_on_machine() const { return why_not_on_machine_; }
  bool is_under_way() const { return dial_ != nullptr; }
  Status start(Instant now);
  void poll_for(std::vector<pollfd>& descriptors) const;
  Instant next_due() const { return dial_ ? until_ : Instant::never(); }
  // Nothing: not yet. kGone: nobody is there, or not who was meant. kBusy: he let go, or has no place. kTimeout: he is
  // not reached.
  Result<std::optional<Linked>> go_on(Instant now);
  // After kBusy: he has no place, and may have one in so long.
  std::optional<Duration> again() const { return again_; }
  void drop() { dial_.reset(); }

 private:
  // The next way, after one that led nowhere.
  Status start_next(Error why, Instant now);

  const Card card_;
  const HelloAsk ask_;
  const std::uint32_t row_link_;
  std::vector<LinkWay> all_;
  std::string why_none_;
  std::string why_not_on_machine_;
  std::size_t at_ = 0;
  std::unique_ptr<LinkDial> dial_;
  std::optional<Duration> again_;
  Instant until_;
};

}  // namespace monarch::tensor
