#pragma once

// What other ways than its heartbeats tell of a host that is suspected: a session of its own, in which it is asked for
// the worker, and hosts that are heard, which are asked whether its sshd speaks to them. For people, who want to know
// whether it is the host, its link, or a way between; and one thing follows from it: a worker that is gone is proven to
// be gone before anybody waits for its lease.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/messages/check.h"
#include "transport/messages/viewer.h"

namespace monarch {

// What the host itself said.
struct SeenThere {
  std::string no_answer_because;      // empty: it answered
  std::optional<WorkerThere> worker;  // nothing: an older worker, which does not look for it
  std::string asked_at;               // where it was to reach us, "10.0.0.1 port 4711"; empty: it was not asked to
  std::string does_not_reach_us;      // why; empty: it does
};

// What another host said of it.
struct SeenFrom {
  std::string peer;
  bool asked = false;           // it answered us
  std::string does_not_answer;  // why; empty: its sshd speaks to the peer
};

struct SecondPath {
  SeenThere there;
  std::vector<SeenFrom> from;
};

// Nothing acts for the job there, and nothing starts by itself: what it left can be ended, and its ranks start
// elsewhere.
bool worker_is_gone(const SecondPath& seen);

// host.reached, or host.unreachable.
JobEvent told_of(const std::string& host, const SecondPath& seen);

}  // namespace monarch
