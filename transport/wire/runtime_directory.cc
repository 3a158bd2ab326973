#include "transport/wire/runtime_directory.h"

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

std::string runtime_directory(const RuntimeUser& user) {
  const std::string& given = user.xdg_runtime_dir;
  if (given.starts_with('/') && is_own_directory(given, user.uid)) return given + "/monarch";
  if (const std::string login = text(user.logins, '/', user.uid); is_own_directory(login, user.uid)) {
    return login + "/monarch";
  }
  return lasting_directory(user.uid);
}

std::string lasting_directory(std::uint32_t uid) { return text("/tmp/monarch-", uid); }

}  // namespace monarch
