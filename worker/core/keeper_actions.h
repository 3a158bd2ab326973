#pragma once

// What a keeper's core is told and what it orders: closed sets of values. An action names the rank and generation that
// it is for, may be performed twice, and its outcome comes back as an event.
//
// Thread: values.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/messages/viewer.h"

namespace monarch {

namespace keeper_event {

struct Tick {};  // time has passed: next_due() is here

// Orders from the guarded process are the wire's own values: Reserve, Start, Stop, Signal, Tell, CommitAnswer,
// KeeperLease, KeeperForget, KeeperReady, KeeperLetLive, KeeperShutdown; and this one, whose key travels in the frame's
// header.
struct Spawn {
  Incarnation key;
  KeeperSpawn spawn;
};

// Outcomes of actions about one incarnation.
struct Forked {
  Incarnation key;
  std::int32_t pid = 0;
};
struct ForkFailed {
  Incarnation key;
  std::int32_t error = 0;
  std::string detail;
};
struct Executed {  // the new program has replaced the child's image
  Incarnation key;
};
struct ExecFailed {  // the child says which step failed; its exit follows
  Incarnation key;
  std::int32_t error = 0;
  std::string detail;
  std::int32_t setup_code = 0;  // not zero: it was the mesh's setup, which ended with this
};
struct Exited {  // the leader; of after_our_signal the driver says nothing
  Incarnation key;
  RankEnd end;
  // Leaders whose exit had begun by then, nobody knows when: one that gives back a device or much memory is reaped
  // after a peer that heard of it by a socket.
  std::vector<Incarnation> ending;
};
struct GroupTold {  // a signal went to all of its group
  Incarnation key;
};
struct TreeEmpty {  // answers to CheckTree
  Incarnation key;
};
struct TreeBusy {
  Incarnation key;
  bool own = false;  // what its shell waited for was killed by KillRank, and is not dead yet
};
struct Spoke {  // what it has said of itself so far
  Incarnation key;
  bool ready = false;
  RankProgress progress;
  TalkDrops drops = {};
};

struct Committing {  // it has written a checkpoint; at most one of a rank is under way
  Incarnation key;
  CommitRequest commit;
};

struct AtGate {  // it waits for its place
  Incarnation key;
};

// The guarded process.
struct GuardedForked {
  std::int32_t pid = 0;
};
struct GuardedForkFailed {
  std::int32_t error = 0;
};
struct Stood {  // its process begins or ceases to stand still
  Incarnation key;
  Standstill standstill = Standstill::kNone;
};
struct GuardedSpoke {};  // any frame of it
struct GuardedPong {
  std::uint64_t number = 0;
};
struct GuardedSteps {  // that its loop has done since it was started; asked with each ping, of the memory that it lends
  std::uint64_t done = 0;
};
struct GuardedExited {
  RankEnd end;
};
struct GuardedHungUp {};  // it closed its door but has not exited

struct Terminated {  // the keeper itself was sent TERM, INT or HUP
  std::int32_t signal = 0;
};

}  // namespace keeper_event

using KeeperEvent =
    std::variant<keeper_event::Tick, Reserve, Start, Stop, Signal, Tell, CommitAnswer, KeeperLease, KeeperForget,
                 KeeperReady, KeeperLetLive, KeeperShutdown, keeper_event::Spawn, keeper_event::Forked,
                 keeper_event::ForkFailed, keeper_event::Executed, keeper_event::ExecFailed, keeper_event::Exited,
                 keeper_event::GroupTold, keeper_event::TreeEmpty, keeper_event::TreeBusy, keeper_event::Spoke,
                 keeper_event::Stood, keeper_event::Committing, keeper_event::AtGate, keeper_event::GuardedForked,
                 keeper_event::GuardedForkFailed, keeper_event::GuardedSpoke, keeper_event::GuardedPong,
                 keeper_event::GuardedSteps, keeper_event::GuardedExited, keeper_event::GuardedHungUp,
                 keeper_event::Terminated>;

namespace keeper_action {

struct ForkRank {  // into its containment, up to its gate; answered by Forked or ForkFailed
  Incarnation key;
  Start gang;     // what its ranks have in common; without them
  RankStart own;  // its program and workdir are there; ready_port where the pipes' reader has to watch it
};
struct TakeOver {  // the process of a standby is this rank from now on: its doors, pipes and containment are; OpenGate
                   // tells it so
  Incarnation from;
  ForkRank as;  // what it would be forked with
};
struct ForkSpawned {  // without a gate; answered as ForkRank
  Incarnation key;
  KeeperSpawn spawn;
};
struct OpenGate {  // answered by Executed or ExecFailed, if the child lives that long
  Incarnation key;
};
struct SignalRank {  // nothing once the leader was reaped; answered by GroupTold where kAuto found that it meant the
                     // group
  Incarnation key;
  std::int32_t number = 0;
  SignalTo to = SignalTo::kGroup;
};
struct TellRank {  // an event for who listens there
  Incarnation key;
  std::string json;
};
struct AnswerCommit {  // to who asked
  Incarnation key;
  CommitAnswer answer;
};
struct FreezeTree {
  Incarnation key;
};
struct ThawTree {
  Incarnation key;
};
struct KillRank {  // SIGKILL to the rank's own process: its leader, and what that waits for where it is a shell
  Incarnation key;
};
struct KillTree {  // SIGKILL to everything in the containment
  Incarnation key;
};
struct CheckTree {  // answered by TreeEmpty or TreeBusy; ordered only once the leader has exited
  Incarnation key;
};
struct Reap {  // the tree is empty: let go of the leader's zombie and remove the containment. The pipes stay.
  Incarnation key;
};
struct Drop {  // forgotten: close the pipes
  Incarnation key;
};
struct Report {
  RankReport report;
};
struct Pipes {  // hand out the pipes' read ends, if there are any
  Incarnation key;
};
struct HoldReservation {  // or say what is held already; the driver answers the guarded process
  Reserve reserve;
};
struct RefuseReservation {
  Reserve reserve;
  std::string why;
};
struct ReleaseReservation {
  MeshId mesh;
  GangId gang;
  Generation generation;
};
struct Refused {  // for the log
  Incarnation key;
  std::string why;
};
struct ForkGuarded {  // answered by GuardedForked or GuardedForkFailed
  std::uint32_t starts = 1;
};
struct SignalGuarded {
  std::int32_t number = 0;
};
struct KillGuarded {
  std::string why;
};
struct SayHello {  // has_stash, incarnation and keeper_pid are the driver's to fill in
  KeeperHello hello;
};
struct Ping {
  std::uint64_t number = 0;
};
struct TellEnded {           // nothing is kept any more but the guarded process: look whether that is so, and tell it
  std::uint32_t wedged = 0;  // that could not be killed
};
struct TellWarned {  // its end was foretold so often
  std::uint32_t warnings = 0;
};
struct KillDescendants {             // the last act before Exit: whatever is still below this process
  Duration grace;                    // to end by itself: the daemons of spawned workers clean up after them
  std::vector<std::int32_t> spared;  // pids of children that live on, with all below them
};
struct Exit {
  std::int32_t code = 0;
};

}  // namespace keeper_action

using KeeperAction =
    std::variant<keeper_action::ForkRank, keeper_action::TakeOver, keeper_action::ForkSpawned, keeper_action::OpenGate,
                 keeper_action::SignalRank, keeper_action::TellRank, keeper_action::AnswerCommit,
                 keeper_action::FreezeTree, keeper_action::ThawTree, keeper_action::KillRank, keeper_action::KillTree,
                 keeper_action::CheckTree, keeper_action::Reap, keeper_action::Drop, keeper_action::Report,
                 keeper_action::Pipes, keeper_action::HoldReservation, keeper_action::RefuseReservation,
                 keeper_action::ReleaseReservation, keeper_action::Refused, keeper_action::ForkGuarded,
                 keeper_action::SignalGuarded, keeper_action::KillGuarded, keeper_action::SayHello, keeper_action::Ping,
                 keeper_action::TellEnded, keeper_action::KillDescendants, keeper_action::Exit,
                 keeper_action::TellWarned>;

using KeeperActions = std::vector<KeeperAction>;

}  // namespace monarch
