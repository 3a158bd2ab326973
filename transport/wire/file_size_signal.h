#pragma once

// FileSizeSignal: while it lives, what this thread grows beyond the limit of file size (ulimit -f) is refused by EFBIG
// and does not end the process by SIGXFSZ, whose default is death. The limit holds for memory files, too
// (setrlimit(2)). What the process itself does about that signal stays as it is.
//
// Thread: one. Lifetime: a scope's.

#include <csignal>
#include <ctime>

#include <pthread.h>

namespace monarch {

class FileSizeSignal {
 public:
  FileSizeSignal() {
    sigemptyset(&set_);
    sigaddset(&set_, SIGXFSZ);
    sigset_t pending;
    was_pending_ = ::sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
    held_ = pthread_sigmask(SIG_BLOCK, &set_, &before_) == 0;
  }
  ~FileSizeSignal() {
    if (!held_) return;
    const timespec at_once{};
    if (!was_pending_) (void)::sigtimedwait(&set_, nullptr, &at_once);  // the kernel sends it to the very thread
    (void)pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  FileSizeSignal(const FileSizeSignal&) = delete;
  FileSizeSignal& operator=(const FileSizeSignal&) = delete;

 private:
  sigset_t set_{};
  sigset_t before_{};
  bool held_ = false;
  bool was_pending_ = false;
};

}  // namespace monarch
