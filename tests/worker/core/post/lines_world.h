#pragma once

// LinesWorld: posts that ask each other over connections that break, lose messages, and leave some behind that come
// late. It drives OutLine and InLine as a post does, holds what they promise, and can break each rule of a driver on
// purpose. A promise that does not hold is told by broken(), the first of them alone.
//
// Thread: one.

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "transport/base/text.h"
#include "worker/core/post/lines.h"

namespace monarch::post_test {

enum class LineMutant : std::uint8_t {
  kNone,
  kRunWhatIsDropped,       // an ask that was taken before runs again
  kRunWhatCameEarly,       // numbers before an ask are missing, and it runs
  kIgnoreResync,           // the root does not say hello when it is told to
  kNoHelloOnConnection,    // nor on a new connection
  kSayNothingAgain,        // answers that were lost with a connection stay lost
  kMistakeTheStart,        // a target takes what was meant for the one before it
  kHearForThePredecessor,  // a root takes what was said to the one before it
  kForgetWhatIsGone,       // what an earlier start was sent has no end
  kSendBeforeAccepted,     // asks go out on a connection that is not resumed yet
  kSkipWhatHasEnded,       // an ask that nobody waits for leaves a hole in the numbers
  kOverhearAHole,          // an answer before this one is missing, and the root does not say hello
  kForgetRunning,          // what runs when a rank dies is not answered
};

class LinesWorld {
 public:
  using Call = std::uint64_t;
  enum class Outcome : std::uint8_t { kValue, kLost, kGone, kDeadline };

  explicit LinesWorld(std::uint64_t seed, LineMutant mutant = LineMutant::kNone) : mutant_(mutant), random_(seed) {
    const std::size_t count = 2 + below(3);
    if (below(3) == 0) limits_ = {.answers = 2 + below(4), .bytes = 60, .unheard = 64U * 1'024U};
    for (std::size_t i = 0; i < count; ++i) posts_.emplace_back(start_of(0));
    ranks_.resize(count);
    for (std::size_t a = 0; a < count; ++a) {
      for (std::size_t b = a + 1; b < count; ++b) connect(a, b);
    }
  }

  void run(int turns) {
    const bool quiet = below(5) == 0;
    lossy_ = !quiet;
    for (int turn = 0; turn < turns && broken_.empty(); ++turn) one_turn(quiet);
    heal();
    judge();
  }

  // What does not hold; empty: all does.
  const std::string& broken() const { return broken_; }
  std::size_t calls() const { return calls_.size(); }
  std::size_t ended_as(Outcome outcome) const {
    return static_cast<std::size_t>(
        std::count_if(calls_.begin(), calls_.end(), [&](const auto& one) { return one.outcome == outcome; }));
  }

 private:
  struct Hello {
    LineHello line;
  };
  struct Accepted {
    AskNumber next = 1;
    std::uint64_t epoch = 0;
  };
  struct Other {
    std::uint64_t epoch = 0;
  };
  struct Resync {};
  struct Ask {
    AskNumber number = 0;
    AnswerNumber heard = 0;
    std::optional<Call> call;  // nothing: nobody waits for it
  };
  struct TakeBack {
    AskNumber number = 0;
  };
  struct Heard {
    AnswerNumber heard = 0;
  };
  struct Result {
    Outcome outcome = Outcome::kGone;
    std::optional<Call> call;  // whose it is
  };
  struct Said {
    InLine::Answer answer;
    Result result;
  };
  struct Message {
    std::size_t from = 0;
    std::size_t to = 0;
    PostStart root;
    PostStart target;  // of a hello: of no meaning
    std::variant<Hello, Accepted, Other, Resync, Ask, TakeBack, Heard, Said> what;
  };
  // One end's way to the other, by one connection.
  struct Way {
    std::size_t from = 0;
    std::size_t to = 0;
    bool late = false;  // the connection has ended: nothing more is put in
    std::deque<Message> messages;
  };

  struct Root {
    OutLine line;
    std::map<AskNumber, Call> asks;
  };
  struct Target {
    InLine line;
    std::map<AskNumber, Result> kept;  // as the line has them
  };
  struct Post {
    explicit Post(const PostStart& its) : start(its) {}
    PostStart start;
    std::map<std::size_t, Root> roots;      // by target
    std::map<std::size_t, Target> targets;  // by root
  };
  struct Delivery {
    PostStart post;  // that gave it
    std::size_t root = 0;
    PostStart root_start;
    AskNumber number = 0;
    Call call = 0;
  };
  struct Called {
    std::size_t root = 0;
    PostStart start;  // of the root
    std::size_t rank = 0;
    std::optional<Outcome> outcome;
    int runs = 0;
  };

  std::size_t below(std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random_); }
  PostStart start_of(std::uint64_t number) const { return {1, number}; }
  void fail(std::string what) {
    if (broken_.empty()) broken_ = std::move(what);
  }

  void one_turn(bool quiet) {
    const std::size_t chance = below(100);
    if (chance < 30) return call();
    if (chance < 80) return (void)deliver();
    if (chance < 93) return run_rank(below(ranks_.size()));
    if (chance < 95) return let_expire();
    if (quiet) return;
    const std::size_t a = below(posts_.size());
    const std::size_t b = (a + 1 + below(posts_.size() - 1)) % posts_.size();
    const std::size_t fault = below(20);
    if (fault < 7) return disconnect(a, b);
    if (fault < 14) return connect(a, b);
    if (fault < 16) return kill_rank(a);
    kill_post(a);
  }

  void call() {
    const std::size_t root = below(posts_.size());
    const std::size_t target = (root + 1 + below(posts_.size() - 1)) % posts_.size();
    const Call call = calls_.size();
    calls_.push_back({.root = root, .start = posts_[root].start, .rank = target, .outcome = {}, .runs = 0});
    Post& post = posts_[root];
    const bool fresh = !post.roots.contains(target);
    Root& line = post.roots[target];
    if (fresh && way(root, target) != nullptr) apply(root, target, line.line.resume());
    OutLine::Turn turn;
    const AskNumber number = line.line.enter(turn);
    line.asks[number] = call;
    if (mutant_ == LineMutant::kSendBeforeAccepted && turn.send.empty()) turn.send.push_back(number);
    apply(root, target, turn);
  }

  void end(Call call, Outcome outcome) {
    std::optional<Outcome>& now = calls_[call].outcome;
    if (now) fail(text("call ", call, " has two outcomes"));
    now = outcome;
  }

  void apply(std::size_t root, std::size_t target, const OutLine::Turn& turn) {
    Root& line = posts_[root].roots.at(target);
    for (const AskNumber number : turn.gone) {
      const auto asked = line.asks.extract(number);
      if (!asked.empty() && mutant_ != LineMutant::kForgetWhatIsGone) end(asked.mapped(), Outcome::kGone);
    }
    const auto say = [&](auto what) {
      send({root, target, posts_[root].start, line.line.target().value_or(PostStart{}), std::move(what)});
    };
    if (turn.hello) say(Hello{*turn.hello});
    for (const AskNumber number : turn.send) {
      const auto asked = line.asks.find(number);
      if (asked == line.asks.end() && mutant_ == LineMutant::kSkipWhatHasEnded) continue;
      say(Ask{number, line.line.heard(), asked == line.asks.end() ? std::nullopt : std::optional(asked->second)});
    }
  }

  // A caller's deadline, of any ask that waits.
  void let_expire() {
    const std::size_t root = below(posts_.size());
    for (auto& [target, line] : posts_[root].roots) {
      if (line.asks.empty()) continue;
      auto asked = line.asks.begin();
      std::advance(asked, below(line.asks.size()));
      const AskNumber number = asked->first;
      end(asked->second, Outcome::kDeadline);
      line.asks.erase(asked);
      if (!line.line.target()) return;
      return send({root, target, posts_[root].start, *line.line.target(), TakeBack{number}});
    }
  }

  Way* way(std::size_t from, std::size_t to) {
    for (Way& one : ways_) {
      if (one.from == from && one.to == to && !one.late) return &one;
    }
    return nullptr;
  }

  void send(Message message) {
    if (Way* const open = way(message.from, message.to)) open->messages.push_back(std::move(message));
  }

  void connect(std::size_t a, std::size_t b) {
    if (way(a, b) != nullptr) return;
    ways_.push_back({.from = a, .to = b, .late = false, .messages = {}});
    ways_.push_back({.from = b, .to = a, .late = false, .messages = {}});
    if (mutant_ == LineMutant::kNoHelloOnConnection && below(2) == 0) return;
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      const auto line = posts_[from].roots.find(to);
      if (line != posts_[from].roots.end()) apply(from, to, line->second.line.resume());
    }
  }

  // What is on its way gets lost, or comes after what a later connection brings.
  void disconnect(std::size_t a, std::size_t b) {
    for (const auto& [from, to] : {std::pair(a, b), std::pair(b, a)}) {
      Way* const open = way(from, to);
      if (open == nullptr) return;
      open->late = true;
      const std::size_t lost = below(2) == 0 ? open->messages.size() : below(open->messages.size() + 1);
      open->messages.resize(open->messages.size() - lost);
      const auto line = posts_[from].roots.find(to);
      if (line != posts_[from].roots.end()) line->second.line.broken();
    }
    std::erase_if(ways_, [](const Way& one) { return one.late && one.messages.empty(); });
  }

  bool deliver() {
    std::vector<std::size_t> full;
    for (std::size_t i = 0; i < ways_.size(); ++i) {
      if (!ways_[i].messages.empty()) full.push_back(i);
    }
    if (full.empty()) return false;
    Way& one = ways_[full[below(full.size())]];
    const Message message = std::move(one.messages.front());
    one.messages.pop_front();
    if (lossy_ && below(60) == 0 && another_follows(one, message)) return true;
    std::visit([&](const auto& what) { hear(message, what); }, message.what);
    return true;
  }

  // Whose number tells that this one is missing.
  static bool another_follows(const Way& way, const Message& message) {
    const bool counted = std::holds_alternative<Ask>(message.what) || std::holds_alternative<Said>(message.what);
    return counted && std::any_of(way.messages.begin(), way.messages.end(), [&](const Message& later) {
             return later.what.index() == message.what.index() && later.root == message.root &&
                    later.target == message.target;
           });
  }

  bool means_me(const Message& message) const {
    return message.target == posts_[message.to].start || mutant_ == LineMutant::kMistakeTheStart;
  }
  // The line that something is said of, at its root.
  Root* root_of(const Message& message) {
    Post& post = posts_[message.to];
    if (message.root != post.start && mutant_ != LineMutant::kHearForThePredecessor) return nullptr;
    const auto found = post.roots.find(message.from);
    return found == post.roots.end() ? nullptr : &found->second;
  }

  void hear(const Message& message, const Hello& hello) {
    Post& post = posts_[message.to];
    const auto back = [&](auto what) { send({message.to, message.from, message.root, post.start, std::move(what)}); };
    if (hello.line.target && *hello.line.target != post.start && mutant_ != LineMutant::kMistakeTheStart) {
      return back(Other{hello.line.epoch});
    }
    const auto at = post.targets.try_emplace(message.from, Target{InLine(message.root, limits_), {}}).first;
    if (message.root > at->second.line.root()) at->second.kept.clear();
    const auto accepted = at->second.line.hello(message.root, hello.line);
    if (!accepted) return;
    forget(at->second);
    back(Accepted{accepted->next, hello.line.epoch});
    if (mutant_ == LineMutant::kSayNothingAgain) return;
    for (const InLine::Answer& answer : accepted->again) {
      back(Said{answer, answer.gone ? Result{} : at->second.kept.at(answer.number)});
    }
  }
  void hear(const Message& message, const Accepted& accepted) {
    if (Root* const line = root_of(message)) {
      apply(message.to, message.from, line->line.accepted(message.target, accepted.next, accepted.epoch));
    }
  }
  void hear(const Message& message, const Other& other) {
    if (Root* const line = root_of(message)) {
      apply(message.to, message.from, line->line.other(message.target, other.epoch));
    }
  }
  void hear(const Message& message, const Resync& /*resync*/) {
    Root* const line = root_of(message);
    if (line == nullptr || !line->line.resumed() || mutant_ == LineMutant::kIgnoreResync) return;
    apply(message.to, message.from, line->line.resume());
  }
  void hear(const Message& message, const Ask& ask) {
    Target* const at = target_of(message);
    if (at == nullptr) return;
    const InLine::Taken taken = at->line.ask(message.root, ask.number, ask.heard);
    forget(*at);
    const bool early = taken == InLine::Taken::kResync && mutant_ == LineMutant::kRunWhatCameEarly;
    const bool again = taken == InLine::Taken::kDrop && mutant_ == LineMutant::kRunWhatIsDropped;
    if (taken == InLine::Taken::kResync && !early) {
      return send({message.to, message.from, message.root, posts_[message.to].start, Resync{}});
    }
    if (taken != InLine::Taken::kRun && !early && !again) return;
    if (!ask.call) return done(message.to, message.from, message.root, ask.number, {Outcome::kLost, {}});
    ranks_[message.to].push_back({.post = posts_[message.to].start,
                                  .root = message.from,
                                  .root_start = message.root,
                                  .number = ask.number,
                                  .call = *ask.call});
  }
  // What has not begun.
  void hear(const Message& message, const TakeBack& back) {
    if (target_of(message) == nullptr) return;
    std::deque<Delivery>& waiting = ranks_[message.to];
    const auto found = std::find_if(waiting.begin(), waiting.end(), [&](const Delivery& one) {
      return one.root == message.from && one.root_start == message.root && one.number == back.number &&
             one.post == posts_[message.to].start;
    });
    if (found == waiting.end()) return;
    waiting.erase(found);
    done(message.to, message.from, message.root, back.number, {Outcome::kLost, {}});
  }
  void hear(const Message& message, const Heard& heard) {
    Target* const at = target_of(message);
    if (at == nullptr) return;
    at->line.heard(message.root, heard.heard);
    forget(*at);
  }
  void hear(const Message& message, const Said& said) {
    Root* const line = root_of(message);
    if (line == nullptr) return;
    const OutLine::Heard heard = line->line.answered(message.target, said.answer.said, said.answer.number);
    if (heard == OutLine::Heard::kMissing && mutant_ != LineMutant::kOverhearAHole) {
      return apply(message.to, message.from, line->line.resume());
    }
    if (heard != OutLine::Heard::kNew) return;
    const auto asked = line->asks.extract(said.answer.number);
    if (!asked.empty()) end(asked.mapped(), said.result.outcome);
    if (!asked.empty() && said.result.call.value_or(asked.mapped()) != asked.mapped())
      fail("an answer to another call");
    if (below(4) != 0) return;
    send({message.to, message.from, message.root, message.target, Heard{line->line.heard()}});
  }

  Target* target_of(const Message& message) {
    Post& post = posts_[message.to];
    const auto found = post.targets.find(message.from);
    return found == post.targets.end() || !means_me(message) ? nullptr : &found->second;
  }

  void forget(Target& target) {
    for (const AskNumber number : target.line.take_forgotten()) target.kept.erase(number);
  }

  void done(std::size_t target, std::size_t root, const PostStart& root_start, AskNumber number, const Result& result) {
    const auto at = posts_[target].targets.find(root);
    if (at == posts_[target].targets.end()) return;
    const auto answer = at->second.line.done(root_start, number, 5 + below(30));
    if (!answer) return;
    at->second.kept[number] = result;
    forget(at->second);
    send({target, root, root_start, posts_[target].start, Said{*answer, result}});
  }

  void run_rank(std::size_t rank) {
    if (ranks_[rank].empty()) return;
    const Delivery first = ranks_[rank].front();
    ranks_[rank].pop_front();
    Called& called = calls_[first.call];
    if (++called.runs > 1) fail(text("call ", first.call, " runs twice"));
    Call& last = last_run_[{called.root, called.start, rank}];
    if (first.call < last) fail(text("call ", first.call, " runs after call ", last));
    last = first.call;
    if (first.post == posts_[rank].start) {
      done(rank, first.root, first.root_start, first.number, {Outcome::kValue, first.call});
    }
  }

  void kill_rank(std::size_t rank) {
    const std::deque<Delivery> waiting = std::exchange(ranks_[rank], {});
    for (const Delivery& one : waiting) {
      if (mutant_ == LineMutant::kForgetRunning && &one == &waiting.front()) continue;
      if (one.post == posts_[rank].start) done(rank, one.root, one.root_start, one.number, {Outcome::kLost, one.call});
    }
  }

  // Its callers see the end of their door; what runs in its rank goes on, and what waits there is dropped.
  void kill_post(std::size_t post) {
    post_died_ = true;
    for (std::size_t other = 0; other < posts_.size(); ++other) {
      if (other != post) disconnect(std::min(post, other), std::max(post, other));
    }
    for (const auto& [target, line] : posts_[post].roots) {
      for (const auto& [number, call] : line.asks) end(call, Outcome::kGone);
    }
    if (ranks_[post].size() > 1) ranks_[post].resize(1);
    posts_[post] = Post(start_of(posts_[post].start.number + 1));
    for (std::size_t other = 0; other < posts_.size(); ++other) {
      if (other != post && below(3) != 0) connect(post, other);
    }
  }

  void heal() {
    lossy_ = false;
    for (std::size_t a = 0; a < posts_.size(); ++a) {
      for (std::size_t b = a + 1; b < posts_.size(); ++b) connect(a, b);
    }
    for (int turn = 0; turn < 20'000 && broken_.empty(); ++turn) {
      if (deliver()) continue;
      const auto busy = std::find_if(ranks_.begin(), ranks_.end(), [](const auto& rank) { return !rank.empty(); });
      if (busy == ranks_.end()) return;
      run_rank(static_cast<std::size_t>(busy - ranks_.begin()));
    }
    fail("it never comes to rest");
  }

  void judge() {
    for (Call call = 0; call < calls_.size(); ++call) {
      const Called& called = calls_[call];
      if (!called.outcome) return fail(text("call ", call, " has no outcome"));
      if (*called.outcome == Outcome::kValue && called.runs != 1) return fail(text("call ", call, " never ran"));
      const bool may_be_gone = post_died_ || limits_.bytes < 100;
      if (*called.outcome == Outcome::kGone && !may_be_gone) return fail(text("call ", call, " is gone for no reason"));
    }
  }

  LineMutant mutant_;
  std::mt19937_64 random_;
  InLineLimits limits_;
  std::vector<Post> posts_;
  std::vector<std::deque<Delivery>> ranks_;  // one of each post
  std::vector<Way> ways_;
  std::vector<Called> calls_;
  std::map<std::tuple<std::size_t, PostStart, std::size_t>, Call> last_run_;  // by root, its start and the rank
  bool lossy_ = false;  // connections lose what they carry, also while they stand
  bool post_died_ = false;
  std::string broken_;
};

}  // namespace monarch::post_test
