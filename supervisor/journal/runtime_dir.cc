#include "supervisor/journal/runtime_dir.h"

#include <sys/stat.h>

#include "transport/base/text.h"

namespace monarch {

namespace {

// A variable that outlived its login (su, sudo, a container) names a directory that is gone or another user's.
bool is_own_directory(const std::string& path, std::uint32_t uid) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == uid;
}

}  // namespace

std::string runtime_dir_path(const StateEnvironment& environment) {
  const std::string& given = environment.xdg_runtime_dir;
  if (!given.empty() && given.front() == '/' && is_own_directory(given, environment.uid)) return given + "/monarch";
  return text("/tmp/monarch-", environment.uid);
}

Result<SecureDirectory> open_runtime_dir(const StateEnvironment& environment) {
  return SecureDirectory::open_or_create(runtime_dir_path(environment));
}

Result<std::string> socket_path(const SecureDirectory& runtime, const std::string& name) {
  std::string path = runtime.path() + "/" + name;
  if (path.size() <= kSocketPathBytes) return path;
  return Error{ErrorCode::kInvalid, text("the socket ", path, " has ", path.size(), " bytes, and an address ends at ",
                                         kSocketPathBytes, ": set XDG_RUNTIME_DIR to a shorter path")};
}

}  // namespace monarch
