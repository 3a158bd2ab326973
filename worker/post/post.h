#pragma once

// Post: the process beside a daemon that carries calls, as a loop around PostCore. Ranks and callers of its host come
// by PostDoor, other posts by PeerLinks, the daemon by a socket of its own, over which the supervisor's roster and the
// ends of ranks come, and what a beat says of the post goes. It outlives a daemon: the next one connects again. It
// loads nothing and touches no disk. It ends by TERM, or with its keeper.
//
// Thread: the main one. Lifetime: the process's.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/inbox.h"
#include "transport/loop/signals.h"
#include "transport/messages/peer.h"
#include "transport/messages/post.h"
#include "transport/peers/body_links.h"
#include "transport/peers/peer_links.h"
#include "transport/wire/frame.h"
#include "transport/zmq/context.h"
#include "transport/zmq/zmq_loop.h"
#include "worker/core/post/awaited_bodies.h"
#include "worker/core/post/post_core.h"
#include "worker/post/body_store.h"
#include "worker/post/post_door.h"
#include "worker/servant/daemon_door.h"

namespace monarch::post {

class Post {
 public:
  // `signals` delivers TERM, and outlives it.
  static Result<std::unique_ptr<Post>> start(PostSetup setup, SignalFd& signals);
  Post(const Post&) = delete;
  Post& operator=(const Post&) = delete;

  // Until TERM.
  void run() { zmq_loop_->run(); }

 private:
  Post(PostSetup setup, CurveKeyPair keys);
  Status open(SignalFd& signals);
  Status open_links();
  Status open_doors();

  void on_door(DoorId door, const Frame& frame, std::vector<UniqueFd> descriptors);
  Status on_peer(HostId from, PeerVia via, const FrameHeader& header, const std::vector<ZmqFrame>& frames);
  Status on_line(HostId from, PeerVia via, post_event::PeerMessage&& message, const std::vector<ZmqFrame>& frames);
  void on_body(HostId from, PeerVia via, BodyStream::Arrived&& body);
  void say_of_bodies(HostId host, PeerVia via, const BodyLinkWord& word);
  std::string address_of(HostId host) const;
  void go_on(HostId from, PeerVia via);
  void body_link_lost(HostId host, PeerVia via);
  // The ends of the line of the first message that is dropped.
  std::optional<LineEnds> drop_awaited(HostId host, PeerVia via);
  bool is_proof(const Frame& frame) const;
  Status on_daemon(const Frame& frame);
  void feed(const PostEvent& event);
  void perform_all(PostActions&& actions);
  void tell_gone();
  void arm_tick();
  void report_later(Duration pause);
  void report();
  void close_door(DoorId door, std::string why);
  Status give(CallBody& body, const post_action::ToPeer& action, std::optional<AsideBody>* place,
              std::vector<ZmqFrame>& beside, BodyStore::Shared& aside);
  void resume_later(HostId host, PeerVia via, const LineEnds& ends);

  void perform(post_action::ToDoor&& action);
  void perform(post_action::CloseDoor&& action) { close_door(action.door, std::move(action.why)); }
  void perform(post_action::HoldDoor&& action) { door_->hold(action.door); }
  void perform(post_action::ReadDoor&& action) { door_->read(action.door); }
  void perform(post_action::ToPeer&& action);
  void perform(post_action::Dial&& action) { links_->dial(action.host); }
  void perform(post_action::PeersChanged&& /*action*/) { links_->set_peers(core_.peers()); }
  void perform(post_action::FreeBody&& action) {
    if (bodies_.free(action.body) && action.tells) gone_.push_back(action.body);
  }
  void perform(post_action::FreeBlock&& action) {
    bodies_.pool().free(action.free.block, action.free.unsure ? MemoryPool::Word::kUnsure : MemoryPool::Word::kSure);
  }
  void perform(post_action::Tell&& action);

  PostSetup setup_;
  CurveKeyPair keys_;
  PostCore core_;
  BodyStore bodies_;
  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<WatchedInbox<BodyId>> unused_;  // what libzmq's threads let go
  std::unique_ptr<ZmqContext> context_;
  std::unique_ptr<ZmqLoop> zmq_loop_;
  std::unique_ptr<PeerLinks> links_;
  std::unique_ptr<BodyLinks> body_links_;
  // Of each way from another host, what waits for a body that comes beside it.
  std::map<std::pair<HostId, PeerVia>, AwaitedBodies<post_event::PeerMessage, BodyStream::Arrived>> awaited_;
  std::unique_ptr<PostDoor> door_;
  std::unique_ptr<DaemonDoor> daemon_;
  std::set<std::pair<HostId, PeerVia>> resuming_;
  std::vector<BodyId> gone_;  // of which the core is to be told
  bool turn_ends_ = false;    // the core is told so
  std::uint64_t called_ = 0;
  std::deque<PostWord> words_;  // the newest
  std::uint64_t last_word_ = 0;
  std::optional<PostReport> told_;
  TimerId report_timer_ = 0;
  Instant report_due_ = Instant::never();
  TimerId tick_timer_ = 0;
  Instant tick_due_ = Instant::never();
};

}  // namespace monarch::post
