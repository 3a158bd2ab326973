#include "cli/say.h"

#include <unistd.h>

#include "cli/command.h"
#include "cli/write_all.h"
#include "supervisor/spec/diagnostics.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

// A failure is ignored: nobody reads the words, and there is nobody else to tell.
void write_out(std::string_view words) { (void)write_all(STDOUT_FILENO, words, "writing to stdout"); }
void write_err(std::string_view words) { (void)write_all(STDERR_FILENO, words, "writing to stderr"); }

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
