#include "worker/rank/stack_watch.h"

#include <pthread.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "transport/base/sanitizers.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr long kSignalStack = 16L << 10U;      // for a handler that writes a line
constexpr std::uintptr_t kAround = 1U << 20U;  // a large frame may pass over the guard page

// Of this thread, for its handler.
struct OwnStack {
  std::uintptr_t from = 0;
  std::uintptr_t to = 0;  // behind what a full stack may have accessed
  const char* words = nullptr;
  std::size_t size = 0;
};
thread_local OwnStack own_stack;

// The handler is gone once it runs: what was accessed is accessed again, and the process ends as it would have; so it
// does by a signal that somebody sent.
void on_bad_access(int number, siginfo_t* info, void* /*context*/) {
  if (info->si_code <= 0) return (void)::raise(number);
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  if (at >= own_stack.from && at < own_stack.to) (void)!::write(STDERR_FILENO, own_stack.words, own_stack.size);
}

}  // namespace

void StackWatch::begin() {
  if (kSanitized) return;
  struct sigaction before {};
  if (::sigaction(SIGSEGV, nullptr, &before) != 0 || before.sa_handler != SIG_DFL) return;
  struct sigaction action {};
  action.sa_sigaction = &on_bad_access;
  action.sa_flags = static_cast<int>(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND);
  (void)::sigaction(SIGSEGV, &action, nullptr);
}

StackWatch::StackWatch(const std::string& who)
    : signal_stack_(static_cast<std::size_t>(std::max(kSignalStack, ::sysconf(_SC_SIGSTKSZ)))) {
  pthread_attr_t attributes;
  void* lowest = nullptr;
  std::size_t size = 0;
  if (::pthread_getattr_np(::pthread_self(), &attributes) != 0) return;
  (void)::pthread_attr_getstack(&attributes, &lowest, &size);
  (void)::pthread_attr_destroy(&attributes);
  words_ = text("monarch-rank: the stack of ", who, " is full: it may have ", amount_text(size), " (ulimit -s)\n");
  const stack_t own{.ss_sp = signal_stack_.data(), .ss_flags = 0, .ss_size = signal_stack_.size()};
  if (::sigaltstack(&own, nullptr) != 0) return;
  const auto at = reinterpret_cast<std::uintptr_t>(lowest);
  const std::uintptr_t page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  own_stack = {.from = at - kAround, .to = at + 2 * page, .words = words_.data(), .size = words_.size()};
}

StackWatch::~StackWatch() {
  own_stack = {};
  const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  (void)::sigaltstack(&none, nullptr);
}

}  // namespace monarch
