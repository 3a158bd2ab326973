#include "worker/core/post/peer_lines.h"

#include <algorithm>

#include "transport/base/assert.h"

namespace monarch {

namespace {

CallOutcome gone(const char* why) {
  CallOutcome outcome;
  outcome.kind = OutcomeKind::kGone;
  outcome.text = why;
  return outcome;
}

// What a post says itself, of a rank with many actors, may be longer than another one hears. Within no character.
void cut_to_what_is_heard(std::string& words) {
  if (words.size() <= kOutcomeTextBytes) return;
  std::size_t most = kOutcomeTextBytes;
  while (most > 0 && (static_cast<unsigned char>(words[most]) & 0xC0U) == 0x80U) --most;
  words.resize(most);
}

}  // namespace

void PeerLines::to_target(HostId target, post_event::PeerMessage message) {
  out_.emplace_back(post_action::ToPeer{target, PeerVia::kOurs, std::move(message)});
}

void PeerLines::to_root(HostId root, post_event::PeerMessage message) {
  out_.emplace_back(post_action::ToPeer{root, PeerVia::kTheirs, std::move(message)});
}

LineEnds PeerLines::ends_of(const Out& out) const { return {self_, start_, out.line.target().value_or(PostStart{})}; }

// ---- As a root.

AskNumber PeerLines::ask(HostId host, const CallKey& call, const std::vector<Rank>& ranks, SharedContent content) {
  Out& out = outs_[host];
  OutLine::Turn turn;
  AskNumber first = 0;
  for (const Rank rank : ranks) {
    const AskNumber number = out.line.enter(turn);
    if (first == 0) first = number;
    out.asked.emplace(number, Asked{call, rank, content});
  }
  if (out.line.resumed()) {
    send_asks(host, out, turn.send);
  } else {
    reach(host, out);
  }
  return first;
}

void PeerLines::take_back(HostId host, AskNumber number) {
  const auto found = outs_.find(host);
  if (found == outs_.end() || found->second.asked.erase(number) == 0) return;
  if (!found->second.line.resumed()) return;  // it is sent as one that nobody waits for
  to_target(host, LineTakeBack{ends_of(found->second), number});
}

void PeerLines::up(HostId host) {
  const auto found = outs_.find(host);
  if (found != outs_.end()) resume(host, found->second);
}

void PeerLines::down(HostId host) {
  const auto found = outs_.find(host);
  if (found == outs_.end()) return;
  Out& out = found->second;
  out.line.broken();
  out.say_by = Instant::never();
  out.hello_by = Instant::never();
  if (out.line.waiting() > 0) reach(host, out);
}

void PeerLines::moved(HostId host, bool known) {
  if (known) {
    known_.insert(host);
  } else {
    known_.erase(host);
  }
  const auto found = outs_.find(host);
  if (found == outs_.end()) return;
  found->second.dialled = false;
  down(host);
}

// Something waits for a line that is not resumed.
void PeerLines::reach(HostId host, Out& out) {
  if (!out.dialled && known_.contains(host)) {
    out.dialled = true;
    out_.emplace_back(post_action::Dial{host});
  }
  if (out.told || out.tell_by != Instant::never()) return;
  out.tell_by = now_ + kToldUnreached;
  due_at(out.tell_by);
}

std::vector<HostId> PeerLines::hosts() const {
  std::vector<HostId> hosts;
  for (const auto& [host, out] : outs_) {
    if (out.line.waiting() > 0) hosts.push_back(host);
  }
  return hosts;
}

void PeerLines::resume(HostId host, Out& out) { apply(host, out, out.line.resume()); }

void PeerLines::apply(HostId host, Out& out, const OutLine::Turn& turn) {
  for (const AskNumber number : turn.gone) {
    end(out, number, gone("the post of its host was started again, and nobody knows whether it ran"));
  }
  if (turn.hello) {
    LineHello hello = *turn.hello;
    hello.ends = {self_, start_, {}};
    hello.version = kLineVersion;
    to_target(host, hello);
    due_at(out.hello_by = now_ + kHelloAgain);
  }
  send_asks(host, out, turn.send);
}

// Neighbours that are of one call go together.
void PeerLines::send_asks(HostId host, Out& out, const std::vector<AskNumber>& numbers) {
  for (std::size_t i = 0; i < numbers.size();) {
    LineAsks asks;
    asks.ends = ends_of(out);
    asks.first = numbers[i];
    asks.heard = out.line.heard();
    const CallContent* content = nullptr;
    for (; i < numbers.size() && asks.ranks.size() < kRanksOfAMessage; ++i) {
      if (numbers[i] != asks.first + asks.ranks.size()) break;
      const auto asked = out.asked.find(numbers[i]);
      if (asked == out.asked.end()) {
        asks.ranks.push_back({.rank = {}, .nobody = true});
        continue;
      }
      const CallContent* const its = asked->second.content.get();
      if (content != nullptr && content != its) break;
      content = its;
      asks.ranks.push_back({.rank = asked->second.rank, .nobody = false});
    }
    if (content != nullptr) {
      asks.mesh = content->mesh;
      asks.target = content->target;
      asks.caller = content->caller;
      asks.body = content->body.body();
    }
    to_target(host, std::move(asks));
  }
  if (!numbers.empty()) has_heard(out);
}

void PeerLines::say_heard(HostId host, Out& out) {
  to_target(host, LineHeard{ends_of(out), out.line.heard()});
  has_heard(out);
}

// The target has been told.
void PeerLines::has_heard(Out& out) {
  out.unsaid = 0;
  out.unsaid_bytes = 0;
  out.say_by = Instant::never();
}

void PeerLines::end(Out& out, AskNumber number, CallOutcome outcome, HeldBody body, Whence whence) {
  const auto asked = out.asked.find(number);
  if (asked == out.asked.end()) return;
  ended_.push_back({asked->second.call, asked->second.rank, std::move(outcome), std::move(body), whence});
  out.asked.erase(asked);
}

// The line that something is said of, at its root.
PeerLines::Out* PeerLines::out_of(HostId from, const LineEnds& ends) {
  if (ends.root != self_ || ends.root_start != start_) return nullptr;
  const auto found = outs_.find(from);
  return found == outs_.end() ? nullptr : &found->second;
}

void PeerLines::on(HostId from, const LineAccepted& message) {
  Out* const out = out_of(from, message.ends);
  if (out == nullptr) return;
  apply(from, *out, out->line.accepted(message.ends.target_start, message.next, message.epoch));
  if (!out->line.resumed()) return;
  out->hello_by = Instant::never();
  out->tell_by = Instant::never();
  out->told = false;
}

void PeerLines::on(HostId from, const LineOther& message) {
  Out* const out = out_of(from, message.ends);
  if (out != nullptr) apply(from, *out, out->line.other(message.ends.target_start, message.epoch));
}

void PeerLines::on(HostId from, const LineResync& message) {
  Out* const out = out_of(from, message.ends);
  if (out != nullptr && out->line.resumed()) resume(from, *out);
}

bool PeerLines::hear_answer(HostId from, Out& out, const PostStart& target, AnswerNumber said, AskNumber number,
                            const CallOutcome& outcome) {
  HeldBody body = bodies_.hold(outcome.body);
  const OutLine::Heard heard = out.line.answered(target, said, number);
  if (heard == OutLine::Heard::kMissing) {
    resume(from, out);
    return false;
  }
  if (said != out.line.heard()) return true;  // an earlier one
  out.unsaid += 1;
  out.unsaid_bytes += body.bytes();
  if (out.say_by == Instant::never()) due_at(out.say_by = now_ + kHeardWithin);
  if (heard == OutLine::Heard::kNew) end(out, number, outcome, std::move(body), Whence::kElsewhere);
  if (out.unsaid >= kHeardAnswers || out.unsaid_bytes >= kHeardBytes) say_heard(from, out);
  return true;
}

void PeerLines::on(HostId from, const LineAnswer& message) {
  const HeldBody body = bodies_.hold(message.outcome.body);
  Out* const out = out_of(from, message.ends);
  if (out == nullptr) return;
  (void)hear_answer(from, *out, message.ends.target_start, message.said, message.number, message.outcome);
}

void PeerLines::on(HostId from, const LineAnswers& message) {
  std::vector<HeldBody> bodies;
  for (const NumberedOutcome& one : message.answers) {
    if (one.outcome.body.at != BodyId(0)) bodies.push_back(bodies_.hold(one.outcome.body));
  }
  Out* const out = out_of(from, message.ends);
  if (out == nullptr) return;
  AnswerNumber said = message.said;
  for (const NumberedOutcome& one : message.answers) {
    if (!hear_answer(from, *out, message.ends.target_start, said++, one.number, one.outcome)) return;
  }
}

// ---- As a target.

void PeerLines::on(HostId from, const LineHello& message) {
  if (message.ends.root != from) return;
  LineEnds ends{from, message.ends.root_start, start_};
  if (message.target && *message.target != start_) return to_root(from, LineOther{ends, message.epoch});
  const PostStart& root = message.ends.root_start;
  In& in = ins_.try_emplace(from, In{.line = InLine(root, limits_.line)}).first->second;
  if (root > in.line.root()) {
    in.kept.clear();
    in.running.clear();
    in.saying.clear();  // to the earlier one
    passed_.emplace_back(from, root);
  }
  flush(from, in);
  const auto accepted = in.line.hello(root, message);
  if (!accepted) return;
  in.hears_together = message.version > 1;
  forget(in);
  to_root(from, LineAccepted{ends, accepted->next, message.epoch});
  const auto lost = std::make_shared<const Kept>(Kept{gone("it ran, and its answer was lost with the connection"), {}});
  for (const InLine::Answer& answer : accepted->again) {
    say(from, in, answer, answer.gone ? lost : in.kept.at(answer.number));
  }
}

PeerLines::In* PeerLines::in_of(HostId from, const LineEnds& ends) {
  if (ends.root != from || ends.target_start != start_) return nullptr;
  const auto found = ins_.find(from);
  return found == ins_.end() ? nullptr : &found->second;
}

void PeerLines::on(HostId from, const LineAsks& message) {
  const HeldBody body = bodies_.hold(message.body, from);
  In* const in = in_of(from, message.ends);
  if (in == nullptr || message.ranks.size() > kRanksOfAMessage) return;
  // By a hello it says what it has heard.
  if (in->line.overdrawn()) return to_root(from, LineResync{{from, message.ends.root_start, start_}});
  const auto content =
      std::make_shared<const CallContent>(CallContent{message.mesh, message.target, message.caller, body});
  AskNumber number = message.first;
  for (const AskedRank& asked : message.ranks) {
    DeliveryOrigin origin{.call = {}, .root = from, .root_start = message.ends.root_start, .number = number++};
    switch (in->line.ask(origin.root_start, origin.number, message.heard)) {
      case InLine::Taken::kDrop: continue;
      case InLine::Taken::kResync: forget(*in); return to_root(from, LineResync{{from, origin.root_start, start_}});
      case InLine::Taken::kRun: break;
    }
    if (asked.nobody) {
      CallOutcome nothing;
      nothing.kind = OutcomeKind::kCancelled;
      answer(origin, std::move(nothing), {});
    } else {
      ordered_.push_back({origin, RankId{message.mesh, asked.rank}, content});
    }
  }
  forget(*in);
}

void PeerLines::on(HostId from, const LineTakeBack& message) {
  In* const in = in_of(from, message.ends);
  if (in == nullptr || message.ends.root_start != in->line.root()) return;
  const auto running = in->running.find(message.number);
  if (running != in->running.end()) {
    taken_back_.push_back(running->second);
  } else {
    taken_back_early_.emplace_back(from, message.number);
  }
}

void PeerLines::on(HostId from, const LineHeard& message) {
  In* const in = in_of(from, message.ends);
  if (in == nullptr) return;
  in->line.heard(message.ends.root_start, message.heard);
  forget(*in);
}

void PeerLines::running(const DeliveryOrigin& origin, DeliveryTable::Number delivery) {
  const auto in = ins_.find(origin.root);
  if (in != ins_.end() && in->second.line.root() == origin.root_start) in->second.running[origin.number] = delivery;
}

void PeerLines::answer(const DeliveryOrigin& origin, CallOutcome outcome, HeldBody body) {
  const auto found = ins_.find(origin.root);
  if (found == ins_.end()) return;
  In& in = found->second;
  cut_to_what_is_heard(outcome.text);
  const std::uint64_t bytes = body.bytes() + outcome.type.size() + outcome.text.size() + outcome.traceback.size();
  const auto said = in.line.done(origin.root_start, origin.number, bytes);
  if (!said) return;
  in.running.erase(origin.number);
  outcome.body = body.body();
  const auto kept = std::make_shared<const Kept>(Kept{std::move(outcome), std::move(body)});
  in.kept[origin.number] = kept;
  say(origin.root, in, *said, kept);
  forget(in);
}

void PeerLines::say(HostId root, In& in, const InLine::Answer& answer, KeptPtr what) {
  if (!in.hears_together || !goes_with_others(what->outcome, limits_)) {
    flush(root, in);
    return say_alone(root, in, {answer, std::move(what)});
  }
  const std::size_t bytes = bytes_together(what->outcome);
  const bool is_next = in.saying.empty() || in.saying.back().answer.said + 1 == answer.said;
  if (!is_next || in.saying_bytes + bytes > limits_.together_bytes || in.saying.size() >= limits_.together) {
    flush(root, in);
  }
  in.saying.push_back({answer, std::move(what)});
  in.saying_bytes += bytes;
  saying_.insert(root);
}

void PeerLines::say_alone(HostId root, const In& in, const Saying& saying) {
  to_root(root, LineAnswer{.ends = {root, in.line.root(), start_},
                           .said = saying.answer.said,
                           .number = saying.answer.number,
                           .outcome = saying.what->outcome});
}

void PeerLines::flush(HostId root, In& in) {
  const std::vector<Saying> all = std::exchange(in.saying, {});
  in.saying_bytes = 0;
  saying_.erase(root);
  if (all.empty()) return;
  if (all.size() == 1) return say_alone(root, in, all.front());
  LineAnswers message{.ends = {root, in.line.root(), start_}, .said = all.front().answer.said, .answers = {}};
  message.answers.reserve(all.size());
  for (const Saying& one : all) message.answers.push_back({one.answer.number, one.what->outcome});
  to_root(root, std::move(message));
}

void PeerLines::flush() {
  while (!saying_.empty()) {
    const HostId root = *saying_.begin();
    flush(root, ins_.at(root));
  }
}

void PeerLines::forget(In& in) {
  for (const AskNumber number : in.line.take_forgotten()) in.kept.erase(number);
}

// ---- Both.

void PeerLines::hear(HostId from, const post_event::PeerMessage& message) {
  std::visit([&](const auto& one) { on(from, one); }, message);
}

void PeerLines::tick() {
  if (now_ < due_) return;
  due_ = Instant::never();
  for (auto& [host, out] : outs_) {
    if (out.say_by <= now_) say_heard(host, out);
    if (out.hello_by <= now_) resume(host, out);
    if (out.tell_by <= now_) {
      out.tell_by = Instant::never();
      out.told = true;
      if (out.line.waiting() > 0) unreached_.push_back(host);
    }
    due_at(std::min({out.say_by, out.hello_by, out.tell_by}));
  }
}

}  // namespace monarch
