#include "transport/tensor/core/pull_core.h"

#include <algorithm>

#include "transport/base/assert.h"
#include "transport/base/text.h"
#include "transport/tensor/core/slot_word.h"

namespace monarch::tensor {

namespace {

constexpr int kLinksEnded = 16;  // of one generation; who lets go so often is not to be had
constexpr Duration kVerdictPatience = Duration::seconds(1);

}  // namespace

PullActions PullCore::begin(Instant now) {
  now_ = begun_ = now;
  newer_than_ = options_.newer_than;
  ask_card();
  return std::exchange(out_, {});
}

PullActions PullCore::step(const PullEvent& event, Instant now) {
  now_ = now;
  out_.clear();
  if (phase_ != Phase::kEnded) std::visit([this](const auto& one) { on(one); }, event);
  return std::exchange(out_, {});
}

void PullCore::to(Phase phase) {
  MONARCH_ASSERT(phase_ != Phase::kEnded);
  phase_ = phase;
}

void PullCore::ask_card() {
  to(Phase::kCard);
  generation_ = 0;
  out_.emplace_back(pull_action::AskCard{since_});
}

void PullCore::on(const pull_event::CardCame& event) {
  if (phase_ == Phase::kVerdict && event.generation > since_) return fail(PullEnd::kPeerGone, gone_);
  if (phase_ != Phase::kCard || event.generation <= since_) return;
  generation_ = event.generation;
  links_ended_ = 0;
  link();
}

void PullCore::link() {
  to(Phase::kLinking);
  out_.emplace_back(pull_action::Link{});
}

void PullCore::on(const pull_event::CardLost& event) {
  if (phase_ != Phase::kCard && phase_ != Phase::kVerdict) return;
  if (!event.ended) return fail(PullEnd::kPeerGone, event.text);
  fail(PullEnd::kEnded, text(options_.publication, " is published no more: ", event.text));
}

void PullCore::on(const pull_event::Linked&) {
  if (phase_ != Phase::kLinking) return;
  to(Phase::kOpening);
  out_.emplace_back(pull_action::Open{newer_than_});
}

void PullCore::on(const pull_event::Opened& event) {
  if (phase_ != Phase::kOpening) return;
  to(Phase::kFetching);
  late_.clear();
  number_ = event.number;
  fetching_ = unsure_ = event.owners;
  for (const std::uint32_t owner : event.owners) out_.emplace_back(pull_action::Fetch{owner, number_});
  if (event.owners.empty()) stop(Then::kEnd);  // nothing is wanted: that is whole
}

void PullCore::on(const pull_event::Unfit& event) {
  if (phase_ == Phase::kOpening) fail(event.why, event.text);
}

void PullCore::on(const pull_event::Over&) {
  if (phase_ == Phase::kOpening) fail(PullEnd::kEnded, text(options_.publication, " is published no more"));
}

// WARNING: not before its rows are here, and not with them: what asks for the word behind rows may be served before
// them (a NIC fetches later reads first).
void PullCore::on(const pull_event::Fetched& event) {
  if (phase_ != Phase::kFetching || fetching_.erase(event.owner) == 0) return;
  out_.emplace_back(pull_action::LookAtWord{event.owner, number_});
}

void PullCore::on(const pull_event::Word& event) {
  if (phase_ != Phase::kFetching || fetching_.contains(event.owner) || !unsure_.contains(event.owner)) return;
  if (event.word != word_of(number_)) {
    ++begun_again_;
    newer_than_ = VersionId{generation_, number_};
    return stop(Then::kOpenAgain);
  }
  unsure_.erase(event.owner);
  if (unsure_.empty()) stop(Then::kEnd);
}

// Also while lanes stop, and until there is a place: what comes after that needs its links.
bool PullCore::is_linked() const {
  return phase_ == Phase::kLinking || phase_ == Phase::kOpening || phase_ == Phase::kFetching ||
         phase_ == Phase::kFull ||
         (phase_ == Phase::kStopping &&
          (then_ == Then::kOpenAgain || then_ == Then::kLinkAgain || then_ == Then::kLinkLater));
}

void PullCore::on(const pull_event::LinkEnded& event) {
  if (!is_linked()) return;
  if (++links_ended_ > kLinksEnded) return lose_generation(event.text);
  stop(Then::kLinkAgain);
}

void PullCore::on(const pull_event::Full& event) {
  if (!is_linked()) return;
  full_ = event.text;
  again_ = now_ + event.again;
  stop(Then::kLinkLater);
}

void PullCore::on(const pull_event::OwnerGone& event) {
  if (!is_linked()) return;
  if (options_.next_generation) return lose_generation(event.text);
  gone_ = event.text;
  stop(Then::kAskVerdict);
}

// Supervision knows whether it has failed, or has done what it was for; a connection does not.
void PullCore::ask_verdict() {
  to(Phase::kVerdict);
  verdict_due_ = now_ + kVerdictPatience;
  since_ = std::max(since_, generation_);
  out_.emplace_back(pull_action::AskCard{since_});
}

Instant PullCore::next_due() const {
  if (phase_ == Phase::kEnded) return Instant::never();
  if (phase_ == Phase::kFull) return std::min(again_, options_.deadline);
  return phase_ == Phase::kVerdict ? std::min(verdict_due_, options_.deadline) : options_.deadline;
}

void PullCore::on(const pull_event::Unreached& event) {
  if (is_linked()) fail(PullEnd::kUnreachable, event.text);
}

void PullCore::on(const pull_event::GenerationOver& event) {
  since_ = std::max(since_, event.generation);
  const bool asks = phase_ == Phase::kVerdict || (phase_ == Phase::kStopping && then_ == Then::kAskVerdict);
  if (asks && event.generation >= generation_) return fail(PullEnd::kPeerGone, event.text);
  if (is_linked() && event.generation >= generation_) lose_generation(event.text);
}

void PullCore::lose_generation(const std::string& words) {
  if (!options_.next_generation) return fail(PullEnd::kPeerGone, words);
  since_ = std::max(since_, generation_);
  stop(Then::kNextGeneration);
}

void PullCore::on(const pull_event::DeviceFailed& event) {
  if (phase_ == Phase::kStopping && then_ == Then::kEnd) return;
  fail(PullEnd::kDevice, event.text);
}

void PullCore::on(const pull_event::Cancel&) {
  if (phase_ == Phase::kStopping && then_ == Then::kEnd) return;
  fail(PullEnd::kCancelled, text("the pull of ", options_.publication, " was cancelled"));
}

void PullCore::on(const pull_event::Tick&) {
  const bool will_ask = phase_ == Phase::kStopping && then_ == Then::kAskVerdict;
  if ((phase_ == Phase::kVerdict || will_ask) && now_ >= next_due()) return fail(PullEnd::kPeerGone, gone_);
  if (now_ < options_.deadline && phase_ == Phase::kFull && now_ >= again_) return link();
  if (now_ < options_.deadline || (phase_ == Phase::kStopping && then_ == Then::kEnd)) return;
  std::string words =
      text(options_.publication, ": nothing whole within ", to_text(options_.deadline - begun_), "; ", waits_for());
  if (begun_again_ > 0) words += text("; versions that were written over while they were read: ", begun_again_);
  fail(PullEnd::kTimeout, std::move(words));
}

std::string PullCore::waits_for() const {
  switch (phase_) {
    case Phase::kCard: return since_ == 0 ? options_.nobody : text("its gang is not back after generation ", since_);
    case Phase::kLinking: return "no connection to its first rank";
    case Phase::kOpening: return late_.empty() ? "there is no newer version" : late_;
    case Phase::kFetching: {
      std::string ranks;
      for (const std::uint32_t owner : unsure_) ranks += text(ranks.empty() ? "" : ", ", owner);
      return text("version ", number_, " is not here from rank ", ranks);
    }
    case Phase::kStopping: return "it was begun again";
    case Phase::kFull: return full_;
    case Phase::kVerdict: return text("how it has ended: ", gone_);
    case Phase::kEnded: break;
  }
  return "it has ended";
}

void PullCore::fail(PullEnd how, std::string words) {
  end_ = {.how = how, .version = {generation_, number_}, .text = std::move(words)};
  stop(Then::kEnd);
}

// The lanes first: nothing writes into the reader's memory once it has ended.
void PullCore::stop(Then then) {
  if (phase_ == Phase::kStopping) {  // under way
    then_ = then;
    return;
  }
  if (phase_ == Phase::kFetching) {
    const bool whole = then == Then::kEnd && unsure_.empty() && end_.how == PullEnd::kOk;
    out_.emplace_back(pull_action::SayRead{number_, whole});
    if (whole) end_.version = {generation_, number_};
  }
  then_ = then;
  to(Phase::kStopping);
  out_.emplace_back(pull_action::Stop{.links = then == Then::kLinkLater});
}

void PullCore::on(const pull_event::Stopped&) {
  if (phase_ != Phase::kStopping) return;
  fetching_.clear();
  unsure_.clear();
  switch (then_) {
    case Then::kOpenAgain:
      to(Phase::kOpening);
      out_.emplace_back(pull_action::Open{newer_than_});
      return;
    case Then::kLinkAgain: return link();
    case Then::kLinkLater: return to(Phase::kFull);
    case Then::kNextGeneration: return ask_card();
    case Then::kAskVerdict: return ask_verdict();
    case Then::kEnd:
      to(Phase::kEnded);
      out_.emplace_back(end_);
      return;
  }
}

}  // namespace monarch::tensor
