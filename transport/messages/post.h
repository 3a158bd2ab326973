#pragma once

// The messages of calls: between a process and its host's post (the door), and between the posts of two hosts (lines).
// A post is a process beside the daemon that carries calls; how it decides is worker/core/post's.
//
// Of a generation its counter counts here: it never resets, and it is what a rank knows of itself.
//
// Thread: values.

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <monarch/codec.hpp>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/claim.h"
#include "transport/messages/message.h"
#include "transport/messages/roster.h"

namespace monarch {

inline constexpr std::uint32_t kPostDoorVersion = 4;  // both ends go by the lower of what they say
inline constexpr std::uint32_t kOldestPostDoorVersion = 2;
inline constexpr std::uint32_t kCountedDoorVersion = 3;    // from which on readers of blocks are counted
inline constexpr std::uint32_t kGuestsDoorVersion = 4;     // from which on a guest may serve
inline constexpr std::size_t kBodyHereBytes = 48U << 10U;  // a larger body goes beside its message

// ---- daemon ↔ post ----

// One start of a host's post. Those of one host are ordered: a later one is greater.
struct PostStart {
  std::uint64_t worker = 0;  // which worker of the host it belongs to: they are counted
  std::uint64_t number = 0;  // of its starts by that worker's keeper
  auto operator<=>(const PostStart&) const = default;
};
MONARCH_FIELDS(PostStart, worker, number)

// What a daemon starts a post with, as sealed memory in its standard input; and the first word of each daemon that
// connects to it later, which proves by the secret that it is one.
struct PostSetup {
  JobUuid job;
  std::string host_name;
  HostId host;
  PostStart start;      // a daemon's that connects later: it says nothing
  std::string address;  // numeric: where it listens for others
  std::string public_key;
  std::string secret_key;
  std::string directory;  // of its two doors, for callers and ranks and for the daemon
  std::int32_t keeper_pid = 0;
  std::uint16_t first_port = 0;  // it listens at the highest free one of these; 0: at any
  std::uint16_t last_port = 0;
  bool one_machine = false;  // all hosts of the job are this one
};
MONARCH_MESSAGE(PostSetup, 176, job, host_name, host, start, address, public_key, secret_key, directory, keeper_pid,
                first_port, last_port, one_machine)

enum class PostWordKind : std::uint8_t {
  kWaiting,    // a call without a deadline has waited for long
  kUnreached,  // two hosts do not reach each other
};
constexpr PostWordKind monarch_enum_max(PostWordKind) { return PostWordKind::kUnreached; }

// Something that a post has seen and that is told to people, once.
struct PostWord {
  std::uint64_t number = 0;  // they are counted, from 1, by each start of the post
  PostWordKind kind = PostWordKind::kWaiting;
  std::string text;
  bool operator==(const PostWord&) const = default;
};
MONARCH_FIELDS(PostWord, number, kind, text)

inline constexpr std::size_t kPostWords = 8;  // of a report: the newest

// What a beat says of the host's post.
struct PostReport {
  std::uint16_t port = 0;
  Term roster_term;  // which roster it goes by
  std::uint64_t roster_number = 0;
  std::uint64_t calls = 0;   // under way, of callers here
  std::uint64_t doors = 0;   // connections of ranks and callers
  std::uint64_t bytes = 0;   // of bodies that it has
  std::uint64_t called = 0;  // since it started
  std::uint64_t start = 0;   // which of its host's posts this is; 0: none
  std::vector<PostWord> words;
  std::string before = {};              // how the one before it has ended, as its daemon saw it; empty: there was none
  std::vector<PostWish> wishes = {};    // that are not answered; no more than fit
  std::vector<ClaimOwner> owners = {};  // of processes that are there now
  bool operator==(const PostReport&) const = default;
};
MONARCH_MESSAGE(PostReport, 177, port, roster_term, roster_number, calls, doors, bytes, called, start, words, before,
                wishes, owners)

// daemon → post: a process of a rank of this host has ended.
struct PostRankEnded {
  Incarnation process;
  std::string cause;
};
MONARCH_MESSAGE(PostRankEnded, 178, process, cause)

// ---- At the door ----

// Bytes that a post carries and never looks into, as it has them.
using BodyId = StrongId<struct BodyIdTag, std::uint64_t>;

enum class BodyWay : std::uint8_t {
  kNone,
  kHere,    // in the message
  kBeside,  // the next of what comes with the message: a memfd that nobody changes at a door, a frame between posts
};
constexpr BodyWay monarch_enum_max(BodyWay) { return BodyWay::kBeside; }

// Arguments, or a result.
struct CallBody {
  std::uint64_t bytes = 0;
  BodyWay way = BodyWay::kNone;
  codec::Bytes here;
  std::uint64_t from = 0;   // of one beside: where in that memory it begins
  std::uint64_t block = 0;  // the number that its lender gives that memory; 0: memory that nobody writes any more
  BodyId at;                // where this process has it, while it has it; it does not travel. 0: nowhere
  bool operator==(const CallBody&) const = default;
};
MONARCH_FIELDS(CallBody, bytes, way, here, from, block)
MONARCH_ADDED_FIELDS(CallBody, 2)

enum class OutcomeKind : std::uint8_t {
  kValue,
  kRemoteError,  // the endpoint let an error out; the actor lives
  kRankLost,     // it has ended, or is not up
  kDeadline,
  kBusy,  // too much waits there; it has not run
  kGone,  // nobody knows whether it has run
  kCancelled,
  kRefused,  // nothing like it can be called; it has not run
};
constexpr OutcomeKind monarch_enum_max(OutcomeKind) { return OutcomeKind::kRefused; }

// Of one rank of a call.
struct CallOutcome {
  OutcomeKind kind = OutcomeKind::kValue;
  std::string type;  // of what a kRemoteError let out
  std::string text;
  std::string traceback;
  std::uint64_t generation = 0;  // of the rank that says so; 0: it is not one that does
  CallBody body;                 // of a kValue
  codec::Bytes personal;         // of a card: the personal secret of who asked (transport/base/sha256.h)
  bool operator==(const CallOutcome&) const = default;
};
MONARCH_FIELDS(CallOutcome, kind, type, text, traceback, generation, body, personal)

struct ActorEndpoint {
  std::string name;
  std::string signature;  // "*": any
  bool overlaps = false;  // it does not wait for what its actor runs
  bool operator==(const ActorEndpoint&) const = default;
};
MONARCH_FIELDS(ActorEndpoint, name, signature, overlaps)

struct RankActor {
  std::string name;
  std::string class_name;
  std::vector<ActorEndpoint> endpoints;
  bool operator==(const RankActor&) const = default;
};
MONARCH_FIELDS(RankActor, name, class_name, endpoints)

// process → post, its first word at the door. A rank that both serves and calls comes twice: what it may not say while
// too much of what it has called waits must not hold up what it answers.
//
// Who is no rank of the job is a guest. One that serves gets a number with its welcome, and is called by it as a rank
// of kGuestsMesh, until its connection ends.
struct PostHello {
  std::uint32_t version = kOldestPostDoorVersion;  // the latest that it speaks
  std::string mesh;                                // its rank's; empty: it is no rank of the job
  std::uint32_t rank = 0;                          // within the mesh
  std::uint64_t generation = 0;                    // of the rank
  bool serves = false;                             // it takes what is called of these actors; else it calls
  std::vector<RankActor> actors;
  bool watches = false;  // it wants to hear of each failure
  ClaimOwner owner;      // by which this process has claims; 0: it has none
};
MONARCH_MESSAGE(PostHello, 144, version, mesh, rank, generation, serves, actors, watches, owner)
MONARCH_ADDED_FIELDS(PostHello, 1)

// post → process, the answer.
struct PostWelcome {
  std::uint32_t version = kOldestPostDoorVersion;  // by which both go from here on
  std::string host;
  std::vector<RosterMesh> meshes;
  std::uint64_t calls = 0;       // that a caller may have under way; with more its door is not read
  std::uint64_t call_bytes = 0;  // the same, of their bodies
  std::uint64_t body_bytes = 0;  // of one call, or of a result; more is refused
  std::string address;           // numeric, of this host for others
  std::uint16_t first_port = 0;  // where a rank may listen; 0: anywhere
  std::uint16_t last_port = 0;
  std::uint32_t guest = 0;      // the number of a guest that serves; 0: it is none
  std::uint64_t far_bytes = 0;  // as body_bytes, of what goes to another host
  bool operator==(const PostWelcome&) const = default;
};
MONARCH_MESSAGE(PostWelcome, 145, version, host, meshes, calls, call_bytes, body_bytes, address, first_port, last_port,
                guest, far_bytes)
MONARCH_ADDED_FIELDS(PostWelcome, 2)

// first, first + step, … : `count` ranks.
struct RankSteps {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
  std::uint32_t step = 1;
};
MONARCH_FIELDS(RankSteps, first, count, step)

// What is called, the same for all ranks.
struct CallTarget {
  std::string actor;
  std::string endpoint;
  std::string signature;
  bool operator==(const CallTarget&) const = default;
};
MONARCH_FIELDS(CallTarget, actor, endpoint, signature)

// process → post.
struct PostCall {
  std::uint64_t id = 0;  // the caller's, each once
  std::string mesh;
  std::vector<RankSteps> ranks;  // each once
  CallTarget target;
  bool quiet = false;               // of values nobody wants to hear
  std::optional<Instant> deadline;  // by the boot clock of this host
  CallBody body;
  std::string host;  // of kGuestsMesh: whose guests; empty: the caller's own
};
MONARCH_MESSAGE(PostCall, 146, id, mesh, ranks, target, quiet, deadline, body, host)
MONARCH_ADDED_FIELDS(PostCall, 1)

struct PostCancel {
  std::uint64_t id = 0;
};
MONARCH_MESSAGE(PostCancel, 147, id)

// post → process: one rank's outcome of a call.
struct PostAnswer {
  std::uint64_t id = 0;
  std::uint32_t rank = 0;
  CallOutcome outcome;
  bool here = false;  // it was answered on this machine
  bool operator==(const PostAnswer&) const = default;
};
MONARCH_MESSAGE(PostAnswer, 148, id, rank, outcome, here)
MONARCH_ADDED_FIELDS(PostAnswer, 1)

// post → process: all have been said; nothing more of this call follows.
struct PostOver {
  std::uint64_t id = 0;
  std::string refused;  // the call as it is: nothing was asked of any rank
  bool operator==(const PostOver&) const = default;
};
MONARCH_MESSAGE(PostOver, 149, id, refused)

// Who calls.
struct CallerName {
  std::string mesh;  // empty: no rank of the job
  RankId rank;
  std::uint64_t generation = 0;
  bool operator==(const CallerName&) const = default;
};
MONARCH_FIELDS(CallerName, mesh, rank, generation)

// post → rank: run this. Answered once.
struct PostDeliver {
  std::uint64_t delivery = 0;
  CallTarget target;
  CallerName caller;
  CallBody body;
  bool here = false;  // it was asked on this machine
  bool operator==(const PostDeliver&) const = default;
};
MONARCH_MESSAGE(PostDeliver, 150, delivery, target, caller, body, here)
MONARCH_ADDED_FIELDS(PostDeliver, 1)

// post → rank: nobody waits for it any more. What has not begun is answered as kCancelled, and not run.
struct PostTakeBack {
  std::uint64_t delivery = 0;
  bool operator==(const PostTakeBack&) const = default;
};
MONARCH_MESSAGE(PostTakeBack, 151, delivery)

// rank → post: kValue or kRemoteError; kCancelled of what was taken back; of what the rank has not run kRankLost, since
// it is about to end, or kRefused; kRefused of a result that is too large, too.
struct PostReply {
  std::uint64_t delivery = 0;
  CallOutcome outcome;
  bool keeps = false;  // what it has run still has the arguments, which came beside; else nobody reads them any more
};
MONARCH_MESSAGE(PostReply, 152, delivery, outcome, keeps)
MONARCH_ADDED_FIELDS(PostReply, 1)

// post → whoever watches: a failure.
struct PostFailure {
  RosterFailure failure;
  bool operator==(const PostFailure&) const = default;
};
MONARCH_MESSAGE(PostFailure, 153, failure)

// post → process: its connection is closed, since it has said what nobody may say, or its place is another's.
struct PostClosed {
  std::string why;
};
MONARCH_MESSAGE(PostClosed, 154, why)

// rank → post: an actor of the rank waits for a call of this connection and does nothing else until it is over, or
// waits for it no more.
struct PostWait {
  std::uint64_t id = 0;        // of the call
  std::string actor;           // empty: nobody waits any more
  std::uint64_t delivery = 0;  // that the actor runs; 0: it is being made
};
MONARCH_MESSAGE(PostWait, 155, id, actor, delivery)

// post → rank: the answer to a PostWait that names an actor.
struct PostRing {
  std::uint64_t id = 0;
  std::string ring;  // how it would wait for ever; empty: it does not, as far as is known
  bool operator==(const PostRing&) const = default;
};
MONARCH_MESSAGE(PostRing, 156, id, ring)

// rank → post: a card of the rank: a text by which others find it, until this connection ends. It may have secrets, and
// is shown nowhere. Of no bytes: there is none any more. Who wants it calls the actor kCardsActor of the rank: the
// endpoint is the card's name, the signature the generation in decimal of which he has it, or 0. A post answers that
// itself, once there is a card of a later one, and gives a rank with it what is made for that rank of the card's key.
struct PostCard {
  std::string name;
  CallBody text;
  codec::Bytes key;  // of kPersonalSecretBytes; empty: all who ask have the text alone
};
MONARCH_MESSAGE(PostCard, 157, name, text, key)

// ---- At the door, from version 3 on. A lender, process or post, writes in a block again only once it has heard that
// nobody reads it: a reader says when it has let a body go, the post counts them, and tells the lender.

struct SaidAnswer {
  std::uint64_t id = 0;
  std::uint32_t rank = 0;
  CallOutcome outcome;  // with a body in the message, or none
  bool last = false;    // as a PostOver behind it
  bool here = false;    // it was answered on this machine
  bool operator==(const SaidAnswer&) const = default;
};
MONARCH_FIELDS(SaidAnswer, id, rank, outcome, last, here)
MONARCH_ADDED_FIELDS(SaidAnswer, 1)

// post → process: what a turn of the post had for it, in order. One whose body is beside goes as a PostAnswer.
struct PostAnswers {
  std::vector<SaidAnswer> answers;
  bool operator==(const PostAnswers&) const = default;
};
MONARCH_MESSAGE(PostAnswers, 158, answers)

// process → post: it reads what came beside a message no more: the arguments of a delivery that it has answered as one
// that keeps them, or a rank's answer to a call of its.
struct PostLetGo {
  std::uint64_t delivery = 0;  // 0: it is about an answer
  std::uint64_t id = 0;
  std::uint32_t rank = 0;
};
MONARCH_MESSAGE(PostLetGo, 159, delivery, id, rank)

// post → process: of that block of its, once for each time that it was lent.
struct PostFree {
  std::uint64_t block = 0;
  bool unsure = false;  // whether anybody has it the kernel alone knows; else nobody reads it any more
  bool operator==(const PostFree&) const = default;
};
MONARCH_MESSAGE(PostFree, 170, block, unsure)

inline constexpr const char* kCardsActor = "@cards";
// The guests that serve at one host's post, as if they were ranks of a mesh. No mesh of a job has that name.
inline constexpr const char* kGuestsMesh = "@guests";
inline constexpr MeshId kGuestsMeshId{0xffff'fffe};
inline constexpr std::size_t kCardNameBytes = 64;
inline constexpr std::size_t kActorNameBytes = 256;  // of an endpoint's, too
inline constexpr std::size_t kSignatureBytes = 8U << 10U;
inline constexpr std::size_t kRanksOfAnAsk = 4'096;
// Of a message that has several.
inline constexpr std::size_t kAnswersTogether = 1'024;
inline constexpr std::size_t kAnswersTogetherBytes = kBodyHereBytes;
// What a caller may have under way at one actor of a rank; more wait at his post.
inline constexpr std::size_t kWindowCalls = 1'024;
inline constexpr std::uint64_t kWindowBytes = 64U << 20U;
// Of a body, on one host and to another. One that is too large for another is memory of its lender alone.
inline constexpr std::uint64_t kBodyBytes = 1U << 30U;
inline constexpr std::uint64_t kFarBodyBytes = 64U << 20U;
inline constexpr std::size_t kOutcomeTextBytes = 64U << 10U;  // of each text of an outcome that a rank says

// ---- post ↔ post ----

inline constexpr std::uint32_t kLineVersion = 2;  // 1: a root hears no LineAnswers

using AskNumber = std::uint64_t;     // from 1
using AnswerNumber = std::uint64_t;  // from 1; of a line, as long as its root and its target are the same starts

// Which line a message is of: that of one root, who asks, to one target, who is asked.
struct LineEnds {
  HostId root;
  PostStart root_start;
  PostStart target_start;  // of LineHello and LineOther: see there
  bool operator==(const LineEnds&) const = default;
};
MONARCH_FIELDS(LineEnds, root, root_start, target_start)

// root → target, on a new connection, on a new way to the target, and when the target missed a number: before it is
// answered no ask is sent. The target's start in its ends says nothing.
struct LineHello {
  LineEnds ends;
  std::optional<PostStart> target;  // whom it means; nothing: whoever is there
  std::uint64_t epoch = 0;          // how many hellos the root has said on this line
  AskNumber low = 1;                // all below have ended
  AnswerNumber heard = 0;           // all answers up to it
  std::uint32_t version = 1;        // of the line, that the root speaks
  bool operator==(const LineHello&) const = default;
};
MONARCH_MESSAGE(LineHello, 160, ends, target, epoch, low, heard, version)
MONARCH_ADDED_FIELDS(LineHello, 1)

// target → root, the answer: what it takes next. What it kept of its answers is said again behind it.
struct LineAccepted {
  LineEnds ends;
  AskNumber next = 1;
  std::uint64_t epoch = 0;
  bool operator==(const LineAccepted&) const = default;
};
MONARCH_MESSAGE(LineAccepted, 161, ends, next, epoch)

// target → root, the other answer: the target is another start than the one that was meant, the one in the ends.
struct LineOther {
  LineEnds ends;
  std::uint64_t epoch = 0;
  bool operator==(const LineOther&) const = default;
};
MONARCH_MESSAGE(LineOther, 162, ends, epoch)

// target → root: numbers are missing before one that came.
struct LineResync {
  LineEnds ends;
  bool operator==(const LineResync&) const = default;
};
MONARCH_MESSAGE(LineResync, 163, ends)

// Where a large body is on its way, beside the messages: by which connection for bodies, and its number there.
struct AsideBody {
  std::uint64_t link = 0;
  std::uint64_t number = 0;
  bool operator==(const AsideBody&) const = default;
};
MONARCH_FIELDS(AsideBody, link, number)

struct AskedRank {
  Rank rank;
  bool nobody = false;  // nobody waits for it any more; it is a number and nothing else
  bool operator==(const AskedRank&) const = default;
};
MONARCH_FIELDS(AskedRank, rank, nobody)

// root → target: asks with the numbers from `first` on, one for each rank.
struct LineAsks {
  LineEnds ends;
  AskNumber first = 1;
  AnswerNumber heard = 0;
  MeshId mesh;
  std::vector<AskedRank> ranks;
  CallTarget target;
  CallerName caller;
  CallBody body;
  std::optional<AsideBody> aside;  // there the body is
  bool operator==(const LineAsks&) const = default;
};
MONARCH_MESSAGE(LineAsks, 164, ends, first, heard, mesh, ranks, target, caller, body, aside)

// target → root.
struct LineAnswer {
  LineEnds ends;
  AnswerNumber said = 0;
  AskNumber number = 0;
  CallOutcome outcome;
  std::optional<AsideBody> aside;  // there its body is
  bool operator==(const LineAnswer&) const = default;
};
MONARCH_MESSAGE(LineAnswer, 165, ends, said, number, outcome, aside)

struct NumberedOutcome {
  AskNumber number = 0;
  CallOutcome outcome;  // with a body in the message, or none
  bool operator==(const NumberedOutcome&) const = default;
};
MONARCH_FIELDS(NumberedOutcome, number, outcome)

// target → root, of line version 2: several, with the numbers from `said` on.
struct LineAnswers {
  LineEnds ends;
  AnswerNumber said = 0;
  std::vector<NumberedOutcome> answers;
  bool operator==(const LineAnswers&) const = default;
};
MONARCH_MESSAGE(LineAnswers, 169, ends, said, answers)

// root → target: nobody waits for this one any more.
struct LineTakeBack {
  LineEnds ends;
  AskNumber number = 0;
  bool operator==(const LineTakeBack&) const = default;
};
MONARCH_MESSAGE(LineTakeBack, 166, ends, number)

// root → target, where it has nothing to ask.
struct LineHeard {
  LineEnds ends;
  AnswerNumber heard = 0;
  bool operator==(const LineHeard&) const = default;
};
MONARCH_MESSAGE(LineHeard, 167, ends, heard)

inline constexpr std::uint64_t kBodyAsideBytes = 256U << 10U;  // from so many on a body goes by a connection of its own

enum class BodyLinkKind : std::uint8_t {
  kAsk,    // who has dialled → who was dialled: he wants one
  kOffer,  // the answer, also unasked: who was dialled listens at `port`
  kOver,   // either: `link` has ended
};
constexpr BodyLinkKind monarch_enum_max(BodyLinkKind) { return BodyLinkKind::kOver; }

// Of a connection for bodies between two posts, or two vaults (transport/peers/body_links.h).
struct BodyLinkWord {
  BodyLinkKind kind = BodyLinkKind::kAsk;
  bool with_aes = false;  // who asks has AES-256-GCM; both use it
  std::uint64_t link = 0;
  std::uint16_t port = 0;
  codec::Bytes name;    // what who connects says first
  codec::Bytes secret;  // the keys come from it
  bool operator==(const BodyLinkWord&) const = default;
};
MONARCH_MESSAGE(BodyLinkWord, 168, kind, with_aes, link, port, name, secret)

}  // namespace monarch
