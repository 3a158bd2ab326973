#include "supervisor/launch/slurm/step_talk.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "supervisor/core/first_cause.h"
#include "supervisor/launch/program_pipes.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kReadBytes = 256U << 10U;  // at a time; the conversation has its own limits
constexpr int kSignalCode = 128;                 // of an exit status that stands for a signal

std::optional<int> exit_status(const std::optional<RankEnd>& end) {
  if (!end) return std::nullopt;
  if (end->kind == EndKind::kExited) return end->value;
  if (end->kind == EndKind::kSignaled) return kSignalCode + end->value;
  return std::nullopt;
}

}  // namespace

Result<std::unique_ptr<StepTalk>> StepTalk::start(EventLoop& loop, GuardedPrograms& programs, RemoteOrder order,
                                                  StepTalkOptions options, StepTalkHandlers handlers) {
  std::unique_ptr<StepTalk> talk(
      new StepTalk(loop, programs, std::move(order), std::move(options), std::move(handlers)));
  MONARCH_TRY(talk->open());
  return talk;
}

Status StepTalk::open() {
  MONARCH_ASSIGN(ProgramPipe in, make_program_pipe(PipeEnd::kWrite));
  MONARCH_ASSIGN(ProgramPipe out, make_program_pipe(PipeEnd::kRead));
  MONARCH_ASSIGN(log_, open_program_log(options_.log));
  struct stat status {};
  if (::fstat(log_.get(), &status) == 0) logged_before_ = static_cast<std::size_t>(status.st_size);
  UniqueFd words(::dup(log_.get()));
  if (!words.valid()) return errno_error("dup", errno);
  MONARCH_ASSIGN(ticket_,
                 programs_.start(std::move(options_.command),
                                 {.in = std::move(in.theirs), .out = std::move(out.theirs), .err = std::move(words)},
                                 [this](const std::optional<RankEnd>& end) { on_program_end(end); }));
  input_ = std::move(in.ours);
  output_ = std::move(out.ours);
  MONARCH_ASSIGN(output_watch_, loop_.watch(output_.get(), Interest::kRead, [this](Readiness) { on_output(); }));
  MONARCH_ASSIGN(input_watch_, loop_.watch(input_.get(), Interest::kNone, [this](Readiness ready) {
    if (ready.hangup) close_input();  // it reads no more; what it wrote before tells why
    go_on();
  }));
  expect_more();
  return {};
}

StepTalk::~StepTalk() {
  programs_.disown(ticket_);
  if (!answered_) programs_.kill(ticket_);
  close_input();
  close_output();
  loop_.cancel(deadline_);
}

void StepTalk::give_bootstrap(std::string frame) {
  bootstrap_ = frame;
  conversation_.give_bootstrap(std::move(frame));
}

void StepTalk::on_output() {
  std::string bytes;
  const bool ended = read_available(output_.get(), bytes, kReadBytes);
  if (ended) close_output();
  if (answered_) return;  // what a worker's start-up left in the pipe is nobody's
  if (!bytes.empty()) {
    conversation_.on_output(bytes);
    expect_more();
  }
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

// srun has ended, and nothing more comes of it.
void StepTalk::on_program_end(const std::optional<RankEnd>& end) {
  ticket_ = 0;
  if (answered_) {
    const auto told = handlers_.on_end;
    if (told) told();
    return;
  }
  if (output_.valid()) {
    std::string bytes;
    (void)read_available(output_.get(), bytes, kReadBytes);
    close_output();
    conversation_.on_output(bytes);
  }
  if (!placed_) {
    const std::string how = end ? text(" (", describe_end(*end), ")") : ", and the supervisor's guard has gone";
    answer_ = not_started(LaunchFailureKind::kOther, text("srun ended without a step on the node", how));
    return answer();
  }
  if (!conversation_.answer()) {
    conversation_.on_words(logged());
    conversation_.on_end(exit_status(end));
  }
  MONARCH_ASSERT(conversation_.answer().has_value());
  answer_ = *conversation_.answer();
  answer();
}

// Nothing of ours has run on the node: why is srun's to say.
LaunchFailure StepTalk::not_started(LaunchFailureKind kind, const std::string& how) const {
  std::string words = logged();
  std::string_view last = words;
  while (!last.empty() && last.back() == '\n') last.remove_suffix(1);
  last.remove_prefix(last.rfind('\n') + 1);  // npos + 1 is 0
  return {.kind = says_not_authenticated(words) ? LaunchFailureKind::kAuthentication : kind,
          .phase = "start",
          .elapsed = {},
          .message = last.empty() ? how : text(how, ": ", printable(last)),
          .words = words,
          .again = {}};
}

void StepTalk::go_on() {
  if (answered_) return;
  note_copy();
  if (conversation_.answer()) {
    answer_ = *conversation_.answer();
    return answer();
  }
  RemoteTurn turn = conversation_.take_turn();
  words_ += turn.bytes;
  // The conversation says it when the worker has been executed, and never before.
  handed_over_ = handed_over_ || (!bootstrap_.empty() && turn.bytes.ends_with(bootstrap_));
  if (turn.file) {
    MONARCH_ASSERT(options_.image != nullptr);
    file_left_ = options_.image->bytes;
  }
  write();
}

void StepTalk::write() {
  while (input_.valid() && (!words_.empty() || !file_left_.empty())) {
    const std::string_view next = words_.empty() ? file_left_ : std::string_view(words_);
    const ssize_t n = ::write(input_.get(), next.data(), next.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) return close_input();  // it reads no more; what it wrote before tells why
    if (n < 0) break;
    expect_more();
    words_.empty() ? file_left_.remove_prefix(static_cast<std::size_t>(n))
                   : static_cast<void>(words_.erase(0, static_cast<std::size_t>(n)));
  }
  const bool waits = !words_.empty() || !file_left_.empty();
  if (input_watch_ != 0) loop_.change(input_watch_, waits ? Interest::kWrite : Interest::kNone);
}

void StepTalk::expect_more() {
  loop_.cancel(deadline_);
  deadline_ = loop_.at(loop_.now() + options_.silence, [this] {
    deadline_ = 0;
    answer_ = placed_ ? conversation_.timed_out()
                      : not_started(LaunchFailureKind::kTimeout,
                                    text("srun has started no step on the node within ", to_text(options_.silence)));
    answer();
  });
}

// Not within a call of the owner's: only the loop comes here.
void StepTalk::answer() {
  answered_ = !std::holds_alternative<LaunchFailure>(answer_);
  loop_.cancel(std::exchange(deadline_, 0));
  close_input();
  if (!answered_) {
    // A worker that failed to start is none; what was executed all the same is looked for, by whoever is told.
    programs_.disown(ticket_);
    programs_.kill(std::exchange(ticket_, 0));
    close_output();
    answered_ = true;
  }
  // WARNING: whoever kills the first process of an srun ends its step, and with that the worker (Slurm 22.05).
  if (std::holds_alternative<BootstrapReply>(answer_)) programs_.let_live(ticket_);
  const auto told = handlers_.on_answer;
  if (told) told(answer_);
}

void StepTalk::note_copy() {
  const bool copying = conversation_.phase() == "copy";
  if (copying && copy_began_ == Instant::never()) copy_began_ = loop_.now();
  if (!copying && copy_began_ != Instant::never() && copy_ == Duration()) copy_ = loop_.now() - copy_began_;
}

void StepTalk::close_input() {
  if (input_watch_ != 0) loop_.forget(std::exchange(input_watch_, 0));
  input_.reset();
}

void StepTalk::close_output() {
  if (output_watch_ != 0) loop_.forget(std::exchange(output_watch_, 0));
  output_.reset();
}

// What srun has said since this talk began.
std::string StepTalk::logged() const {
  std::string said(RemoteConversation::kWordsBytes, '\0');
  const ssize_t n = ::pread(log_.get(), said.data(), said.size(), static_cast<off_t>(logged_before_));
  said.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return said;
}

}  // namespace monarch
