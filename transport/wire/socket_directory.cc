#include "transport/wire/socket_directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <vector>

#include "transport/base/crc32c.h"
#include "transport/base/little_endian.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr mode_t kOthers = 077;

bool is_ours(const struct stat& status) { return S_ISDIR(status.st_mode) && status.st_uid == ::geteuid(); }

// The names first: a folder that changes while it is read may show some twice or never (readdir(3)).
std::vector<std::string> names_in(int directory) {
  std::vector<std::string> names;
  const int copy = ::fcntl(directory, F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return names;
  const std::unique_ptr<DIR, int (*)(DIR*)> stream(::fdopendir(copy), ::closedir);
  if (!stream) {
    (void)::close(copy);  // nobody else has it
    return names;
  }
  while (const dirent* entry = ::readdir(stream.get())) names.emplace_back(entry->d_name);
  return names;
}

Result<UniqueFd> open_ours(const std::string& path) {
  UniqueFd directory(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!directory.valid()) return errno_error(text("opening ", printable(path)), errno);
  struct stat status {};
  if (::fstat(directory.get(), &status) != 0 || !is_ours(status)) {
    return Error{ErrorCode::kInvalid, text(printable(path), " is not ours")};
  }
  return directory;
}

void remove_sockets_in(int directory, std::string_view begin, std::string_view end) {
  for (const std::string& name : names_in(directory)) {
    struct stat entry {};
    if (!name.starts_with(begin) || !name.ends_with(end)) continue;
    if (::fstatat(directory, name.c_str(), &entry, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISSOCK(entry.st_mode)) continue;
    (void)::unlinkat(directory, name.c_str(), 0);  // a folder that is not empty stays
  }
}

}  // namespace

std::string socket_directory_prefix(const std::string& job_uuid) {
  constexpr std::size_t kDigits = 8;
  return text("w-", job_uuid.substr(0, kDigits), '-');
}

std::string host_socket_directory(const std::string& runtime_directory, const std::string& job_uuid,
                                  const std::string& host_name) {
  return text(runtime_directory, '/', socket_directory_prefix(job_uuid),
              to_hex(little_endian::bytes(crc32c(0, host_name))));
}

Status make_socket_directory(const std::string& path) {
  if (path.empty() || path.front() != '/') {
    return Error{ErrorCode::kInvalid, text("not an absolute path: '", printable(path), "'")};
  }
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return errno_error(text("mkdir ", printable(path)), errno);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return errno_error(text("looking at ", printable(path)), errno);
  if (!is_ours(status) || (status.st_mode & kOthers) != 0) {
    return Error{ErrorCode::kInvalid, text(printable(path), " is there and is not a folder that is ours alone")};
  }
  return {};
}

void remove_sockets(const std::string& directory, std::string_view begin, std::string_view end) {
  const auto opened = open_ours(directory);
  if (opened.ok()) remove_sockets_in(opened->get(), begin, end);
}

bool remove_socket_directory(const std::string& path) {
  const auto directory = open_ours(path);
  if (!directory.ok()) return directory.error().errno_value == ENOENT;
  remove_sockets_in(directory->get(), {}, {});  // rmdir says whether it worked
  return ::rmdir(path.c_str()) == 0 || errno == ENOENT;
}

}  // namespace monarch
