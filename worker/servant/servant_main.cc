#include "worker/servant/servant_main.h"

#include <fcntl.h>
#include <malloc.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "transport/base/limits.h"
#include "transport/base/unique_fd.h"
#include "transport/process/hidden_memory.h"
#include "transport/wire/sealed_memory.h"

namespace monarch {
namespace {

// Each checkpoint, and each body of a call, is a descriptor; and so is each connection.
void raise_descriptor_limit() {
  rlimit descriptors{};
  if (::getrlimit(RLIMIT_NOFILE, &descriptors) != 0) return;
  descriptors.rlim_cur = descriptors.rlim_max;
  (void)::setrlimit(RLIMIT_NOFILE, &descriptors);  // up to the hard limit it does not fail
}

}  // namespace

void prepare_servant(const std::string& kind, const ServantLimits& limits) {
  refuse_core_dumps();
  hide_memory();
  raise_descriptor_limit();
  (void)::mallopt(M_ARENA_MAX, 1);
  (void)::mallopt(M_MMAP_THRESHOLD, limits.map_from_bytes);
  log_start({.name = kind});
}

Result<std::string> take_servant_setup() {
  struct stat status {};
  if (::fstat(STDIN_FILENO, &status) != 0) return errno_error("fstat of the setup", errno);
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size > limits::kControlPayloadBytes) return Error{ErrorCode::kInvalid, text("a setup of ", size, " bytes")};
  MONARCH_ASSIGN(std::string bytes, read_sealed_memory(STDIN_FILENO, size));
  const UniqueFd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid() || ::dup2(null.get(), STDIN_FILENO) < 0) return errno_error("closing the setup", errno);
  return bytes;
}

// WARNING: the parent of prctl(2) is the thread that forked, and a keeper has one alone. One that ended before this is
// seen by the new parent.
Status die_with(pid_t keeper) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return errno_error("PR_SET_PDEATHSIG", errno);
  if (::getppid() != keeper) return Error{ErrorCode::kGone, text("its keeper, process ", keeper, ", is gone")};
  return {};
}

}  // namespace monarch
