#pragma once

// PostCore: what a host's post does with calls. Callers at its door call ranks of a mesh: those of this host it
// delivers to, those of others it asks their posts for, by the roster. Each rank of a call has exactly one outcome,
// whatever becomes of ranks, posts, hosts and connections, and runs it at most once; what one sender has sent a rank
// begins in the order in which it was sent.
//
// What is wrong with a call itself is refused before anything is asked. Calls to a rank that is not up end at once; a
// rank's own host is the authority on it. A guest that serves is called like a rank, and is its post's alone: no roster
// has it, and it ends with its connection.
//
// Thread: a value of the loop's; pure.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "transport/base/time.h"
#include "transport/messages/peer.h"
#include "transport/messages/post.h"
#include "transport/messages/roster.h"
#include "worker/core/post/bodies.h"
#include "worker/core/post/call_table.h"
#include "worker/core/post/call_windows.h"
#include "worker/core/post/caller_gate.h"
#include "worker/core/post/card_routes.h"
#include "worker/core/post/card_table.h"
#include "worker/core/post/delivery_table.h"
#include "worker/core/post/door_answers.h"
#include "worker/core/post/guests.h"
#include "worker/core/post/lendings.h"
#include "worker/core/post/peer_lines.h"
#include "worker/core/post/post_limits.h"
#include "worker/core/post/post_steps.h"
#include "worker/core/post/roster_view.h"
#include "worker/core/post/wait_rings.h"
#include "worker/core/post/wish_table.h"

namespace monarch {

struct PostOptions {
  HostId host;
  std::string host_name;
  std::string address;  // for other hosts
  std::uint16_t first_port = 0;
  std::uint16_t last_port = 0;
  PostStart start;
  bool one_machine = false;  // all hosts of the job are
  PostLimits limits;
};

class PostCore {
 public:
  explicit PostCore(PostOptions options);
  PostCore(const PostCore&) = delete;  // its parts refer to each other
  PostCore& operator=(const PostCore&) = delete;

  PostActions step(const PostEvent& event, Instant now);
  // Some answers wait for the turn's end, so that those that are for one go together.
  bool has_answers() const { return !answers_.is_empty() || lines_.has_answers(); }
  PostActions end_turn();
  // Not later than when something is due.
  Instant next_due() const;

  const RosterView& roster() const { return roster_; }
  // Whom it lets in, and may dial.
  std::vector<PeerAddress> peers() const;
  // What is under way: calls of callers here, deliveries to ranks here, bodies that are held.
  std::size_t calls() const { return calls_.size(); }
  std::size_t deliveries() const { return deliveries_.size(); }
  std::size_t doubted() const { return gate_.size(); }  // asks of callers whom no roster knows yet
  std::size_t bodies() const { return bodies_.held(); }
  std::uint64_t body_bytes() const { return bodies_.bytes(); }
  std::size_t guests() const { return guests_.size(); }
  WishTable& wishes() { return wishes_; }
  std::size_t lendings() const { return lendings_.size(); }  // bodies that are blocks, which somebody may read

 private:
  void on(const post_event::DoorSaid& event);
  void on(const post_event::DoorLeft& event);
  void on(const post_event::PeerSaid& event);
  void on(const post_event::PeerUp& event) { lines_.up(event.host); }
  void on(const post_event::PeerDown& event) { lines_.down(event.host); }
  void on(const post_event::RosterCame& event);
  void on(const post_event::RankEnded& event);
  void on(const post_event::WishAnswered& event) { wishes_.answered(event.answer); }
  void on(const post_event::BodyGone& event) { lendings_.gone(event.body); }
  void on(const post_event::Tick& event);

  void said(DoorId door, const PostHello& hello);
  void said(DoorId door, const PostCall& call);
  void said(DoorId door, const PostCancel& cancel);
  void said(DoorId door, const PostReply& reply);
  void said(DoorId door, const PostWait& wait);
  void said(DoorId door, const PostCard& card);
  void said(DoorId door, const PostLetGo& said);
  void said(DoorId door, const PostWish& wish);
  void turn_away(DoorId door, std::string why);
  void welcome(DoorId door, const PostHello& hello);
  // Empty: whom the hello names may come so, and that is `name`; else why not.
  std::string why_unwelcome(const PostHello& hello, CallerName& name) const;

  void distribute(const CallKey& key, const std::vector<Rank>& ranks, const SharedContent& content);
  // Those of its ranks that a call may be under way at.
  void send(const CallKey& key, const std::vector<Rank>& ranks, const SharedContent& content);
  void end(const CallKey& key, Rank rank, OutcomeKind kind, std::string text);
  RankStanding standing_of(const RankId& rank) const;
  void take_back(const std::vector<CallPlace>& places);
  void take_back_here(DeliveryTable::Number number);
  // Who is called of this host. 0: it has ended already.
  DeliveryTable::Number deliver_here(const DeliveryOrigin& origin, const RankId& rank, SharedContent content);
  DeliveryTable::Number deliver_to_guest(const DeliveryOrigin& origin, const RankId& guest, SharedContent content);
  void end(DeliveryTable::Done&& done);
  // Asks the host on which a rank is, or is about to be, for its card; it waits while there is none.
  void route(const CardRoutes::Key& key, SharedContent content);
  // Whether an ask that has ended so is asked again instead.
  bool is_routed_again(const CardRoutes::Key& key, OutcomeKind how);
  void look_at_routes();
  void deliver(PeerLines::Ordered&& ordered);
  void refuse(const DeliveryOrigin& origin, OutcomeKind kind, std::string why);
  void settle();
  // What the step has for others, at its end.
  PostActions finish();
  void lend_on(const post_action::ToDoor& to, CallBody& body, const Lendings::Reading& reading);
  std::string ring_of(const CallKey& call, const WaitRings::Waiter& waiter);
  void look_at_hosts();
  void tell_failures();
  void tell_waits();

  PostOptions options_;
  PostActions out_;
  Bodies bodies_;
  Lendings lendings_;
  RosterView roster_;
  DoorAnswers answers_;
  CallTable calls_;
  CallWindows windows_;
  DeliveryTable deliveries_;
  PeerLines lines_;
  CallerGate gate_;
  WaitRings rings_;
  CardTable cards_;
  CardRoutes routes_;
  Guests guests_;
  WishTable wishes_;
  std::map<DoorId, CallerName> callers_;
  std::set<DoorId> serving_;
  std::set<DoorId> watching_;
  std::map<DoorId, PostHello> early_;  // who has come before the first roster
  std::vector<PeerAddress> peers_;     // as the driver was told last
  std::optional<std::uint64_t> failures_told_;
  Instant now_;
};

}  // namespace monarch
