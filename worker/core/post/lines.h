#pragma once

// Lines: how two posts keep count of what one has asked of the other, whatever happens to the connection between
// them. The asks of one post (the root) to another (the target) have numbers without holes; the target takes each
// number once, in order; a connection that was lost is resumed at the next number; a target that was started again is
// known by its start, and what its predecessor was sent and did not answer has an unknown end. Answers have numbers
// of their own, in the order in which they are said, and are kept until the root has heard them.
//
// From that follow: each ask is answered once, it runs at most once, and asks of one root begin in their order. What an
// ask is about is not known here, nor a byte of it. An ask that nobody waits for any more is sent all the same, as one
// of nothing.
//
// Thread: values; pure.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "transport/messages/post.h"

namespace monarch {

// The root's end of a line.
class OutLine {
 public:
  // What is to be done, in this order.
  struct Turn {
    std::vector<AskNumber> gone;  // these have ended: whether they ran nobody knows
    std::optional<LineHello> hello;
    std::vector<AskNumber> send;  // each with heard()
  };

  enum class Heard : std::uint8_t {
    kNew,
    kDrop,     // it was heard before, or is an earlier start's; or nobody waits for it any more
    kMissing,  // answers before it are: the line is to be resumed
  };

  // The number of an ask that is new; it is sent now where the line is open.
  AskNumber enter(Turn& turn);
  // There is a connection, or another way; or the target has missed a number.
  Turn resume();
  // The connection has ended.
  void broken() { open_ = false; }
  // The target's answer to a hello: what it takes next. One to an earlier hello says nothing.
  Turn accepted(const PostStart& target, AskNumber next, std::uint64_t epoch);
  // The same: it is another start than the one that was meant.
  Turn other(const PostStart& target, std::uint64_t epoch);
  Heard answered(const PostStart& target, AnswerNumber said, AskNumber number);
  // The host is lost: all that wait, which have ended with that. The line goes on if it comes back.
  std::vector<AskNumber> lost();

  bool resumed() const { return open_; }
  const std::optional<PostStart>& target() const { return target_; }
  AnswerNumber heard() const { return heard_; }
  std::size_t waiting() const { return waiting_.size(); }

 private:
  std::optional<PostStart> target_;
  AskNumber next_ = 1;
  AskNumber sent_ = 0;  // the highest
  std::set<AskNumber> waiting_;
  AnswerNumber heard_ = 0;
  std::uint64_t epoch_ = 0;
  bool open_ = false;  // resumed, and not broken since
};

struct InLineLimits {
  std::size_t answers = 1'024;         // that are kept
  std::uint64_t bytes = 16U << 20U;    // of these
  std::size_t unheard = 64U * 1'024U;  // beyond that the root does not say what it hears, and is not served any more
};

// The target's end of a line.
class InLine {
 public:
  enum class Taken : std::uint8_t {
    kRun,
    kDrop,    // it runs, or has run, or is an earlier start's
    kResync,  // numbers before it are missing: the root is to say hello
  };
  struct Answer {
    AnswerNumber said = 0;
    AskNumber number = 0;
    bool gone = false;  // it ran, and its answer has found no room: nobody knows it any more
  };
  struct Accepted {
    AskNumber next = 1;
    std::vector<Answer> again;  // that are said again, in this order
  };

  explicit InLine(const PostStart& root, const InLineLimits& limits = {}) : root_(root), limits_(limits) {}

  // Nothing: it is of an earlier start of the root, or by a way that the root has left. A later start of the root
  // begins anew: what of the earlier one runs is answered to nobody.
  std::optional<Accepted> hello(const PostStart& root, const LineHello& hello);
  Taken ask(const PostStart& root, AskNumber number, AnswerNumber heard);
  // It has run, with an answer of so many bytes. Nothing: that is nobody's.
  std::optional<Answer> done(const PostStart& root, AskNumber number, std::uint64_t bytes);
  // The root says what it has heard, where it asks nothing.
  void heard(const PostStart& root, AnswerNumber heard);
  // Asks whose answers need not be kept any more: they were heard, or have given way to newer ones.
  std::vector<AskNumber> take_forgotten() { return std::exchange(forgotten_, {}); }
  // The root asks on and on and never says what it hears.
  bool overdrawn() const { return answers_.size() > limits_.unheard; }

  const PostStart& root() const { return root_; }

 private:
  struct Kept {
    AskNumber number = 0;
    std::uint64_t bytes = 0;
    bool gone = false;
  };
  void forget_up_to(AnswerNumber heard);
  void make_room(std::uint64_t bytes);

  PostStart root_;
  InLineLimits limits_;
  AskNumber next_ = 1;
  std::uint64_t epoch_ = 0;
  std::set<AskNumber> running_;
  std::deque<Kept> answers_;  // those from first_ on, which the root has not said to have heard
  AnswerNumber first_ = 1;
  std::size_t gone_ = 0;  // the first so many of these
  std::uint64_t bytes_ = 0;
  std::vector<AskNumber> forgotten_;
};

}  // namespace monarch
