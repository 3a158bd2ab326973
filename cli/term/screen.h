#pragma once

// Screen: stdout and stderr of a viewer that follows a job, and the one line of progress at the bottom of a terminal,
// which makes room for everything else.
//
// Thread: the loop's. Lifetime: shorter than the loop's.

#include <memory>
#include <string>

#include "cli/term/output_writer.h"
#include "cli/term/terminal.h"
#include "transport/loop/event_loop.h"

namespace monarch {

class Screen {
 public:
  Screen(EventLoop& loop, const Terminal& terminal);

  OutputWriter& out() { return *out_; }
  OutputWriter& err() { return *err_; }
  const Terminal& terminal() const { return terminal_; }

  // Before bytes are appended to either buffer.
  void make_room();
  // After a key was pressed: the terminal has shown it where the cursor was.
  void forget_what_was_typed();
  // A whole line, or several, to stderr.
  void say(std::string_view lines);
  // The same of words that a CI runner is to obey.
  void command(std::string_view lines);
  // Replaces the line of progress; empty: none. Nothing happens without a terminal.
  void progress(const std::string& line);
  // The window has another size now: the line of progress is fitted anew.
  void resized();

  // Both lead to the same terminal, pipe or file: what is said stands behind what was shown.
  bool is_one_stream() const;
  bool full() const { return out_->full() || err_->full(); }
  bool written() const { return out_->empty() && err_->empty(); }
  void on_drained(const std::function<void()>& call);

 private:
  Terminal terminal_;
  std::unique_ptr<OutputWriter> out_;
  std::unique_ptr<OutputWriter> err_;
  std::string wanted_;  // the line of progress, and what of it is shown
  std::string shown_;
};

}  // namespace monarch
