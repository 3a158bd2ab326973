#include "supervisor/journal/runtime_dir.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "transport/base/text.h"
#include "transport/wire/runtime_directory.h"

namespace monarch {

std::string runtime_dir_path(const StateEnvironment& environment) {
  return runtime_directory({.xdg_runtime_dir = environment.xdg_runtime_dir, .uid = environment.uid});
}

Result<SecureDirectory> open_runtime_dir(const StateEnvironment& environment) {
  auto opened = SecureDirectory::open_or_create(runtime_dir_path(environment));
  // A root that is read-only has the folder of an earlier job, and no place for a socket.
  if (opened.ok() && ::faccessat(opened->fd(), ".", W_OK | X_OK, AT_EACCESS) != 0) {
    opened = errno_error(text("writing to ", printable(opened->path())), errno);
  }
  if (opened.ok()) return opened;
  return Error{opened.error().code, text("no place for sockets: ", opened.error().message,
                                         "; XDG_RUNTIME_DIR names another, a folder of your own")};
}

Result<std::string> socket_path(const SecureDirectory& runtime, const std::string& name) {
  std::string path = runtime.path() + "/" + name;
  if (path.size() <= kSocketPathBytes) return path;
  return Error{ErrorCode::kInvalid, text("the socket ", path, " has ", path.size(), " bytes, and an address ends at ",
                                         kSocketPathBytes, ": set XDG_RUNTIME_DIR to a shorter path")};
}

}  // namespace monarch
