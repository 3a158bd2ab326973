#pragma once

// Room: one simulated run of the posts of a few hosts: their ranks, which call and are called, the connections between
// the posts, a supervisor that restarts ranks and hands out rosters late, twice and out of order, and the faults of the
// seed. The posts are the real PostCore; a rank and the driver around a core are models. What is checked is Ledger's,
// and here:
//
//   C6  what is under way in a post stays within its limits, and ends with what it was for: no body is left over
//   C7  a host that says what it likes changes nothing of what others have with each other: nothing that it asks in
//       another's name is run, calls of others find room wherever it asks, and what waits for it stays bounded
//   C8  a lender writes no block that somebody reads, and each block that nobody reads comes back to it
//   C9  a delivery and an answer say whether they are of this machine; a guest has a number that nobody had before it
//   I2  what a rank of an earlier generation calls is run by nobody who knows of a later one
//
// Thread: one simulation's. Lifetime: the run's.

#include <array>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "tests/sim/calls/bugs.h"
#include "tests/sim/calls/ledger.h"
#include "tests/sim/kernel.h"
#include "tests/sim/random.h"
#include "tests/sim/seed_program.h"
#include "tests/sim/trace.h"
#include "worker/core/post/awaited_bodies.h"
#include "worker/core/post/post_core.h"

namespace monarch::sim::calls {

struct RoomOptions {
  std::uint64_t seed = 0;
  Bug bug = Bug::kNone;
  bool print = false;
};

class Room {
 public:
  explicit Room(const RoomOptions& options);
  SeedResult run();

 private:
  static constexpr std::uint64_t kBodyBytes = 100;
  using HostNumber = std::size_t;
  struct Work {
    std::uint64_t delivery = 0;
    Tag call = 0;
    DoorId door;
    RankId as;              // by which name it was given: a guest's changes with its post
    bool is_block = false;  // its arguments are
  };
  // One start of a rank, or a guest.
  struct Process {
    ProcessNumber number = 0;
    RankId rank;
    std::uint64_t generation = 0;
    HostNumber host = 0;
    bool is_guest = false;
    LifePtr life = std::make_shared<Life>();
    std::optional<DoorId> serves;  // its connections at the post that there is now
    std::optional<DoorId> calls;
    PostStart post;  // whose these are
    std::deque<Work> queue;
    bool busy = false;
    bool zombie = false;  // its rank has a later process, and it goes on calling
    std::uint64_t last_call = 0;
    std::map<std::uint64_t, Tag> open;  // by the number that its post knows
  };
  using ProcessPtr = std::shared_ptr<Process>;
  struct Door {
    ProcessPtr process;
    bool held = false;
    std::deque<post_event::DoorMessage> unread;
    std::deque<Tag> unread_bodies;
  };
  using BlockKey = std::pair<ProcessNumber, std::uint64_t>;  // by its lender
  // Memory that a lender writes again and again.
  struct Block {
    Tag content = 0;
    DoorId door;  // by which it was lent
    std::size_t lent = 0;
    std::size_t held = 0;  // by posts
    bool asked = false;    // whether anybody has it the kernel knows
    std::map<std::pair<ProcessNumber, Lendings::Reading>, Tag> readers;
    std::set<ProcessNumber> mapped;  // by those that keep their mappings
  };
  // By whom messages come, and by whose connection.
  using Way = std::pair<HostNumber, PeerVia>;
  using Awaited = AwaitedBodies<post_event::PeerMessage, Tag>;
  struct Post {
    PostStart start;
    LifePtr life = std::make_shared<Life>();
    std::unique_ptr<PostCore> core;
    std::unique_ptr<Alarm> alarm;
    std::map<DoorId, Door> doors;
    std::map<BodyId, Tag> bodies;
    ProcessNumber lender = 0;           // of what comes from other hosts; one of its own
    std::map<BodyId, BlockKey> blocks;  // where bodies are in blocks
    bool turn_ends = false;             // its core is told so
    std::map<Way, Awaited> awaited;     // behind bodies that come by a connection of their own
    std::uint64_t next_door = 1;
    std::uint64_t next_body = 1;
    std::map<HostId, PeerAddress> peers;  // as the core said them last
  };
  using PostPtr = std::shared_ptr<Post>;
  struct Host {
    bool up = true;
    bool lost = false;  // by the supervisor's verdict
    bool rogue = false;
    std::uint64_t worker = 1;
    std::uint64_t posts = 0;
    std::uint16_t port = 0;  // that the supervisor knows; 0: it knows of none
    PostPtr post;
  };
  // A connection that one host's post has to another's.
  struct Connection {
    HostNumber from = 0;
    HostNumber to = 0;
    PostStart dialler;
    PostStart target;
    bool up = false;
    bool broken = false;
    std::uint64_t number = 0;
    std::uint64_t sent = 0;
    std::uint64_t body_link = 0;        // which one is beside it: they are counted
    std::uint64_t arrive = 0;           // of a broken one: those up to it come all the same
    std::array<Instant, 2> newest;      // when the newest message there, and back, arrives
    std::array<std::size_t, 2> owes{};  // the kind of one that got lost, and shows by the next of it; 0: of none
  };
  using ConnectionPtr = std::shared_ptr<Connection>;
  // A body that comes by a connection of its own.
  struct Aside {
    std::uint64_t link = 0;
    std::uint64_t number = 0;
  };
  struct Sent {
    post_event::PeerMessage message;
    std::vector<Tag> bodies;  // of each in it
    std::optional<Aside> aside;
  };
  // What was on its way when its connection ended, and comes with the next one.
  struct Late {
    ConnectionPtr connection;
    bool back = false;
    Sent sent;
  };
  struct Slot {  // of a rank, as the supervisor has it
    RankId rank;
    HostNumber host = 0;
    std::uint64_t generation = 0;
    RosterState state = RosterState::kStarting;
    ProcessPtr process;
    bool being_restarted = false;
  };

  void build();
  void begin();
  void call_at_times(const ProcessPtr& process);
  void fault();
  void heal();
  void finish();

  // Posts and their driver.
  void start_post(HostNumber host);
  void kill_post(HostNumber host, bool again);
  void feed(HostNumber host, const PostPtr& post, const PostEvent& event);
  void end_turn_later(HostNumber host, const PostPtr& post);
  void perform_all(HostNumber host, const PostPtr& post, const PostActions& actions);
  void perform(HostNumber host, const PostPtr& post, const post_action::ToDoor& action);
  void perform(HostNumber host, const PostPtr& post, const post_action::CloseDoor& action);
  void perform(HostNumber host, const PostPtr& post, const post_action::HoldDoor& action);
  void perform(HostNumber host, const PostPtr& post, const post_action::ReadDoor& action);
  void perform(HostNumber host, const PostPtr& post, const post_action::ToPeer& action);
  void perform(HostNumber host, const PostPtr& post, const post_action::Dial& action);
  void perform(HostNumber host, const PostPtr& post, const post_action::PeersChanged& action);
  void perform(HostNumber host, const PostPtr& post, const post_action::FreeBody& action);
  void perform(HostNumber host, const PostPtr& post, const post_action::FreeBlock& action);
  void perform(HostNumber host, const PostPtr& post, const post_action::Tell& action);
  Tag body_of(const Post& post, const CallBody& body) const;
  template <class Message>
  std::vector<Tag> bodies_of(const Post& post, const Message& message) const;
  CallBody give_body(Post& post, Tag tag, std::uint64_t bytes);

  // Connections.
  Connection* connection(HostNumber from, HostNumber to);
  void dial(HostNumber from, const PostPtr& post, HostNumber to);
  void break_connection(Connection& connection);
  void break_connections(HostNumber host);
  void carry(const ConnectionPtr& connection, bool back, post_event::PeerMessage message, std::vector<Tag> bodies);
  bool gets_lost(const ConnectionPtr& connection, bool back, const post_event::PeerMessage& message);
  void bring_late(HostNumber from, HostNumber to);
  void die_while_answered(const ConnectionPtr& connection);
  void break_while_greeted(const ConnectionPtr& connection);
  void arrive(const ConnectionPtr& connection, bool back, Sent sent);
  // False: the planted bug keeps it back.
  bool with_bug(const Post& to, bool late, post_event::PeerMessage& message) const;

  // Bodies beside messages.
  std::optional<Aside> send_aside(const ConnectionPtr& connection, bool back, Tag body);
  void take_message(HostNumber to, const PostPtr& post, const Way& way, Sent sent);
  void go_on(HostNumber to, const PostPtr& post, const Way& way);
  std::optional<LineEnds> drop_awaited(Post& post, const Way& way);
  void lose_bodies(Connection& connection);
  void lose_bodies_at(HostNumber at, const PostStart& start, const Way& way);
  void resume_later(HostNumber at, const PostPtr& post, const Way& way, const LineEnds& ends);

  // Blocks.
  static bool speaks_newest(const Process& process) { return process.is_guest || process.number % 4 != 0; }
  bool is_alone(const Block& block) const;
  std::uint64_t lend(ProcessNumber lender, DoorId door, Tag content);
  void lend_body(const ProcessPtr& process, DoorId door, CallBody& body, Tag content);
  CallBody give_in_block(Post& post, Tag tag, ProcessNumber lender, std::uint64_t block);
  CallBody give_from_peer(Post& post, Tag tag);
  void freed(ProcessNumber lender, const PostFree& free);
  void give_up_lent(ProcessNumber lender, std::optional<DoorId> door);
  void hold_block(Post& post, BodyId body, const BlockKey& key);
  void drop_block(Post& post, BodyId body);
  void drop_body(Post& post, BodyId body);
  void forget_reader(const ProcessPtr& process);
  void begin_reading(const Post& post, const ProcessPtr& process, const CallBody& body, const Lendings::Reading& what);
  void end_reading(const ProcessPtr& process, const Lendings::Reading& what);
  void let_go_later(const ProcessPtr& process, DoorId door, const Lendings::Reading& what);
  void judge_blocks() const;

  // A host that says what it likes.
  void babble(HostNumber rogue);
  post_event::PeerMessage some_message(HostNumber rogue, HostNumber to, Sent& sent);
  void flood(HostNumber rogue);
  CallerName some_caller();

  // Ranks.
  void start_process(Slot& slot);
  void connect(const ProcessPtr& process);
  void knock(const ProcessPtr& process, bool serves);
  void say(const ProcessPtr& process, DoorId door, post_event::DoorMessage message, Tag body);
  void hear(HostNumber host, const PostPtr& post, DoorId door, post_event::DoorMessage message, Tag body);
  void take(HostNumber host, const PostPtr& post, DoorId door, post_event::DoorMessage message, Tag body);
  void told(const ProcessPtr& process, DoorId door, const post_action::DoorMessage& message,
            const std::vector<Tag>& bodies);
  void answered(const ProcessPtr& process, const SaidAnswer& said, Tag body);
  void over(const ProcessPtr& process, const PostOver& over);
  void lose_post(const ProcessPtr& process);
  void work(const ProcessPtr& process);
  void call(const ProcessPtr& process);
  void leave(const PostPtr& post, DoorId door, HostNumber host);

  // Guests.
  void guest_comes();
  void guest_leaves(const ProcessPtr& guest);
  void welcomed(const ProcessPtr& guest, std::uint32_t number);
  // A guest and perhaps others of its host, whether they have left or not. Empty: there was none.
  std::map<Rank, ProcessNumber> some_guests(const Process& caller, PostCall& call);
  std::size_t guests_at(HostNumber host) const;
  void judge_here(const ProcessPtr& process, bool here, ProcessNumber other) const;

  // The supervisor.
  Slot& slot(const RankId& rank) { return slots_[rank_index(rank)]; }
  std::size_t rank_index(const RankId& rank) const;
  void kill_rank(Slot& slot);
  void end_process(const ProcessPtr& process, bool unseen);
  void ended(Slot& slot, const std::string& cause);
  void lose_host(HostNumber host);
  void restart(Slot& slot);
  void tell_roster();
  void send_roster(HostNumber host, const Roster& roster);
  void beat();
  Roster roster();

  bool is(Bug bug) const { return options_.bug == bug; }
  HostNumber some_host() { return static_cast<HostNumber>(random_.below(hosts_.size())); }
  Instant now() const { return scheduler_.now(); }

  RoomOptions options_;
  Random random_;
  Trace trace_;
  Scheduler scheduler_;
  Clock clock_;
  Ledger ledger_;
  Ledger::Faults faults_;
  std::vector<Host> hosts_;
  std::vector<ConnectionPtr> connections_;
  std::vector<Late> late_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> mesh_sizes_;
  std::vector<RosterFailure> failures_;
  std::vector<LifePtr> lives_;
  std::vector<ProcessPtr> zombies_;
  std::map<BlockKey, Block> blocks_;
  std::uint64_t next_block_ = 1;
  std::set<std::pair<HostNumber, HostNumber>> cut_;
  std::map<ProcessNumber, CallerName> callers_;
  std::map<ProcessNumber, HostNumber> host_of_;
  struct KnownGuest {
    HostNumber host = 0;
    Rank number;
    ProcessNumber process = 0;
  };
  std::deque<KnownGuest> known_guests_;  // the newest
  std::set<std::tuple<HostNumber, PostStart, Rank>> guest_numbers_;
  std::vector<ProcessPtr> guests_;
  ProcessPtr passed_;  // a guest whose door the next one takes
  bool one_machine_ = false;
  bool asked_now_ = false;  // a core is fed what somebody asks just now
  PostLimits limits_;
  std::uint64_t roster_number_ = 0;
  std::uint64_t term_ = 1;
  Roster newest_;
  std::uint64_t next_process_ = 1;
  std::uint64_t next_connection_ = 1;
  std::uint64_t next_aside_ = 1;
  std::uint64_t floods_ = 0;
  // By sender, receiver and starts of a line: the newest answer that was sent.
  std::map<std::tuple<HostNumber, HostNumber, PostStart, PostStart>, AnswerNumber> said_;
  bool calling_ = false;
  bool healthy_ = false;
  bool lossy_ = false;
};

// Of each body in it, in order.
template <class Message>
std::vector<Tag> Room::bodies_of(const Post& post, const Message& message) const {
  std::vector<Tag> tags;
  std::visit(
      [&](const auto& one) { each_body(one, [&](const CallBody& body) { tags.push_back(body_of(post, body)); }); },
      message);
  return tags;
}

}  // namespace monarch::sim::calls
