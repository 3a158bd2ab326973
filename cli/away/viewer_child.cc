#include "cli/away/viewer_child.h"

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "transport/base/text.h"
#include "transport/process/pipe.h"

namespace monarch {

namespace {

constexpr int kWidthsThere = 3;
constexpr std::string_view kOptions = "MONARCH_OPT_";

bool is_display_variable(const std::string& name) {
  const auto& known = display_variables();
  return std::find(known.begin(), known.end(), name) != known.end();
}

}  // namespace

const std::vector<std::string>& display_variables() {
  static const std::vector<std::string> kNames = {"TERM",           "NO_COLOR",  "FORCE_COLOR", "CLICOLOR_FORCE",
                                                  "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE",   "TF_BUILD"};
  return kNames;
}

std::vector<std::string> viewer_environment(const Environment& env, const ViewerOrder& order, int widths) {
  std::vector<std::string> all;
  for (const auto& [name, value] : env.all()) {
    // The order's words are the whole command line: what this machine's shell would add is not the person's.
    if (name == kTerminalVariable || name.starts_with(kOptions) || is_display_variable(name)) continue;
    all.push_back(text(name, "=", value));
  }
  for (const auto& [name, value] : order.variables) {
    if (is_display_variable(name)) all.push_back(text(name, "=", value));
  }
  auto facts = parse_terminal_facts(order.terminal).value_or(TerminalFacts{});
  facts.widths = widths;
  all.push_back(text(kTerminalVariable, "=", to_text(facts)));
  return all;
}

Result<std::unique_ptr<ViewerChild>> ViewerChild::start(EventLoop& loop, const std::string& program,
                                                        const Environment& env, const ViewerOrder& order,
                                                        ViewerChildHandlers handlers) {
  std::unique_ptr<ViewerChild> viewer(new ViewerChild(loop, std::move(handlers)));
  MONARCH_ASSIGN(Pipe out, make_pipe(PipeReader::kDoesNotWait));
  MONARCH_ASSIGN(Pipe err, make_pipe(PipeReader::kDoesNotWait));
  viewer->widths_ = UniqueFd(::memfd_create("monarch-widths", MFD_CLOEXEC));
  if (!viewer->widths_.valid()) return errno_error("memfd_create", errno);
  SpawnOptions options{.program = {"monarch"},
                       .environment = viewer_environment(env, order, kWidthsThere),
                       .executable = program,
                       .descriptors = {{.source = out.writer.get(), .target = STDOUT_FILENO},
                                       {.source = err.writer.get(), .target = STDERR_FILENO},
                                       {.source = viewer->widths_.get(), .target = kWidthsThere}}};
  options.program.insert(options.program.end(), order.words.begin(), order.words.end());
  auto forked = Child::fork(options);
  if (const auto* failed = std::get_if<StepFailure>(&forked)) return errno_error(failed->detail, failed->error);
  viewer->child_ = std::move(std::get<std::unique_ptr<Child>>(forked));
  viewer->child_->open_gate();
  viewer->out_.pipe = std::move(out.reader);
  viewer->err_.pipe = std::move(err.reader);
  ViewerChild* self = viewer.get();
  MONARCH_TRY(self->watch(self->out_));
  MONARCH_TRY(self->watch(self->err_));
  MONARCH_TRY(self->ends_.watch(self->child_->pid(), self->child_->pidfd(), [self](const ExitStatus& status) {
    self->status_ = status;
    self->tell_end();
  }));
  return viewer;
}

ViewerChild::~ViewerChild() {
  forget(out_);
  forget(err_);
  if (child_ == nullptr) return;
  (void)send_signal(child_->pidfd(), SIGKILL);  // one that has ended needs none
  siginfo_t info{};
  (void)::waitid(P_PIDFD, static_cast<id_t>(child_->pidfd()), &info, WEXITED);
}

Status ViewerChild::watch(Stream& stream) {
  if (!stream.pipe.valid() || stream.watch != 0) return {};
  MONARCH_ASSIGN(stream.watch,
                 loop_.watch(stream.pipe.get(), Interest::kRead, [this, &stream](Readiness) { read(stream); }));
  return {};
}

void ViewerChild::forget(Stream& stream) {
  if (stream.watch != 0) loop_.forget(std::exchange(stream.watch, 0));
}

void ViewerChild::read(Stream& stream) {
  std::array<char, 64U << 10U> piece{};
  const long got = ::read(stream.pipe.get(), piece.data(), piece.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got > 0) return handlers_.on_bytes(stream.kind, {piece.data(), static_cast<std::size_t>(got)});
  close(stream.kind);
}

void ViewerChild::tell_end() {
  if (told_ || !status_ || out_.pipe.valid() || err_.pipe.valid()) return;
  told_ = true;
  handlers_.on_ended(*status_);
}

void ViewerChild::pause() {
  paused_ = true;
  forget(out_);
  forget(err_);
}

void ViewerChild::resume() {
  if (!std::exchange(paused_, false)) return;
  for (Stream* stream : {&out_, &err_}) {
    if (!watch(*stream).ok()) close(stream->kind);  // without memory for a watch its end is all that can be told
  }
}

void ViewerChild::signal(int number) {
  if (!status_) (void)send_signal(child_->pidfd(), number);
}

void ViewerChild::resize(const TerminalWidths& widths) {
  write_terminal_widths(widths_.get(), widths);
  signal(SIGWINCH);
}

void ViewerChild::close(ViewerFrameKind kind) {
  Stream& stream = kind == ViewerFrameKind::kOut ? out_ : err_;
  forget(stream);
  stream.pipe.reset();
  tell_end();
}

}  // namespace monarch
