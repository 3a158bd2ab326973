#include "supervisor/launch/talk/piped_program.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "supervisor/launch/program_pipes.h"

namespace monarch {

namespace {

// At a time, and no less than a call of read_available() reads: what it is given no room for is lost. Who understands
// them has limits of his own.
constexpr std::size_t kReadBytes = 1U << 20U;
constexpr int kLastReads = 16;  // of what a program that has ended left in its pipe

Result<UniqueFd> open_log(const std::string& path) {
  if (!path.empty()) return open_program_log(path);
  UniqueFd log(::memfd_create("monarch-words", MFD_CLOEXEC));
  if (!log.valid()) return errno_error("memfd_create", errno);
  // What several write is not to be written over.
  if (::fcntl(log.get(), F_SETFL, O_APPEND) != 0) return errno_error("fcntl", errno);
  return log;
}

}  // namespace

Result<std::unique_ptr<PipedProgram>> PipedProgram::start(EventLoop& loop, Programs& programs,
                                                          std::vector<std::string> command, const std::string& log,
                                                          PipedProgramHandlers handlers,
                                                          std::map<std::string, std::string> environment) {
  std::unique_ptr<PipedProgram> program(new PipedProgram(loop, programs, std::move(handlers)));
  MONARCH_TRY(program->open(std::move(command), log, std::move(environment)));
  return program;
}

Status PipedProgram::open(std::vector<std::string> command, const std::string& log,
                          std::map<std::string, std::string> environment) {
  MONARCH_ASSIGN(ProgramPipe in, make_program_pipe(PipeEnd::kWrite));
  MONARCH_ASSIGN(ProgramPipe out, make_program_pipe(PipeEnd::kRead));
  MONARCH_ASSIGN(log_, open_log(log));
  struct stat status {};
  if (::fstat(log_.get(), &status) == 0) said_before_ = static_cast<std::size_t>(status.st_size);
  UniqueFd words(::dup(log_.get()));
  if (!words.valid()) return errno_error("dup", errno);
  MONARCH_ASSIGN(ticket_, programs_.start(
                              std::move(command),
                              {.in = std::move(in.theirs), .out = std::move(out.theirs), .err = std::move(words)},
                              [this](const std::optional<RankEnd>& end) { on_end(end); }, std::move(environment)));
  input_ = std::move(in.ours);
  output_ = std::move(out.ours);
  MONARCH_ASSIGN(output_watch_, loop_.watch(output_.get(), Interest::kRead, [this](Readiness) { on_output(); }));
  MONARCH_ASSIGN(input_watch_, loop_.watch(input_.get(), Interest::kNone, [this](Readiness ready) {
    if (ready.hangup) close_input();  // it reads no more; what it wrote before tells why
    go_on();
  }));
  return {};
}

PipedProgram::~PipedProgram() {
  left_ ? programs_.disown(ticket_) : kill();
  close_input();
  close_output();
}

void PipedProgram::on_output() {
  std::string bytes;
  if (read_available(output_.get(), bytes, kReadBytes)) close_output();
  const auto told = handlers_.on_output;
  if (!bytes.empty()) told(bytes);
}

void PipedProgram::on_end(const std::optional<RankEnd>& end) {
  ticket_ = 0;
  std::string rest;
  for (int turn = 0; output_.valid() && turn < kLastReads; ++turn) {
    std::string piece;
    const bool closed = read_available(output_.get(), piece, kReadBytes);
    rest += piece;
    if (closed || piece.empty()) break;
  }
  close_output();
  const auto told = handlers_.on_end;
  told(end, rest);
}

void PipedProgram::write(std::string words) {
  if (words.empty()) return;
  Piece& piece = pieces_.emplace_back(Piece{.words = std::move(words), .left = {}});
  piece.left = piece.words;
  go_on();
}

void PipedProgram::write_lasting(std::string_view lasting) {
  pieces_.push_back({.words = {}, .left = lasting});
  go_on();
}

void PipedProgram::go_on() {
  bool written = false;
  while (input_.valid() && !pieces_.empty()) {
    std::string_view& left = pieces_.front().left;
    const ssize_t n = ::write(input_.get(), left.data(), left.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) close_input();  // it reads no more; what it wrote before tells why
    if (n < 0) break;
    written = true;
    left.remove_prefix(static_cast<std::size_t>(n));
    if (left.empty()) pieces_.pop_front();
  }
  if (input_watch_ != 0) loop_.change(input_watch_, pieces_.empty() ? Interest::kNone : Interest::kWrite);
  if (written) handlers_.on_written();
}

void PipedProgram::kill() {
  programs_.disown(ticket_);
  programs_.kill(std::exchange(ticket_, 0));
}

// WARNING: whoever kills the first process of an srun ends its step, and with that its workers (Slurm 22.05).
void PipedProgram::spare() {
  leave();
  if (!std::exchange(spared_, true)) programs_.let_live(ticket_);
}

void PipedProgram::close_input() {
  if (input_watch_ != 0) loop_.forget(std::exchange(input_watch_, 0));
  input_.reset();
}

void PipedProgram::close_output() {
  if (output_watch_ != 0) loop_.forget(std::exchange(output_watch_, 0));
  output_.reset();
}

std::string PipedProgram::said(std::size_t limit) const {
  std::size_t begin = said_before_;
  struct stat status {};
  if (::fstat(log_.get(), &status) == 0) {
    const auto end = static_cast<std::size_t>(status.st_size);
    if (end > limit) begin = std::max(begin, end - limit);
  }
  std::string words(limit, '\0');
  const ssize_t n = ::pread(log_.get(), words.data(), words.size(), static_cast<off_t>(begin));
  words.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
  return words;
}

}  // namespace monarch
