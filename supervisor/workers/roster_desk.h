#pragma once

// RosterDesk: sees that each host's post goes by what the core knows now. A change is told to all at once, a little
// later, so that changes that come together are one; beats say which roster a post goes by, and who goes by an older
// one is told again. So none is lost for good.
//
// It tells only what is durable (J1), and after a supervisor's return nothing until it knows where posts are: by half a
// list posts would drop connections that stand.
//
// Thread: the supervisor's loop. Lifetime: within the core's.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "supervisor/core/health/word_budget.h"
#include "supervisor/core/job/job_core.h"
#include "supervisor/core/job/roster.h"
#include "supervisor/workers/servant_ports.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/post.h"
#include "transport/messages/roster.h"
#include "transport/messages/viewer.h"

namespace monarch {

struct RosterDeskOptions {
  std::function<bool(HostId, const Roster&)> send;          // false: it could not be
  std::function<void(std::function<void()>)> when_durable;  // of all that is decided so far
  std::function<void(Instant, std::function<void()>)> at;   // calls then
  std::function<Instant()> now;
  std::function<void(HostId, const PostWord&)> tell_people = {};
  std::function<void(HostId, const std::string& how)> post_ended = {};  // and another one was started
  std::function<void(HostId)> told = {};                                // it was sent a roster
  std::optional<Instant> returned;                                      // when this supervisor came back
};

// What people are told of that. A host's words are marked as its own: no line of the log is a sentence of ours that a
// host has made.
JobEvent post_word_event(const std::string& host, const PostWord& word);
JobEvent post_ended_event(const std::string& host, const std::string& how);

class RosterDesk {
 public:
  static constexpr Duration kFloor = Duration::milliseconds(20);  // between two rosters
  static constexpr std::uint64_t kBytesPerSecond = 32U << 20U;    // of rosters, to all hosts together
  static constexpr std::size_t kFailures = 64;                    // that are told, the newest

  RosterDesk(const JobCore& core, RosterDeskOptions options);

  // Something happened to the core.
  void changed();
  // What is announced; of the failure of a gang posts are told.
  void told(const JobEvent& event);
  // What a beat of this host says of its post; port 0: that there is none.
  void hear(HostId host, const PostReport& report);
  // The host has a post, and it answers.
  bool serves(HostId host) const { return ports_.port(host) != 0; }
  // What its post was sent, if that is the newest; else null.
  const Roster* told_to(HostId host) const;
  // Calls `then` once that of the first host does which is, or is to be, there; it may be now. Each viewer waits once,
  // by its number.
  void when_served(std::uint64_t viewer, std::function<void()> then);
  void forget(std::uint64_t viewer) { waiting_.erase(viewer); }

 private:
  struct Sent {
    Instant at;                // when it was sent a roster last
    std::uint64_t number = 0;  // its
  };
  struct Heard {
    std::uint64_t start = 0;  // of the post; 0: nothing was heard of it
    std::uint64_t word = 0;   // the last that was passed on
    WordBudget budget;
  };
  bool first_serves() const;
  void pass_on(HostId host, const PostReport& report);
  void look();
  void tell();
  void tell(HostId host);
  Roster take_look() const;
  std::optional<RosterFailure> failure_of(const JobEvent& event) const;

  const JobCore& core_;
  RosterDeskOptions options_;
  ServantPorts ports_;
  std::deque<RosterFailure> failures_;
  std::uint64_t next_failure_;
  Roster newest_;                                           // as it was looked at last; its number is 0: none yet
  std::shared_ptr<const Roster> durable_;                   // what is told; owners: this, and what waits to be durable
  std::vector<Sent> sent_;                                  // by HostId
  std::vector<Heard> heard_;                                // by HostId
  std::map<std::uint64_t, std::function<void()>> waiting_;  // by viewer, until a post answers
  Instant looked_at_;
  Duration pause_ = kFloor;  // until the next look
  bool armed_ = false;
};

}  // namespace monarch
