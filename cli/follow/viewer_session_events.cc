#include <signal.h>
#include <unistd.h>

#include <utility>

#include "cli/follow/viewer_session.h"
#include "cli/show/result_text.h"
#include "supervisor/client/link/viewer_json.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kTickPeriod = Duration::milliseconds(200);
constexpr Duration kSilentReader = Duration::seconds(1);  // then the job's end is said before all is read

}  // namespace

void ViewerSession::say(const std::string& line) { screen_.say(text("monarch: ", line, "\n")); }

// What folds in the log of a CI job: the start, and the output; never how it ended.
void ViewerSession::open_group(std::string_view name) {
  if (!options_.events || !screen_.terminal().runner.is_one()) return;
  close_group();
  group_ = name;
  screen_.command(screen_.terminal().runner.open_group(name, text("monarch: ", name, " of ", job_.id()), wall_now()));
}

void ViewerSession::close_group() {
  if (group_.empty()) return;
  screen_.command(screen_.terminal().runner.close_group(group_, wall_now()));
  group_.clear();
}

void ViewerSession::on_event(const JobEvent& event) {
  if (event.number != 0 && event.number <= last_event_) return;
  if (event.number != 0) last_event_ = event.number;  // without a number: it is in no journal, and not sent again
  if (options_.hosts != nullptr) options_.hosts->on_event(event);
  const std::string words = announcer_.on_event(event, loop_->now());
  if (options_.events && !words.empty()) screen_.say(words);
  if (announcer_.due() != Instant::never() && fold_timer_ == 0) {
    fold_timer_ = loop_->at(announcer_.due(), [this] { say_folded(); });
  }
  if (options_.json) write_json(event_json(event));
  if (event.kind == EventKind::kJobRunning && options_.output) open_group("output");
  if (name_of(event.kind).starts_with("job.")) phase_since_ = loop_->now();
  if (event.kind == EventKind::kJobRunning && options_.until == SessionOptions::Until::kRunning) {
    end_.running = true;
    leave_running();
  }
}

void ViewerSession::leave_running() {
  if (end_.running && !options_.on_door) leave(kExitOk);
}

void ViewerSession::say_folded() {
  fold_timer_ = 0;
  const std::string words = announcer_.take_due(loop_->now());
  if (options_.events && !words.empty()) screen_.say(words);
  if (announcer_.due() == Instant::never()) return;
  fold_timer_ = loop_->at(announcer_.due(), [this] { say_folded(); });
}

void ViewerSession::on_verdict(const Verdict& verdict) {
  if (ending_) return;
  ending_ = true;
  end_.verdict = verdict;
  end_.exit_code = verdict.exit_code;
  const auto finish = [this] {
    say_result();
    if (options_.json) write_json(verdict_json(*end_.verdict));
    stop_when_written();
  };
  if (output_ == nullptr) return finish();
  if (!screen_.is_one_stream()) loop_->at(loop_->now() + kSilentReader, [this] { say_unread(); });
  output_->finish(finish);
}

// All is over, and stdout still holds what nobody reads: who waits for us is told how it ended, and why we stay.
void ViewerSession::say_unread() {
  if (screen_.out().empty()) return;  // its reader is no cause of this wait
  say_result();
  say("the rest of the output waits for whoever reads stdout; Ctrl-C leaves without it");
}

void ViewerSession::say_result() {
  if (std::exchange(result_said_, true)) return;
  const Verdict& verdict = *end_.verdict;
  say_waiting_events();
  screen_.make_room();
  close_group();
  if (!options_.result) return;
  screen_.say(result_text(verdict, {.job_id = job_.id(),
                                    .log_directory = job_.log_directory(),
                                    .spec = options_.spec_name,
                                    .colour = screen_.terminal().err_colour,
                                    .quiet = screen_.terminal().quiet}));
  screen_.command(screen_.terminal().runner.annotation(verdict, job_.id()));
}

void ViewerSession::write_json(const Json& json) {
  screen_.out().write(screen_.terminal().runner.as_text_json(to_json(json)) + "\n");
}

void ViewerSession::leave(int exit_code) {
  ending_ = true;
  end_.exit_code = exit_code;
  if (output_ != nullptr) output_->stop();
  stop_when_written();
}

void ViewerSession::say_waiting_events() {
  const std::string waiting = announcer_.take_due(Instant::never());
  if (options_.events && !waiting.empty()) screen_.say(waiting);
}

// What was shown is written before we go; whoever does not want to wait for a reader presses Ctrl-C.
void ViewerSession::stop_when_written() {
  say_waiting_events();
  screen_.make_room();
  screen_.out().flush();
  screen_.err().flush();
  if (screen_.written()) return loop_->stop();
  screen_.on_drained([this] {
    if (screen_.written()) loop_->stop();
  });
}

void ViewerSession::on_signals() {
  while (const auto signal = signals_.next()) {
    if (signal->number == SIGINT || signal->number == SIGQUIT) screen_.forget_what_was_typed();
    if (signal->number == SIGWINCH) screen_.resized();
    act(policy_.on_signal(signal->number), signal->number);
  }
}

void ViewerSession::act(const SignalAnswer& answer, int number) {
  if (ending_) {
    // All is decided, and only the writing is left.
    if (answer.action != SignalAction::kIgnore && answer.action != SignalAction::kForward) loop_->stop();
    return;
  }
  const std::string who = text(options_.viewer, ", pid ", ::getpid(), ", ", signal_name(number));
  switch (answer.action) {
    case SignalAction::kStop:
      say(answer.interrupted ? "stopping; Ctrl-C again kills" : text("stopping, because of ", signal_name(number)));
      return send_stop({.how = StopHow::kOrderly,
                        .interrupted = answer.interrupted,
                        .exit_code = answer.interrupted ? 0 : answer.exit_code,
                        .who = who});
    case SignalAction::kKill:
      say("killing; Ctrl-C again leaves, and the supervisor goes on killing");
      return send_stop({.how = StopHow::kKill, .interrupted = answer.interrupted, .exit_code = 0, .who = who});
    case SignalAction::kLeave:
      say(text("leaving ", job_.id(), "; its supervisor goes on killing it: monarch status ", job_.id()));
      return leave(answer.exit_code);
    case SignalAction::kDetach:
      say(text("detached; ", job_.id(), " goes on. To stop it: monarch stop ", job_.id()));
      return leave(answer.exit_code);
    case SignalAction::kForward:
      if (client_ == nullptr) return say(text(signal_name(number), " was not sent: the supervisor is gone"));
      return client_->request(SignalRequest{.ranks = {}, .number = number},
                              [this, number](const Result<Accepted>& sent) {
                                if (!sent.ok()) say(text(signal_name(number), " was not sent: ", sent.error().message));
                              });
    case SignalAction::kIgnore: return;
  }
}

void ViewerSession::tick_later() {
  loop_->at(loop_->now() + kTickPeriod, [this] { on_tick(); });
}

void ViewerSession::on_tick() {
  if (ending_) return;
  const Duration waited = loop_->now() - phase_since_;
  if (options_.events) screen_.progress(announcer_.progress(waited));
  if (loop_->now() >= next_word_) {
    next_word_ = loop_->now() + limits::kNamesMissingEvery;
    const std::string words = announcer_.still_waiting(waited);
    if (options_.events && !words.empty() && !screen_.terminal().err_live && !screen_.terminal().quiet) say(words);
  }
  tick_later();
}

}  // namespace monarch
