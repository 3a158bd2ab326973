#pragma once

// RankDoors: where the ranks of a host talk back. Each has a NotifySocket and an EventDoor from its fork until its tree
// is empty; they are the keeper's, so that a daemon's death closes none. What a rank says becomes events of the
// keeper's core, as seldom as RankVoice allows.
//
// Thread: the keeper's. Lifetime: shorter than the loop's.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "transport/base/result.h"
#include "transport/loop/event_loop.h"
#include "worker/core/environment.h"
#include "worker/core/keeper_actions.h"
#include "worker/core/notify.h"
#include "worker/core/rank_voice.h"
#include "worker/keeper/event_door.h"
#include "worker/keeper/notify_socket.h"

namespace monarch {

struct RankDoorsOptions {
  std::string directory;  // of the sockets, 0700; empty: ranks have no doors
  std::string job_id;
  std::string host_name;
  bool vault = false;                             // checkpoints are kept on this host, by a vault in that directory
  bool post = false;                              // calls are carried, by a post in that directory
  Duration period = Duration::milliseconds(250);  // between two words of a rank that are passed on
};

class RankDoors {
 public:
  RankDoors(EventLoop& loop, RankDoorsOptions options, std::function<void(KeeperEvent)> tell)
      : loop_(loop), options_(std::move(options)), tell_(std::move(tell)) {}
  ~RankDoors();
  RankDoors(const RankDoors&) = delete;
  RankDoors& operator=(const RankDoors&) = delete;

  // The paths for its environment; empty ones where ranks have no doors.
  Result<RankDoorPaths> open(const keeper_action::ForkRank& order);
  // The standby's doors are this rank's from now on; who waits at its gate goes on waiting.
  void take_over(const Incarnation& from, const keeper_action::ForkRank& as);
  // To who waits: it has its place.
  void open_gate(const Incarnation& key);
  // An event for who listens there.
  void tell(const Incarnation& key, const std::string& json);
  // To who asked for a commit.
  void answer(const Incarnation& key, const CommitAnswer& answer);
  // It has exited: what it had said before is passed on first.
  void hear_last_words(const Incarnation& key);
  void close(const Incarnation& key);

 private:
  struct Door {
    std::string name;  // "trainer/3"
    std::string stem;  // of the names of its sockets, "0.3."
    RankVoice voice;
    std::unique_ptr<NotifySocket> notify;
    std::unique_ptr<EventDoor> events;
    TimerId timer = 0;
    Instant timer_due = Instant::never();
    TalkDrops told;                                // of drops()
    std::optional<keeper_action::ForkRank> place;  // of a standby that has been given one, and has not been told
    TalkDrops drops() const;
  };

  // What a standby has become; else itself.
  Incarnation now_called(const Incarnation& key) const;
  RankIdentity identity_of(const keeper_action::ForkRank& order) const;
  void heard(const Incarnation& key, std::string_view datagram);
  void dropped(const Incarnation& key);
  void arm(const Incarnation& key, Door& door);
  void pass_on(const Incarnation& key);
  static void log_drops(const Door& door);

  EventLoop& loop_;
  RankDoorsOptions options_;
  std::function<void(KeeperEvent)> tell_;
  std::map<Incarnation, Door> doors_;
  std::map<Incarnation, Incarnation> renamed_;  // standbys, while what they have become has a door
};

}  // namespace monarch
