#include "transport/process/process_limits.h"

#include <sys/resource.h>

#include <cerrno>
#include <utility>

#include "transport/base/text.h"
#include "transport/process/cgroup.h"

namespace monarch {

std::string processes_limit() {
  if (const auto full = own_full_group()) return text(full->most, " processes at most in ", full->path, ": pids.max");
  rlimit limit{};
  if (::getrlimit(RLIMIT_NPROC, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
  return text(limit.rlim_cur, " processes of this user at most: ulimit -u");
}

StepFailure with_limit(StepFailure failure) {
  if (failure.exit_code != 0) return failure;
  const std::string limit = failure.error == EMFILE   ? open_files_limit()
                            : failure.error == EAGAIN ? processes_limit()
                                                      : std::string();
  if (!limit.empty()) failure.detail += text(" (", limit, ")");
  return failure;
}

Error fork_error(int errno_value) { return errno_error(with_limit({errno_value, "fork"}).detail, errno_value); }

}  // namespace monarch
