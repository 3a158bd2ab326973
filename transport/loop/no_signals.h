#pragma once

// NoSignals: threads that are started while it lives take no signals: these are for the threads of whoever loads us.
//
// Thread: the one that starts them.

#include <pthread.h>

#include <csignal>

namespace monarch {

class NoSignals {
 public:
  NoSignals() {
    sigset_t all;
    (void)::sigfillset(&all);
    (void)::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  NoSignals(const NoSignals&) = delete;
  NoSignals& operator=(const NoSignals&) = delete;
  ~NoSignals() { (void)::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

 private:
  sigset_t before_{};
};

}  // namespace monarch
