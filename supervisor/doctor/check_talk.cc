#include "supervisor/doctor/check_talk.h"

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/messages/check.h"
#include "transport/messages/launch.h"
#include "transport/wire/check_stream.h"
#include "transport/wire/codec.h"

namespace monarch::doctor {

std::variant<TimedAnswer, LaunchFailure> CheckTalk::ask(const CheckRequest& request) {
  while (!talk_.conversation().talking()) {
    if (const auto answer = talk_.step()) return failure_of(*answer);
  }
  talk_.conversation().say(encode_piece(encode_payload(request)));
  TimedAnswer timed{.left = wall_now()};
  for (;;) {
    const auto ended = talk_.step();
    heard_ += talk_.conversation().take_heard();
    timed.came = wall_now();
    auto piece = take_piece(heard_);
    if (!piece.ok()) return not_understood(piece.error().message);
    if (*piece) {
      auto answer = decode_payload<CheckAnswer>(**piece, kCheckBytes);
      if (!answer.ok()) return not_understood(answer.error().message);
      timed.answer = std::move(*answer);
      return timed;
    }
    if (ended) return failure_of(*ended);
  }
}

void CheckTalk::leave() {
  talk_.finish();
  while (!talk_.step()) (void)talk_.conversation().take_heard();
}

LaunchFailure CheckTalk::failure_of(const RemoteAnswer& answer) {
  if (const auto* failure = std::get_if<LaunchFailure>(&answer)) return *failure;
  return {.kind = LaunchFailureKind::kExec,
          .phase = "check",
          .message = "monarch-worker check ended without an answer",
          .words = talk_.conversation().words()};
}

LaunchFailure CheckTalk::not_understood(const std::string& why) {
  return {.kind = LaunchFailureKind::kShellNoise,
          .phase = "check",
          .message = text("monarch-worker check: ", why),
          .words = talk_.conversation().words()};
}

}  // namespace monarch::doctor
