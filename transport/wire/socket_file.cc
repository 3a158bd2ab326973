#include "transport/wire/socket_file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <string_view>

#include "transport/base/text.h"
#include "transport/wire/socket_directory.h"
#include "transport/wire/unix_address.h"

namespace monarch {

namespace {

std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/')); }

bool is_named_by_us(const std::string& folder) {
  const std::string_view name = std::string_view(folder).substr(folder.rfind('/') + 1);
  return name.starts_with("monarch") || name.starts_with("w-");
}

// Of the folder, and the one around it: what holds these is the system's, or the user's.
Status make_missing_folders(const std::string& path) {
  const std::string folder = folder_of(path);
  const std::string outer = folder_of(folder);
  if (is_named_by_us(outer)) MONARCH_TRY(make_socket_directory(outer));
  if (is_named_by_us(folder)) MONARCH_TRY(make_socket_directory(folder));
  return {};
}

}  // namespace

Instant SocketFile::next_look(Instant now) {
  const std::int64_t period = kLookPeriod.count_nanoseconds();
  return Instant::since_boot(Duration::nanoseconds((now.since_boot().count_nanoseconds() / period + 1) * period));
}

Status SocketFile::bind(int socket) {
  MONARCH_ASSIGN(const sockaddr_un address, unix_address(path_));
  const std::string what = text("making the socket ", printable(path_));
  // bind() gives the file the socket's mode less the umask: it never exists with a wider one.
  if (::fchmod(socket, 0600) != 0) return errno_error(what, errno);
  const auto bound = [&] { return ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0; };
  if (!bound()) {
    if (errno != ENOENT || folders_ == Folders::kOthers) return errno_error(what, errno);
    MONARCH_TRY(make_missing_folders(path_));
    if (!bound()) return errno_error(what, errno);
  }
  struct stat status {};
  if (::lstat(path_.c_str(), &status) != 0) return errno_error(what, errno);
  device_ = status.st_dev;
  inode_ = status.st_ino;
  // A umask that takes bits from the owner would lock us out.
  if ((status.st_mode & 07777U) != 0600 && ::chmod(path_.c_str(), 0600) != 0) return errno_error(what, errno);
  return {};
}

bool SocketFile::is_missing() const {
  struct stat status {};
  return inode_ != 0 && ::lstat(path_.c_str(), &status) != 0 && errno == ENOENT;
}

void SocketFile::remove() {
  struct stat status {};
  if (inode_ != 0 && ::lstat(path_.c_str(), &status) == 0 && status.st_dev == device_ && status.st_ino == inode_) {
    (void)::unlink(path_.c_str());  // what stays is stale, and replaced by the next
  }
  inode_ = 0;
}

}  // namespace monarch
