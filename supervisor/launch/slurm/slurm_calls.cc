#include "supervisor/launch/slurm/slurm_calls.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "supervisor/core/state/first_cause.h"
#include "supervisor/launch/program_pipes.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "transport/base/text.h"
#include "transport/messages/describe_end.h"

namespace monarch {

namespace {

// The command behind `env -i NAME=value…`, for people.
std::string name_of_command(const std::vector<std::string>& command) {
  for (std::size_t i = 1; i < command.size(); ++i) {
    if (!command[i].starts_with('-') && command[i].find('=') == std::string::npos) return command[i];
  }
  return command.empty() ? "" : command.front();
}

}  // namespace

SlurmCalls::~SlurmCalls() {
  for (auto& [number, call] : calls_) {
    programs_.disown(call.ticket);
    programs_.kill(call.ticket);
    close(call);
  }
}

void SlurmCalls::call(std::vector<std::string> command, std::function<void(Result<std::string>)> then) {
  const std::uint64_t number = next_++;
  Call& call = calls_[number];
  call.name = name_of_command(command);
  const Status started = start(number, call, std::move(command));
  if (started.ok()) {
    call.then = std::move(then);
    return;
  }
  programs_.disown(call.ticket);
  programs_.kill(call.ticket);
  close(call);
  calls_.erase(number);
  loop_.defer([then = std::move(then), why = started.error()] { then(why); });
}

Status SlurmCalls::start(std::uint64_t number, Call& call, std::vector<std::string> command) {
  MONARCH_ASSIGN(ProgramPipe out, make_program_pipe(PipeEnd::kRead));
  MONARCH_ASSIGN(ProgramPipe err, make_program_pipe(PipeEnd::kRead));
  UniqueFd nothing(::open("/dev/null", O_RDONLY | O_CLOEXEC));
  if (!nothing.valid()) return errno_error("opening /dev/null", errno);
  MONARCH_ASSIGN(call.ticket,
                 programs_.start(std::move(command),
                                 {.in = std::move(nothing), .out = std::move(out.theirs), .err = std::move(err.theirs)},
                                 [this, number](const std::optional<RankEnd>& end) { on_end(number, end); }, {}));
  call.out = std::move(out.ours);
  call.err = std::move(err.ours);
  MONARCH_ASSIGN(call.watch,
                 loop_.watch(call.out.get(), Interest::kRead, [this, number](Readiness) { read(number, false); }));
  MONARCH_ASSIGN(call.err_watch,
                 loop_.watch(call.err.get(), Interest::kRead, [this, number](Readiness) { read(number, true); }));
  call.deadline = std::make_unique<FairTimer>(loop_);
  call.deadline->start(deadline_, [this, number](const std::string& late) { on_deadline(number, late); });
  return {};
}

void SlurmCalls::read(std::uint64_t number, bool words) {
  Call& call = calls_.at(number);
  std::string& into = words ? call.words : call.answer;
  UniqueFd& from = words ? call.err : call.out;
  WatchId& watch = words ? call.err_watch : call.watch;
  if (!from.valid() || !read_available(from.get(), into, kAnswerBytes)) return;
  loop_.forget(std::exchange(watch, 0));
  from.reset();
}

// Its end is not waited for: no signal ends what waits for a disk.
void SlurmCalls::on_deadline(std::uint64_t number, const std::string& late) {
  auto taken = calls_.extract(number);
  Call& call = taken.mapped();
  programs_.disown(call.ticket);
  programs_.kill(call.ticket);
  close(call);
  call.then(Error{ErrorCode::kTimeout, text(call.name, " did not answer within ", to_text(deadline_), late)});
}

void SlurmCalls::on_end(std::uint64_t number, const std::optional<RankEnd>& end) {
  const auto found = calls_.find(number);
  if (found == calls_.end()) return;
  read(number, false);
  read(number, true);
  Call call = std::move(found->second);
  calls_.erase(found);
  close(call);
  if (!end) return call.then(Error{ErrorCode::kGone, text(call.name, ": the supervisor's guard has gone")});
  if (end->kind == EndKind::kExited && end->value == 0) {
    if (call.answer.size() >= kAnswerBytes) {
      return call.then(Error{ErrorCode::kUnsupported, text(call.name, " answered more than ", kAnswerBytes, " bytes")});
    }
    return call.then(std::move(call.answer));
  }
  const std::string_view said = last_line(call.words);
  call.then(Error{ErrorCode::kUnsupported, text(call.name, ": ", said.empty() ? describe_end(*end) : printable(said))});
}

void SlurmCalls::close(Call& call) {
  if (call.watch != 0) loop_.forget(std::exchange(call.watch, 0));
  if (call.err_watch != 0) loop_.forget(std::exchange(call.err_watch, 0));
  call.deadline.reset();
  call.out.reset();
  call.err.reset();
}

}  // namespace monarch
