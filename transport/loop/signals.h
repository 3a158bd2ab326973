#pragma once

// SignalFd: signals as readable events. Blocks them for the calling thread, which must be the only one so far: threads
// made later inherit the mask (signalfd(2)). A child must unblock them before exec: reset_signals_in_child(). HUP that
// the process was started to ignore stays ignored, and so do INT and QUIT where a terminal's key sends them; whoever
// sends these two by kill(2) means this process.
//
// Thread: the loop's.

#include <sys/signalfd.h>

#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

struct ReceivedSignal {
  int number = 0;
  int sender_pid = 0;
  unsigned sender_uid = 0;
};

class SignalFd {
 public:
  static Result<std::unique_ptr<SignalFd>> create(std::initializer_list<int> signals);
  SignalFd(const SignalFd&) = delete;
  SignalFd& operator=(const SignalFd&) = delete;

  int descriptor() const { return fd_.get(); }
  // The next pending signal, or nothing.
  std::optional<ReceivedSignal> next();

 private:
  SignalFd(UniqueFd fd, std::vector<int> no_keys) : fd_(std::move(fd)), no_keys_(std::move(no_keys)) {}
  UniqueFd fd_;
  std::vector<int> no_keys_;  // signals that a terminal sends to others
};

// For a process of ours among a user's: whoever signals all that runs somewhere (Slurm's --signal, a hang-up) means the
// ranks. Only TERM, KILL and what a fault of its own sends can end it from then on. Children get the defaults back by
// reset_signals_in_child().
void ignore_what_is_for_ranks();

// Async-signal-safe: default dispositions and an empty mask, for a child between fork and exec.
void reset_signals_in_child();

// "SIGTERM" or "signal 77"
std::string signal_name(int number);
// "TERM", "SIGTERM" or "15"; kInvalid otherwise. Of those names, without SIG, all.
Result<int> signal_number(std::string_view name);
std::vector<std::string> signal_names();

}  // namespace monarch
