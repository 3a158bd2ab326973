#include "transport/base/system/thread_limits.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <optional>
#include <utility>

#include "transport/base/system/own_group.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::optional<std::uint64_t> soft_limit(__rlimit_resource which) {
  rlimit limit{};
  if (::getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

// As the C library makes one, which takes its size from the limit as it was when the process began.
bool has_room_for_stack(std::size_t bytes) {
  void* const tried = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (tried == MAP_FAILED) return false;
  const bool writable = ::mprotect(tried, bytes, PROT_READ | PROT_WRITE) == 0;
  (void)::munmap(tried, bytes);
  return writable;
}

std::size_t stack_of_a_thread() {
  pthread_attr_t attributes;
  std::size_t bytes = 0;
  if (::pthread_getattr_default_np(&attributes) != 0) return 0;
  (void)::pthread_attr_getstacksize(&attributes, &bytes);
  (void)::pthread_attr_destroy(&attributes);
  return bytes;
}

}  // namespace

std::string processes_limit() {
  if (const auto full = own_full_group()) return text(full->most, " processes at most in ", full->path, ": pids.max");
  const auto processes = soft_limit(RLIMIT_NPROC);
  return processes ? text(*processes, " processes of this user at most: ulimit -u") : std::string();
}

std::string threads_limit() {
  const std::size_t stack = stack_of_a_thread();
  if (stack == 0 || has_room_for_stack(stack)) return processes_limit();
  const auto addresses = soft_limit(RLIMIT_AS);
  return text("no room for its stack of ", amount_text(stack), ": ulimit -s",
              addresses ? text("; ", amount_text(*addresses), " of memory at most: ulimit -v") : "");
}

std::string with_threads_limit(std::string words) {
  if (!words.ends_with(system_word(EAGAIN))) return words;
  const std::string limit = threads_limit();
  return limit.empty() ? words : text(words, " (", limit, ")");
}

Error thread_error(int errno_value) {
  Error error = errno_error("starting a thread", errno_value);
  error.message = with_threads_limit(std::move(error.message));
  return error;
}

std::string why_stack_is_too_small() {
  const auto stack = soft_limit(RLIMIT_STACK);
  if (!stack || *stack >= kLeastStackBytes) return {};
  return text("the stack may have ", amount_text(*stack), " (ulimit -s), and ", amount_text(kLeastStackBytes),
              " are needed at least");
}

}  // namespace monarch
