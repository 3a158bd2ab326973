#include "transport/process/process_limits.h"

#include <cerrno>
#include <utility>

#include "transport/base/system/thread_limits.h"
#include "transport/base/text.h"

namespace monarch {

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
