#include "transport/wire/runtime_directory.h"

#include <sys/stat.h>
#include <unistd.h>

#include "transport/base/text.h"

namespace monarch {

namespace {

// A variable that outlived its login (su, sudo, a container) names a directory that is gone or another user's.
bool is_own_directory(const std::string& path, std::uint32_t uid) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode) && status.st_uid == uid;
}

// As in a container, whose root is not the machine's.
bool is_somebody_elses(const std::string& path, std::uint32_t uid) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0 && status.st_uid != uid;
}

std::string lasting_in(const std::string& place, std::uint32_t uid) { return text(place, "/monarch-", uid); }

}  // namespace

std::string runtime_directory(const RuntimeUser& user) {
  const std::string& given = user.xdg_runtime_dir;
  const bool usable = given.starts_with('/') && is_own_directory(given, user.uid);
  if (usable && !given.starts_with(user.logins + "/")) return given + "/monarch";
  std::string lasting = lasting_directories(user).front();
  if (!is_somebody_elses(lasting, user.uid)) return lasting;
  if (usable) return given + "/monarch";
  const std::string login = text(user.logins, '/', user.uid);
  return is_own_directory(login, user.uid) ? login + "/monarch" : lasting;
}

std::string lasting_directory(std::uint32_t uid) { return lasting_directories({.uid = uid}).front(); }

std::vector<std::string> lasting_directories(const RuntimeUser& user) {
  std::vector<std::string> found;
  for (const std::string& place : user.lasting) {
    const std::string path = lasting_in(place, user.uid);
    const std::string& made_in = ::access(path.c_str(), F_OK) == 0 ? path : place;
    const bool can_be = ::access(made_in.c_str(), W_OK | X_OK) == 0;  // also where the file system is read-only
    if (can_be && !is_somebody_elses(path, user.uid)) found.push_back(path);
  }
  if (found.empty()) found.push_back(lasting_in(user.lasting.front(), user.uid));
  return found;
}

std::optional<std::string> squatted_directory(const RuntimeUser& user) {
  const std::string first = lasting_in(user.lasting.front(), user.uid);
  return is_somebody_elses(first, user.uid) ? std::optional(first) : std::nullopt;
}

}  // namespace monarch
