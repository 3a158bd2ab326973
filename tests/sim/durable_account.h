#pragma once

// DurableAccount: which decisions of which term are on the disk. What a supervisor was told is; what it was not told
// may be all the same, if it died between the sync and the news: that is known once the next one has read the journal.
//
// Thread: a value.

#include <cstdint>
#include <map>
#include <utility>

#include "transport/base/ids.h"

namespace monarch::sim {

// Of a decision: the term in which it was made, and the number of its record there.
using Ticket = std::pair<Term, std::uint64_t>;

class DurableAccount {
 public:
  // The first record of a ticket has this LSN, if it ever gets to the disk.
  void appended(const Ticket& ticket, std::uint64_t lsn);
  // The supervisor of this term was told that all up to this one are on the disk.
  void told(const Ticket& ticket);
  // A later one has read the journal up to this LSN: what lies beyond it never was.
  void recovered(std::uint64_t last_lsn);
  bool holds(const Ticket& ticket) const;

 private:
  void note(const Ticket& ticket);

  std::map<Term, std::uint64_t> newest_;      // of each term; all before it are durable, too
  std::map<std::uint64_t, Ticket> appended_;  // by LSN
};

}  // namespace monarch::sim
