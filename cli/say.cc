#include "cli/say.h"

#include <unistd.h>

#include <cerrno>

#include "supervisor/spec/diagnostics.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

void write_all(int fd, std::string_view words) {
  while (!words.empty()) {
    const long wrote = ::write(fd, words.data(), words.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return;  // nobody reads it, and there is nobody else to tell
    words.remove_prefix(static_cast<std::size_t>(wrote));
  }
}

}  // namespace

void write_out(std::string_view words) { write_all(STDOUT_FILENO, words); }
void write_err(std::string_view words) { write_all(STDERR_FILENO, words); }

std::string complaint_text(const Complaint& complaint, bool colour) {
  MONARCH_ASSERT(find_error(complaint.id) != nullptr);
  std::string out = text(paint(Colour::kRed, text("error[", complaint.id, "]"), colour), ": ", complaint.message, "\n");
  if (!complaint.help.empty()) out += text("  = ", paint(Colour::kCyan, "help", colour), ": ", complaint.help, "\n");
  return out;
}

void say_error(const Terminal& terminal, const Complaint& complaint) {
  write_err(complaint_text(complaint, terminal.err_colour));
}

void say_note(const Terminal& terminal, std::string_view words) {
  if (!terminal.quiet) write_err(text("monarch: ", words, "\n"));
}

}  // namespace monarch
