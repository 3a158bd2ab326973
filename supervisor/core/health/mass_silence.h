#pragma once

// MassSilence: the brake on verdicts when many hosts go silent together. Then a switch, or this machine, is the
// likelier cause than that many hosts: for two leases nobody is declared, and after that who is still silent.
//
// Who falls silent during a hold belongs to it if that, too, was within two heartbeats; many others together begin the
// two leases anew.
//
// Many are two hosts, or 40 % of all where that is more: of one host it is none, so a job of one host loses it as ever;
// of two or three hosts it is two. Together means that their silences began within two heartbeats.
//
// Thread: a value.

#include <cstddef>
#include <optional>
#include <vector>

#include "transport/base/time.h"

namespace monarch {

class MassSilence {
 public:
  struct Hold {
    std::size_t silent = 0;
    std::size_t of = 0;
    Instant until;
    Instant latest;  // silence of those that it began with
  };

  struct Silent {
    Instant since;
    bool held_before = false;  // a hold was because of it, and it was not heard since: it is not a reason for another
  };

  MassSilence(Duration heartbeat, Duration lease) : together_(heartbeat * 2), length_(lease * 2) {}

  // Every turn. `silent` are the hosts that are overdue and not yet declared, `of` all that are expected to speak. True
  // where a hold began with this turn.
  bool turn(std::vector<Silent> silent, std::size_t of, Instant now);
  const std::optional<Hold>& hold() const { return hold_; }
  // Is there a hold because of this silence, or one that it belongs to?
  bool covers(Instant since) const { return hold_ && since <= hold_->latest + together_; }

  static std::size_t many(std::size_t hosts);

 private:
  Duration together_;
  Duration length_;
  std::optional<Hold> hold_;
};

}  // namespace monarch
