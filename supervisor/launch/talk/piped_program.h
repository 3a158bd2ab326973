#pragma once

// PipedProgram: a program, an srun perhaps, with a pipe to its standard input, one from its standard output, and a file
// for what it says itself.
//
// Thread: the loop's. Lifetime: shorter than that of its programs and the loop. Its end ends the program,
// but for one that was left alone.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/launch/talk/programs.h"
#include "transport/base/result.h"
#include "transport/loop/event_loop.h"

namespace monarch {

// None is told within a call of its owner's but on_written. The last one may destroy the program.
struct PipedProgramHandlers {
  std::function<void(const std::string& bytes)> on_output;  // never empty; may destroy it
  std::function<void()> on_written;                         // something of what was to be written
  // It has ended, and how; nothing: that is not known. `rest`: what it wrote and nobody has read.
  std::function<void(const std::optional<RankEnd>& end, const std::string& rest)> on_end;
};

class PipedProgram {
 public:
  // Without a `log` what it says itself is kept by this object alone.
  static Result<std::unique_ptr<PipedProgram>> start(EventLoop& loop, Programs& programs,
                                                     std::vector<std::string> command, const std::string& log,
                                                     PipedProgramHandlers handlers,
                                                     std::map<std::string, std::string> environment = {});
  PipedProgram(const PipedProgram&) = delete;
  PipedProgram& operator=(const PipedProgram&) = delete;
  ~PipedProgram();

  // Written in this order, when it reads. Of `lasting` the bytes are the caller's, and outlive the program.
  void write(std::string words);
  void write_lasting(std::string_view lasting);
  // What is not written by then never is.
  void close_input();
  // What it writes from now on is nobody's.
  void close_output();
  // Its end is not told any more.
  void kill();
  // It ends by itself, and not with this object.
  void leave() { left_ = true; }
  // The same, also where the guard ends before the job does.
  void spare();
  // What it has said itself since it began; of more than so many bytes the last.
  std::string said(std::size_t limit) const;

 private:
  // Of words of its own, or of another's.
  struct Piece {
    std::string words;
    std::string_view left;
  };

  PipedProgram(EventLoop& loop, Programs& programs, PipedProgramHandlers handlers)
      : loop_(loop), programs_(programs), handlers_(std::move(handlers)) {}
  Status open(std::vector<std::string> command, const std::string& log, std::map<std::string, std::string> environment);
  void on_output();
  void on_end(const std::optional<RankEnd>& end);
  void go_on();

  EventLoop& loop_;
  Programs& programs_;
  PipedProgramHandlers handlers_;
  Programs::Ticket ticket_ = 0;
  bool left_ = false;
  bool spared_ = false;
  UniqueFd log_;
  std::size_t said_before_ = 0;
  UniqueFd input_;
  WatchId input_watch_ = 0;
  UniqueFd output_;
  WatchId output_watch_ = 0;
  std::deque<Piece> pieces_;
};

}  // namespace monarch
