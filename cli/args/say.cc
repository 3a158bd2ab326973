#include "cli/args/say.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "cli/args/command.h"
#include "cli/term/write_all.h"
#include "supervisor/spec/yaml/diagnostics.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

void write_out(const Terminal& terminal, std::string_view words) {
  note_lost_output(terminal, write_all(STDOUT_FILENO, words));
}

bool has_lost_output(const Terminal& terminal) { return terminal.out_loss != nullptr && terminal.out_loss->error != 0; }

void note_lost_output(const Terminal& terminal, int error) {
  if (terminal.out_loss != nullptr && terminal.out_loss->error == 0) terminal.out_loss->error = error;
}

void note_lost_errors(const Terminal& terminal, int error) {
  if (terminal.out_loss != nullptr && terminal.out_loss->of_stderr == 0) terminal.out_loss->of_stderr = error;
}

int exit_code_of(int code, const Terminal& terminal) {
  const auto is_loss = [](int error) { return error != 0 && error != EPIPE; };
  OutputLoss loss = terminal.out_loss != nullptr ? *terminal.out_loss : OutputLoss{};
  // WARNING: some file systems tell only here that they have no room (close(2)).
  if (loss.error == 0 && terminal.out_is_file && ::close(STDOUT_FILENO) != 0) loss.error = errno;
  if (!is_loss(loss.error) && !is_loss(loss.of_stderr)) return code;
  const bool out = is_loss(loss.error);
  say_error(terminal, {.id = "E0936",
                       .message = text("what was to be printed is lost: ", out ? "stdout: " : "stderr: ",
                                       std::strerror(out ? loss.error : loss.of_stderr)),
                       .help = ""});
  return code == kExitOk ? kExitOutput : code;
}

// A failure is ignored: there is nobody else to tell.
void write_err(std::string_view words) { (void)write_all(STDERR_FILENO, words); }

Complaint state_complaint(std::string message) {
  return {.id = "E0907",
          .message = std::move(message),
          .help = "MONARCH_STATE_DIR names another place for jobs, XDG_RUNTIME_DIR one for sockets"};
}

std::string complaint_text(const Complaint& complaint, bool colour) {
  MONARCH_ASSERT(find_error(complaint.id) != nullptr);
  std::string out = text(paint(Colour::kRed, text("error[", complaint.id, "]"), colour), ": ", complaint.message, "\n");
  if (!complaint.help.empty()) out += text("  = ", paint(Colour::kCyan, "help", colour), ": ", complaint.help, "\n");
  return out;
}

void say_error(const Terminal& terminal, const Complaint& complaint) {
  write_err(complaint_text(complaint, terminal.err_colour));
}

int refuse(const Context& context, const Complaint& complaint, int exit_code) {
  say_error(context.terminal, complaint);
  return exit_code;
}

std::nullopt_t refuse_value(const Context& context, const std::string& message, const std::string& help) {
  say_error(context.terminal, {.id = "E0904", .message = message, .help = help});
  return std::nullopt;
}

void say_note(const Terminal& terminal, std::string_view words) {
  if (!terminal.quiet) write_err(text("monarch: ", words, "\n"));
}

}  // namespace monarch
