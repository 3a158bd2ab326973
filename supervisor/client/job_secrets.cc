#include "supervisor/client/job_secrets.h"

#include <unistd.h>

#include <cerrno>

#include "supervisor/client/link/endpoint.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

void remove_secrets(const SecureDirectory& directory) {
  for (const char* name : {kKeyFile, kPortsFile, kEndpointFile}) {
    if (::unlinkat(directory.fd(), name, 0) != 0 && errno != ENOENT) {
      log_error(errno_error(text("removing ", directory.path(), "/", name), errno).message);
    }
  }
}

}  // namespace monarch
