#pragma once

// PeerLines: what a post asks of other hosts' posts, and what they ask of it, with all that its lines (lines.h) keep
// count of: the asks until they are answered, and the answers until they are heard.
//
// Thread: a value of the core's; pure.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/time.h"
#include "transport/messages/post.h"
#include "worker/core/post/bodies.h"
#include "worker/core/post/call_table.h"
#include "worker/core/post/delivery_table.h"
#include "worker/core/post/door_answers.h"
#include "worker/core/post/lines.h"
#include "worker/core/post/post_limits.h"
#include "worker/core/post/post_steps.h"

namespace monarch {

class PeerLines {
 public:
  static constexpr std::size_t kRanksOfAMessage = kRanksOfAnAsk;
  static constexpr std::uint64_t kHeardAnswers = 64;                // then the root says what it has heard
  static constexpr std::uint64_t kHeardBytes = 1U << 20U;           // the same
  static constexpr Duration kHeardWithin = Duration::seconds(1);    // the same, of the first of them
  static constexpr Duration kHelloAgain = Duration::seconds(2);     // while it is not answered
  static constexpr Duration kToldUnreached = Duration::seconds(5);  // a host whose line is not resumed for so long

  // One rank's part of a call has ended.
  struct Ended {
    CallKey call;
    Rank rank;
    CallOutcome outcome;
    HeldBody body;
    Whence whence = Whence::kHere;  // what is said here of another host is
  };
  // Something that another host asks of a rank of this one.
  struct Ordered {
    DeliveryOrigin origin;
    RankId rank;
    SharedContent content;
  };

  PeerLines(HostId self, const PostStart& start, Bodies& bodies, PostActions& out, const PostLimits& limits)
      : self_(self), start_(start), bodies_(bodies), out_(out), limits_(limits) {}

  // What follows happens then.
  void at(Instant now) { now_ = now; }

  // As a root. The ranks of one call on that host, in order; the number of the first, which the others follow.
  AskNumber ask(HostId host, const CallKey& call, const std::vector<Rank>& ranks, SharedContent content);
  void take_back(HostId host, AskNumber number);
  void up(HostId host);
  void down(HostId host);
  // Where its post is has changed: a connection to where it was has ended. `known`: it can be dialled.
  void moved(HostId host, bool known);
  // That host is none of the job any more, or has no post and will have none: nothing that waits there is answered.
  // `outcome_of`: what becomes of it, by rank.
  template <class OutcomeOf>
  void give_up(HostId host, const OutcomeOf& outcome_of);
  // Those of which answers are waited for.
  std::vector<HostId> hosts() const;

  // As a target.
  void running(const DeliveryOrigin& origin, DeliveryTable::Number delivery);
  void answer(const DeliveryOrigin& origin, CallOutcome outcome, HeldBody body);
  // The turn is over: what it has answered goes, to each root together.
  void flush();
  bool has_answers() const { return !saying_.empty(); }

  void hear(HostId from, const post_event::PeerMessage& message);
  void tick();
  // Not later than when something is due.
  Instant next_due() const { return due_; }

  std::vector<Ended> take_ended() { return std::exchange(ended_, {}); }
  std::vector<Ordered> take_ordered() { return std::exchange(ordered_, {}); }
  std::vector<DeliveryTable::Number> take_taken_back() { return std::exchange(taken_back_, {}); }
  // Those that are no deliveries yet.
  std::vector<std::pair<HostId, AskNumber>> take_taken_back_early() { return std::exchange(taken_back_early_, {}); }
  // A root's post that was started again: what its earlier starts have asked nobody waits for.
  std::vector<std::pair<HostId, PostStart>> take_passed() { return std::exchange(passed_, {}); }
  // Hosts that are not reached for long, each told once.
  std::vector<HostId> take_unreached() { return std::exchange(unreached_, {}); }

 private:
  struct Asked {
    CallKey call;
    Rank rank;
    SharedContent content;
  };
  // The root's end.
  struct Out {
    OutLine line;
    std::map<AskNumber, Asked> asked;  // that somebody waits for
    std::uint64_t unsaid = 0;          // answers heard since the target was told
    std::uint64_t unsaid_bytes = 0;
    Instant say_by = Instant::never();
    Instant hello_by = Instant::never();  // it is said again then, unless it is answered
    bool dialled = false;                 // there is a connection, or it is being made
    Instant tell_by = Instant::never();   // that it is not reached
    bool told = false;
  };
  struct Kept {
    CallOutcome outcome;
    HeldBody body;
  };
  // Owners: what is kept, and what is about to be said.
  using KeptPtr = std::shared_ptr<const Kept>;
  struct Saying {
    InLine::Answer answer;
    KeptPtr what;
  };
  // The target's end.
  struct In {
    InLine line;
    std::map<AskNumber, KeptPtr> kept;
    std::map<AskNumber, DeliveryTable::Number> running;
    bool hears_together = false;  // the root knows LineAnswers
    std::vector<Saying> saying;   // with numbers in a row
    std::size_t saying_bytes = 0;
  };

  LineEnds ends_of(const Out& out) const;
  void apply(HostId host, Out& out, const OutLine::Turn& turn);
  void send_asks(HostId host, Out& out, const std::vector<AskNumber>& numbers);
  void say_heard(HostId host, Out& out);
  void has_heard(Out& out);
  void due_at(Instant due) { due_ = std::min(due_, due); }
  void resume(HostId host, Out& out);
  void reach(HostId host, Out& out);
  void end(Out& out, AskNumber number, CallOutcome outcome, HeldBody body = {}, Whence whence = Whence::kHere);
  void say(HostId root, In& in, const InLine::Answer& answer, KeptPtr what);
  void say_alone(HostId root, const In& in, const Saying& saying);
  void flush(HostId root, In& in);
  // What a root hears of one of its asks. False: it hears nothing behind that.
  bool hear_answer(HostId from, Out& out, const PostStart& target, AnswerNumber said, AskNumber number,
                   const CallOutcome& outcome);
  void forget(In& in);
  In* in_of(HostId from, const LineEnds& ends);
  Out* out_of(HostId from, const LineEnds& ends);
  void to_root(HostId root, post_event::PeerMessage message);
  void to_target(HostId target, post_event::PeerMessage message);

  void on(HostId from, const LineHello& message);
  void on(HostId from, const LineAccepted& message);
  void on(HostId from, const LineOther& message);
  void on(HostId from, const LineResync& message);
  void on(HostId from, const LineAsks& message);
  void on(HostId from, const LineAnswer& message);
  void on(HostId from, const LineAnswers& message);
  void on(HostId from, const LineTakeBack& message);
  void on(HostId from, const LineHeard& message);

  HostId self_;
  PostStart start_;
  Bodies& bodies_;
  PostActions& out_;
  const PostLimits limits_;
  std::set<HostId> known_;
  std::map<HostId, Out> outs_;
  std::map<HostId, In> ins_;
  std::set<HostId> saying_;  // roots for which something waits
  Instant now_;
  Instant due_ = Instant::never();
  std::vector<Ended> ended_;
  std::vector<Ordered> ordered_;
  std::vector<DeliveryTable::Number> taken_back_;
  std::vector<std::pair<HostId, AskNumber>> taken_back_early_;
  std::vector<std::pair<HostId, PostStart>> passed_;
  std::vector<HostId> unreached_;
};

template <class OutcomeOf>
void PeerLines::give_up(HostId host, const OutcomeOf& outcome_of) {
  const auto found = outs_.find(host);
  if (found == outs_.end()) return;
  Out& out = found->second;
  for (const AskNumber number : out.line.lost()) {
    const auto asked = out.asked.find(number);
    if (asked == out.asked.end()) continue;
    end(out, number, outcome_of(RankId{asked->second.content->mesh, asked->second.rank}));
  }
  out.dialled = false;
  out.hello_by = Instant::never();
  out.tell_by = Instant::never();
  out.told = false;
}

}  // namespace monarch
