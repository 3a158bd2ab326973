#include "supervisor/journal/secure_directory.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "supervisor/journal/sync_round.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr mode_t kDirectoryMode = S_IRWXU;
constexpr mode_t kFileMode = S_IRUSR | S_IWUSR;

// A trailing slash would make the kernel follow a link in the last component.
std::string without_trailing_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// The parent and the last component; "/" and "" have none.
std::pair<std::string, std::string> split_last(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return {".", path};
  return {slash == 0 ? "/" : path.substr(0, slash), path.substr(slash + 1)};
}

Status check_owner_and_mode(const struct stat& status, const std::string& path) {
  if (status.st_uid != ::geteuid()) {
    return Error{ErrorCode::kInvalid,
                 text(path, " belongs to user ", status.st_uid, ", not to us (user ", ::geteuid(), ")")};
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return Error{ErrorCode::kInvalid, text(path, " can be written by others: run `chmod go-w` on it or use another")};
  }
  return {};
}

Error open_error(const std::string& path, int failure) {
  // O_DIRECTORY | O_NOFOLLOW on a link gives ENOTDIR, O_NOFOLLOW on a file ELOOP (open(2)).
  struct stat status {};
  if ((failure == ENOTDIR || failure == ELOOP) && ::lstat(path.c_str(), &status) == 0 && S_ISLNK(status.st_mode)) {
    return Error{ErrorCode::kInvalid, text(path, " is a symbolic link, which is not followed: name the place itself")};
  }
  if (failure == ENOTDIR) return Error{ErrorCode::kInvalid, text(path, " is not a directory")};
  return errno_error(text("open ", path), failure);
}

Status make_parents(const std::string& path) {
  for (std::size_t slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string parent = path.substr(0, slash);
    if (::mkdir(parent.c_str(), kDirectoryMode) < 0 && errno != EEXIST) {
      const int failure = errno;
      struct stat status {};
      // A parent that we may not write to is fine as long as it is there (EACCES, EROFS).
      if (::stat(parent.c_str(), &status) < 0) return errno_error(text("make ", parent), failure);
    }
  }
  return {};
}

}  // namespace

Result<SecureDirectory> SecureDirectory::open_checked(int parent, const std::string& name, const std::string& path) {
  UniqueFd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.valid()) return open_error(path, errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) < 0) return errno_error(text("stat ", path), errno);
  MONARCH_TRY(check_owner_and_mode(status, path));
  return SecureDirectory(std::move(fd), path);
}

Result<SecureDirectory> SecureDirectory::open(const std::string& given) {
  const std::string path = without_trailing_slashes(given);
  const auto [parent, name] = split_last(path);
  if (name.empty()) return Error{ErrorCode::kInvalid, text("\"", path, "\" cannot be a directory of ours")};
  const UniqueFd parent_fd(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent_fd.valid()) return errno_error(text("open ", parent), errno);
  return open_checked(parent_fd.get(), name, path);
}

Result<SecureDirectory> SecureDirectory::open_or_create(const std::string& given) {
  const std::string path = without_trailing_slashes(given);
  const auto [parent, name] = split_last(path);
  if (name.empty()) return Error{ErrorCode::kInvalid, text("\"", path, "\" cannot be a directory of ours")};
  MONARCH_TRY(make_parents(path));
  const UniqueFd parent_fd(::open(parent.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!parent_fd.valid()) return errno_error(text("open ", parent), errno);
  if (::mkdirat(parent_fd.get(), name.c_str(), kDirectoryMode) < 0 && errno != EEXIST) {
    return errno_error(text("make ", path), errno);
  }
  return open_checked(parent_fd.get(), name, path);
}

Result<UniqueFd> SecureDirectory::duplicate() const {
  UniqueFd copy(::fcntl(fd_.get(), F_DUPFD_CLOEXEC, 0));
  if (!copy.valid()) return errno_error(text("duplicate the descriptor of ", path_), errno);
  return copy;
}

Result<SecureDirectory> SecureDirectory::child(const std::string& name) const {
  return open_checked(fd_.get(), name, path_of(name));
}

Result<SecureDirectory> SecureDirectory::child_or_create(const std::string& name) const {
  if (::mkdirat(fd_.get(), name.c_str(), kDirectoryMode) < 0 && errno != EEXIST) {
    return errno_error(text("make ", path_of(name)), errno);
  }
  return child(name);
}

Result<SecureDirectory> SecureDirectory::create_child(const std::string& name) const {
  if (::mkdirat(fd_.get(), name.c_str(), kDirectoryMode) < 0) {
    if (errno == EEXIST) return errno_error(ErrorCode::kBusy, text("make ", path_of(name)), EEXIST);
    return errno_error(text("make ", path_of(name)), errno);
  }
  return child(name);
}

Result<UniqueFd> SecureDirectory::open_file(const std::string& name, int flags) const {
  const int all_flags = flags | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK;  // NONBLOCK: a planted fifo does not hold us
  UniqueFd fd(::openat(fd_.get(), name.c_str(), all_flags, kFileMode));
  if (!fd.valid()) return open_error(path_of(name), errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) < 0) return errno_error(text("stat ", path_of(name)), errno);
  if (!S_ISREG(status.st_mode)) return Error{ErrorCode::kInvalid, text(path_of(name), " is not a regular file")};
  MONARCH_TRY(check_owner_and_mode(status, path_of(name)));
  return fd;
}

Result<std::string> SecureDirectory::read_file(const std::string& name, std::size_t limit) const {
  MONARCH_ASSIGN(const UniqueFd fd, open_file(name, O_RDONLY));
  std::string bytes;
  char buffer[16384];
  while (true) {
    const ssize_t got = ::read(fd.get(), buffer, sizeof buffer);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(text("read ", path_of(name)), errno);
    if (got == 0) return bytes;
    bytes.append(buffer, static_cast<std::size_t>(got));
    if (bytes.size() > limit) {
      return Error{ErrorCode::kInvalid, text(path_of(name), " is longer than ", limit, " bytes")};
    }
  }
}

Status SecureDirectory::write_file(const std::string& name, std::string_view bytes, Durability durability) const {
  MONARCH_ASSIGN(UniqueFd copy, duplicate());
  const auto files = posix_journal_files(std::move(copy));
  const Errno failure = write_file_atomically(*files, name, bytes, durability);
  if (failure != 0) return errno_error(text("write ", path_of(name)), failure);
  return {};
}

Status SecureDirectory::write_aside(const std::string& name, std::string_view bytes) const {
  MONARCH_ASSIGN(UniqueFd copy, duplicate());
  const auto files = posix_journal_files(std::move(copy));
  if (const Errno failure = monarch::write_aside(*files, name, bytes)) {
    return errno_error(text("write ", path_of(name)), failure);
  }
  return {};
}

Status SecureDirectory::sync_files(const std::vector<std::string>& names) const {
  MONARCH_ASSIGN(UniqueFd copy, duplicate());
  const auto files = posix_journal_files(std::move(copy));
  std::vector<FileBeside> all;
  for (const std::string& name : names) all.push_back({.name = name});
  std::uint64_t waits = 0;
  if (const Errno failure = sync_round(*files, {}, all, waits)) return errno_error(text("write ", path_), failure);
  for (const FileBeside& file : all) {
    if (file.failure != 0) return errno_error(text("write ", path_of(file.name)), file.failure);
  }
  return {};
}

}  // namespace monarch
