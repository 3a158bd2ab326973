#include "worker/core/post/lines.h"

#include <algorithm>

namespace monarch {

AskNumber OutLine::enter(Turn& turn) {
  const AskNumber number = next_++;
  waiting_.insert(number);
  if (open_) {
    sent_ = number;
    turn.send.push_back(number);
  }
  return number;
}

OutLine::Turn OutLine::resume() {
  open_ = false;
  const AskNumber low = waiting_.empty() ? next_ : *waiting_.begin();
  Turn turn;
  turn.hello = LineHello{.ends = {}, .target = target_, .epoch = ++epoch_, .low = low, .heard = heard_};
  return turn;
}

OutLine::Turn OutLine::accepted(const PostStart& target, AskNumber next, std::uint64_t epoch) {
  if (epoch != epoch_ || open_ || (target_ && *target_ != target)) return {};
  target_ = target;
  open_ = true;
  Turn turn;
  turn.send.assign(waiting_.lower_bound(next), waiting_.end());
  if (!turn.send.empty()) sent_ = std::max(sent_, turn.send.back());
  return turn;
}

OutLine::Turn OutLine::other(const PostStart& target, std::uint64_t epoch) {
  if (epoch != epoch_ || open_ || (target_ && target <= *target_)) return {};
  const auto unsent = waiting_.upper_bound(sent_);
  Turn turn;
  turn.gone.assign(waiting_.begin(), unsent);
  waiting_.erase(waiting_.begin(), unsent);
  target_ = target;
  heard_ = 0;
  turn.hello = resume().hello;
  return turn;
}

OutLine::Heard OutLine::answered(const PostStart& target, AnswerNumber said, AskNumber number) {
  if (target_ != target || said <= heard_) return Heard::kDrop;
  if (said > heard_ + 1) return open_ ? Heard::kMissing : Heard::kDrop;  // it is said again when the line is resumed
  heard_ = said;
  return waiting_.erase(number) > 0 ? Heard::kNew : Heard::kDrop;
}

std::vector<AskNumber> OutLine::lost() {
  std::vector<AskNumber> all(waiting_.begin(), waiting_.end());
  waiting_.clear();
  open_ = false;
  return all;
}

std::optional<InLine::Accepted> InLine::hello(const PostStart& root, const LineHello& hello) {
  if (root < root_) return std::nullopt;
  if (root > root_) *this = InLine(root, limits_);
  if (hello.epoch <= epoch_) return std::nullopt;
  epoch_ = hello.epoch;
  next_ = std::max(next_, hello.low);  // what never came has ended
  forget_up_to(hello.heard);
  Accepted accepted{.next = next_, .again = {}};
  AnswerNumber said = first_;
  for (const Kept& kept : answers_)
    accepted.again.push_back({.said = said++, .number = kept.number, .gone = kept.gone});
  return accepted;
}

InLine::Taken InLine::ask(const PostStart& root, AskNumber number, AnswerNumber heard) {
  if (root != root_) return Taken::kDrop;
  forget_up_to(heard);
  if (number < next_) return Taken::kDrop;
  if (number > next_) return Taken::kResync;
  ++next_;
  running_.insert(number);
  return Taken::kRun;
}

std::optional<InLine::Answer> InLine::done(const PostStart& root, AskNumber number, std::uint64_t bytes) {
  if (root != root_ || running_.erase(number) == 0) return std::nullopt;
  make_room(bytes);
  const bool fits = bytes_ + bytes <= limits_.bytes;  // else all before it have given way, and it is said once
  answers_.push_back({.number = number, .bytes = fits ? bytes : 0, .gone = !fits});
  bytes_ += answers_.back().bytes;
  if (!fits) {
    ++gone_;
    forgotten_.push_back(number);
  }
  return Answer{.said = first_ + answers_.size() - 1, .number = number, .gone = false};
}

void InLine::heard(const PostStart& root, AnswerNumber heard) {
  if (root == root_) forget_up_to(heard);
}

void InLine::forget_up_to(AnswerNumber heard) {
  while (!answers_.empty() && first_ <= heard) {
    const Kept& kept = answers_.front();
    if (kept.gone) {
      --gone_;
    } else {
      bytes_ -= kept.bytes;
      forgotten_.push_back(kept.number);
    }
    answers_.pop_front();
    ++first_;
  }
}

// The oldest give way: they were most likely heard.
void InLine::make_room(std::uint64_t bytes) {
  const auto full = [&] { return answers_.size() - gone_ >= limits_.answers || bytes_ + bytes > limits_.bytes; };
  while (gone_ < answers_.size() && full()) {
    Kept& oldest = answers_[gone_++];
    oldest.gone = true;
    bytes_ -= std::exchange(oldest.bytes, 0);
    forgotten_.push_back(oldest.number);
  }
}

}  // namespace monarch
