#include "supervisor/launch/reach/carried_talk.h"

#include <utility>

#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/wire/check_stream.h"
#include "transport/wire/codec.h"

namespace monarch {

namespace {

constexpr int kPatiences = 4;  // the check takes one for what was before, one for what it is asked, and has its own way

LaunchFailure failure_of_talk(LaunchFailureKind kind, std::string message) {
  return {.kind = kind, .phase = "check", .elapsed = {}, .message = std::move(message), .words = {}, .again = {}};
}

}  // namespace

CarriedTalk::CarriedTalk(EventLoop& loop, const Carry& carry, OnLost on_lost)
    : loop_(loop), on_lost_(std::move(on_lost)), deadline_(loop) {
  auto carrier = carry({.on_ready =
                            [this] {
                              ready_ = true;
                              if (request_) send();
                            },
                        .on_heard = [this](const std::string& bytes) { on_heard(bytes); },
                        .on_failed = [this](const LaunchFailure& why) { fail(why); }});
  if (carrier.ok()) {
    carrier_ = std::move(*carrier);
    ready_ = carrier_->ready();
    return;
  }
  over_ = failure_of_talk(LaunchFailureKind::kOther, carrier.error().message);
}

void CarriedTalk::ask(const CheckRequest& request, OnAnswer on_answer) {
  MONARCH_ASSERT(!on_answer_);
  on_answer_ = std::move(on_answer);
  if (over_) {
    loop_.defer(scope_.guard([this] { fail(*over_); }));
    return;
  }
  request_ = request;
  if (ready_) send();
}

void CarriedTalk::send() {
  const CheckRequest request = *std::exchange(request_, std::nullopt);
  const Duration patience = request.patience * kPatiences;
  deadline_.start(patience, [this, patience](const std::string& late) {
    fail(failure_of_talk(LaunchFailureKind::kTimeout,
                         text("monarch-worker check did not answer within ", to_text(patience), late)));
  });
  timed_ = {.answer = {}, .left = wall_now(), .came = {}};
  carrier_->say(encode_piece(encode_payload(request)));
}

void CarriedTalk::on_heard(const std::string& bytes) {
  if (over_) return;
  heard_ += bytes;
  timed_.came = wall_now();
  auto piece = take_piece(heard_);
  if (piece.ok() && !*piece) return;
  const auto unknown = [this](const std::string& why) {
    fail(failure_of_talk(LaunchFailureKind::kShellNoise, text("monarch-worker check: ", why)));
  };
  if (!piece.ok()) return unknown(piece.error().message);
  auto answer = decode_payload<CheckAnswer>(**piece, kCheckBytes);
  if (!answer.ok()) return unknown(answer.error().message);
  if (!on_answer_ || request_) return unknown("an answer that nobody asked for");
  deadline_.stop();
  timed_.answer = std::move(*answer);
  const OnAnswer told = std::exchange(on_answer_, nullptr);
  told(std::exchange(timed_, TimedAnswer{}));
}

void CarriedTalk::fail(const LaunchFailure& why) {
  if (!over_) over_ = why;
  deadline_.stop();
  request_.reset();
  ready_ = false;
  const LaunchFailure last = *over_;
  const OnLost lost = std::exchange(on_lost_, nullptr);
  if (const OnAnswer told = std::exchange(on_answer_, nullptr)) return told(last);
  if (lost) lost(last);
}

}  // namespace monarch
