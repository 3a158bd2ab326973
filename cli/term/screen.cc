#include "cli/term/screen.h"

#include <sys/stat.h>
#include <unistd.h>

#include "cli/term/table.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kEraseLine = "\r\x1b[K";

// At most `columns` characters: a longer line would wrap and could not be erased.
std::string fit(const std::string& line, std::size_t columns) {
  if (display_width(line) < columns) return line;
  std::string out;
  std::size_t width = 0;
  for (const char c : line) {
    const bool begins = (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;
    if (begins && ++width >= columns) break;
    out.push_back(c);
  }
  return out;
}

}  // namespace

Screen::Screen(EventLoop& loop, const Terminal& terminal)
    : terminal_(terminal),
      out_(OutputWriter::create(loop, STDOUT_FILENO)),
      err_(OutputWriter::create(loop, STDERR_FILENO)) {}

void Screen::make_room() {
  if (shown_.empty()) return;
  shown_.clear();
  err_->write(kEraseLine);
}

void Screen::forget_what_was_typed() {
  shown_.clear();
  if (terminal_.err_live) err_->write(kEraseLine);
}

void Screen::say(std::string_view lines) {
  make_room();
  err_->write(terminal_.runner.is_one() ? terminal_.runner.lines_as_text(lines) : std::string(lines));
}

void Screen::command(std::string_view lines) {
  if (lines.empty()) return;
  make_room();
  err_->write(lines);
}

// A terminal that became narrower has broken the line into several: they go from the first one on. (One that cuts it
// instead loses a line above it from the screen.)
void Screen::resized() {
  if (shown_.empty()) return;
  const std::size_t rows = (display_width(shown_) - 1) / terminal_.columns();
  std::string erase = "\r";
  if (rows > 0) erase += text("\x1b[", rows, "A");
  shown_.clear();
  err_->write(erase + "\x1b[J");
  progress(wanted_);
}

void Screen::progress(const std::string& line) {
  if (!terminal_.err_live || terminal_.quiet) return;
  wanted_ = line;
  const std::string fitted = fit(line, terminal_.columns());
  if (fitted == shown_) return;
  if (err_->full()) return;  // nobody looks
  make_room();
  shown_ = fitted;
  err_->write(fitted);
}

bool Screen::is_one_stream() const {
  struct stat out {};
  struct stat err {};
  return ::fstat(STDOUT_FILENO, &out) == 0 && ::fstat(STDERR_FILENO, &err) == 0 && out.st_dev == err.st_dev &&
         out.st_ino == err.st_ino;
}

void Screen::on_drained(const std::function<void()>& call) {
  out_->on_drained(call);
  err_->on_drained(call);
}

}  // namespace monarch
