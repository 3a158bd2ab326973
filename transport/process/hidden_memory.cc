#include "transport/process/hidden_memory.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "transport/base/unique_fd.h"

namespace monarch {

void hide_memory() { (void)::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }  // fails for no process (prctl(2))

// libzmq copies the secret key, so no page of ours goes into a core file. WARNING: a core_pattern that is a pipe
// ignores RLIMIT_CORE (core(5)); the filter holds there too.
void refuse_core_dumps() {
  const rlimit none{0, 0};
  (void)::setrlimit(RLIMIT_CORE, &none);  // lowering a limit does not fail
  const UniqueFd filter(::open("/proc/self/coredump_filter", O_WRONLY | O_CLOEXEC));
  if (filter.valid()) (void)!::write(filter.get(), "0", 1);  // without the file there are no core dumps
}

}  // namespace monarch
