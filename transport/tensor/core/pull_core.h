#pragma once

// PullCore: one pull, from asking where the publication is to one whole version, or an error. It is OK only if the word
// of each owner, looked at after the last byte of him, is that of the version that the registrar had named. Else it
// begins again with a newer one, until its deadline. When it has ended nothing of it runs: whatever its lanes had under
// way was stopped before.
//
//   card → linking → opening → fetching → (again: stopping → opening) → ended
//              no place for a link: stopping → full → linking
//              every error: stopping → ended, or with `next_generation` card again
//              an owner that has ended: stopping → verdict (how it has ended) → ended
//
// Thread: a value of the pull's; pure.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "transport/base/time.h"
#include "transport/tensor/core/version.h"

namespace monarch::tensor {

struct PullOptions {
  std::string publication;                     // as people call it: "weights of trainer"
  std::string nobody = "nobody publishes it";  // what it says while there is no card
  std::optional<VersionId> newer_than;
  Instant deadline = Instant::never();
  bool next_generation = false;  // a gang that ends is no error: its next generation is waited for
};

enum class PullEnd : std::uint8_t {
  kOk,
  kInvalid,     // what is wanted does not fit what is published
  kNotCovered,  // nobody has some of it
  kPeerGone,    // the gang's generation is over
  kEnded,       // it is published no more, and there is nothing newer
  kTimeout,
  kCancelled,
  kUnreachable,  // an owner that lives is not reached
  kDevice,       // a GPU that it is pulled into has failed, or may not be used now
};

namespace pull_event {

struct CardCame {  // the registrar's, of that generation
  std::uint64_t generation = 0;
};
struct CardLost {  // there is none, and will be none
  std::string text;
  bool ended = false;  // in order: it is published no more
};
struct Linked {};  // to the registrar
struct Opened {    // a plan is made: these owners have what is wanted
  std::uint64_t number = 0;
  std::set<std::uint32_t> owners;
};
struct Waits {  // for whom, as the registrar says; empty: for nobody who is late
  std::string text;
};
struct Unfit {
  PullEnd why = PullEnd::kInvalid;
  std::string text;
};
struct Over {};
struct Fetched {  // all rows of that owner are here
  std::uint32_t owner = 0;
};
struct Word {  // of that owner's slot, after that
  std::uint32_t owner = 0;
  std::uint64_t word = 0;
};
// A link that stood has ended: its other side has, or let it go. Whether that lives a new link tells.
struct LinkEnded {
  std::string text;
};
// Who lives has no place for a link of ours; in so long there may be one.
struct Full {
  std::string text;
  Duration again;
};
// Nobody is where its card says: its process has ended.
struct OwnerGone {
  std::string text;
};
// A link is not to be had, or stands still: its other side may live.
struct Unreached {
  std::string text;
};
// By the roster: what was pulled from that generation is over.
struct GenerationOver {
  std::uint64_t generation = 0;
  std::string text;
};
struct Stopped {};     // no lane has anything under way
struct DeviceFailed {  // what is pulled into
  std::string text;
};
struct Cancel {};
struct Tick {};

}  // namespace pull_event

using PullEvent =
    std::variant<pull_event::CardCame, pull_event::CardLost, pull_event::Linked, pull_event::Opened, pull_event::Waits,
                 pull_event::Unfit, pull_event::Over, pull_event::Fetched, pull_event::Word, pull_event::LinkEnded,
                 pull_event::Full, pull_event::OwnerGone, pull_event::Unreached, pull_event::GenerationOver,
                 pull_event::Stopped, pull_event::DeviceFailed, pull_event::Cancel, pull_event::Tick>;

namespace pull_action {

struct AskCard {  // of a generation after that one
  std::uint64_t since = 0;
};
struct Link {};  // to the registrar; what was linked before is let go
struct Open {
  std::optional<VersionId> newer_than;
};
struct Fetch {
  std::uint32_t owner = 0;
  std::uint64_t number = 0;
};
struct LookAtWord {
  std::uint32_t owner = 0;
  std::uint64_t number = 0;
};
struct SayRead {  // to all whom it was said that it is read; the version is left, or had
  std::uint64_t number = 0;
  bool whole = false;
};
struct Stop {          // everything that a lane has under way; Stopped follows
  bool links = false;  // they end, too: nobody waits for a place with another that somebody else waits for
};
struct End {  // nobody waits for a card any more, either
  PullEnd how = PullEnd::kOk;
  VersionId version;  // of kOk; of the others what was pulled from, in generation 0 nothing
  std::string text;   // of the others
};

}  // namespace pull_action

using PullAction = std::variant<pull_action::AskCard, pull_action::Link, pull_action::Open, pull_action::Fetch,
                                pull_action::LookAtWord, pull_action::SayRead, pull_action::Stop, pull_action::End>;
using PullActions = std::vector<PullAction>;

class PullCore {
 public:
  explicit PullCore(PullOptions options) : options_(std::move(options)) {}

  PullActions begin(Instant now);
  PullActions step(const PullEvent& event, Instant now);
  Instant next_due() const;
  bool has_ended() const { return phase_ == Phase::kEnded; }
  // "nobody publishes it".
  std::string waits_for() const;

 private:
  enum class Phase : std::uint8_t { kCard, kLinking, kOpening, kFetching, kStopping, kFull, kVerdict, kEnded };
  // What comes after the lanes have stopped.
  enum class Then : std::uint8_t { kOpenAgain, kLinkAgain, kLinkLater, kNextGeneration, kAskVerdict, kEnd };

  void on(const pull_event::CardCame& event);
  void on(const pull_event::CardLost& event);
  void on(const pull_event::Linked& event);
  void on(const pull_event::Opened& event);
  void on(const pull_event::Waits& event) { late_ = event.text; }
  void on(const pull_event::Unfit& event);
  void on(const pull_event::Over& event);
  void on(const pull_event::Fetched& event);
  void on(const pull_event::Word& event);
  void on(const pull_event::LinkEnded& event);
  void on(const pull_event::Full& event);
  void on(const pull_event::OwnerGone& event);
  void on(const pull_event::Unreached& event);
  void on(const pull_event::GenerationOver& event);
  void on(const pull_event::Stopped& event);
  void on(const pull_event::DeviceFailed& event);
  void on(const pull_event::Cancel& event);
  void on(const pull_event::Tick& event);

  void to(Phase phase);
  void ask_card();
  void link();
  void ask_verdict();
  bool is_linked() const;
  void stop(Then then);
  void fail(PullEnd how, std::string text);
  void lose_generation(const std::string& text);

  const PullOptions options_;
  PullActions out_;
  Instant now_;
  Instant begun_;
  Phase phase_ = Phase::kCard;
  Then then_ = Then::kEnd;
  pull_action::End end_;
  std::uint64_t since_ = 0;  // generations up to it are over
  std::uint64_t generation_ = 0;
  std::optional<VersionId> newer_than_;
  std::uint64_t number_ = 0;          // that is fetched
  std::set<std::uint32_t> fetching_;  // owners of whom rows are missing
  std::set<std::uint32_t> unsure_;    // owners whose word was not looked at since
  std::uint64_t begun_again_ = 0;     // how often, since a version was written over
  int links_ended_ = 0;               // of this generation
  std::string late_;                  // for whom the registrar waits
  std::string gone_;                  // who has ended, as a connection tells
  std::string full_;                  // who has no place
  Instant again_ = Instant::never();  // he is asked then
  Instant verdict_due_ = Instant::never();
};

}  // namespace monarch::tensor
