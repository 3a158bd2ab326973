#include "supervisor/launch/talk/program_talk.h"

#include <utility>

#include "supervisor/core/state/first_cause.h"
#include "supervisor/launch/program_pipes.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/messages/describe_end.h"

namespace monarch {

namespace {

std::optional<int> exit_status(const std::optional<RankEnd>& end) {
  if (!end) return std::nullopt;
  if (end->kind == EndKind::kExited) return end->value;
  if (end->kind == EndKind::kSignaled) return kExitSignalBase + end->value;
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<ProgramTalk>> ProgramTalk::start(EventLoop& loop, Programs& programs, RemoteOrder order,
                                                        ProgramTalkOptions options, ProgramTalkHandlers handlers) {
  std::unique_ptr<ProgramTalk> talk(
      new ProgramTalk(loop, programs, std::move(order), std::move(options), std::move(handlers)));
  MONARCH_TRY(talk->open());
  return talk;
}

Status ProgramTalk::open() {
  MONARCH_ASSIGN(program_,
                 PipedProgram::start(loop_, programs_, std::move(options_.command), options_.log,
                                     {.on_output = [this](const std::string& bytes) { on_output(bytes); },
                                      .on_written = [this] { expect_more(); },
                                      .on_end = [this](const std::optional<RankEnd>& end,
                                                       const std::string& rest) { on_program_end(end, rest); }},
                                     std::move(options_.environment)));
  if (!options_.greeting.empty()) program_->write(options_.greeting);
  if (conversation_.talking()) note_talk();
  expect_more();
  return {};
}

void ProgramTalk::give_bootstrap(std::string frame) {
  bootstrap_ = frame;
  conversation_.give_bootstrap(std::move(frame));
}

void ProgramTalk::say(std::string_view bytes) {
  if (answered_) return;
  conversation_.say(bytes);
  write_turn();
}

void ProgramTalk::note_talk() {
  placed_ = true;
  program_->leave();
}

void ProgramTalk::on_output(const std::string& bytes) {
  if (answered_) return;  // what a worker's start-up left in the pipe is nobody's
  conversation_.on_output(bytes);
  expect_more();
  if (!placed_ && conversation_.place()) {
    placed_ = true;
    auto refused = handlers_.on_place ? handlers_.on_place(*conversation_.place()) : std::nullopt;
    if (refused) {
      answer_ = std::move(*refused);
      return answer();
    }
  }
  go_on();
}

// The program has ended, and nothing more comes of it.
void ProgramTalk::on_program_end(const std::optional<RankEnd>& end, const std::string& rest) {
  if (answered_) {
    const auto told = handlers_.on_end;
    if (told) told();
    return;
  }
  if (!rest.empty()) conversation_.on_output(rest);
  if (!placed_ || (end && end->kind == EndKind::kNotExecuted)) {
    const std::string how = end ? text(" (", describe_end(*end), ")") : ", and the supervisor's guard has gone";
    answer_ = not_started(text(options_.program, " ended without ", options_.place, how));
    return answer();
  }
  if (!conversation_.answer()) {
    const std::string words = program_->said(RemoteConversation::kWordsBytes);
    conversation_.on_words(words);
    // What carries the script tells by its words, and not by its status, that the connection ended.
    const bool broke = options_.kind_of(words) != LaunchFailureKind::kOther;
    conversation_.on_end(broke ? std::nullopt : exit_status(end));
  }
  MONARCH_ASSERT(conversation_.answer().has_value());
  answer_ = *conversation_.answer();
  answer();
}

// Nothing of ours has run on the host: why is the program's to say.
LaunchFailure ProgramTalk::not_started(const std::string& how, std::optional<LaunchFailureKind> kind) const {
  std::string words = program_->said(RemoteConversation::kWordsBytes);
  const std::string_view last = last_line(words);
  const LaunchFailureKind meant = options_.kind_of(words);
  return {.kind = meant == LaunchFailureKind::kOther ? kind.value_or(meant) : meant,
          .phase = "start",
          .elapsed = {},
          .message = last.empty() ? how : text(how, ": ", printable(last)),
          .words = words,
          .again = {}};
}

void ProgramTalk::go_on() {
  if (answered_) return;
  note_copy();
  if (conversation_.answer()) {
    answer_ = *conversation_.answer();
    return answer();
  }
  write_turn();
  if (!conversation_.talking()) return;
  note_talk();
  const auto told = handlers_.on_heard;
  if (told) told(conversation_.take_heard());
}

void ProgramTalk::write_turn() {
  RemoteTurn turn = conversation_.take_turn();
  // The conversation says it when the worker has been executed, and never before.
  handed_over_ = handed_over_ || (!bootstrap_.empty() && turn.bytes.ends_with(bootstrap_));
  program_->write(std::move(turn.bytes));
  if (turn.file) {
    MONARCH_ASSERT(options_.image != nullptr);
    program_->write_lasting(options_.image->bytes);
  }
}

void ProgramTalk::expect_more() {
  if (conversation_.talking()) return deadline_.stop();
  const Duration patience = placed_ ? options_.silence : options_.begins_within;
  deadline_.start(patience, [this, patience](const std::string& late) {
    answer_ = placed_ ? conversation_.timed_out(late)
                      : not_started(text(options_.program, " has ", options_.none, " within ", to_text(patience), late),
                                    LaunchFailureKind::kTimeout);
    answer();
  });
}

// Not within a call of the owner's: only the loop comes here.
void ProgramTalk::answer() {
  answered_ = !std::holds_alternative<LaunchFailure>(answer_);
  deadline_.stop();
  program_->close_input();
  if (answered_ || conversation_.talking()) {
    answered_ = true;
    program_->leave();
  } else {
    // A worker that failed to start is none; what was executed all the same is looked for, by whoever is told.
    program_->kill();
    program_->close_output();
    answered_ = true;
  }
  if (std::holds_alternative<BootstrapReply>(answer_)) program_->spare();
  const auto told = handlers_.on_answer;
  if (told) told(answer_);
}

void ProgramTalk::note_copy() {
  const bool copying = conversation_.phase() == "copy";
  if (copying && copy_began_ == Instant::never()) copy_began_ = loop_.now();
  if (!copying && copy_began_ != Instant::never() && copy_ == Duration()) copy_ = loop_.now() - copy_began_;
}

}  // namespace monarch
