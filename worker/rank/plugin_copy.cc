#include "worker/rank/plugin_copy.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "transport/base/sha256.h"
#include "transport/base/text.h"
#include "transport/wire/file_size_signal.h"
#include "transport/wire/sealed_memory.h"

namespace monarch {

namespace {

constexpr std::size_t kPieceBytes = 1U << 20U;
constexpr std::size_t kNamedByDigits = 16;  // of the hash
constexpr std::size_t kLongestName = 200;   // of a file of ours; the system's limit is 255

Status write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("writing", errno);
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

// Its hash; `to`: a descriptor that gets the bytes, or -1.
Result<std::string> read_through(int from, int to) {
  const FileSizeSignal refused_by_its_error;
  Sha256 hash;
  std::vector<char> piece(kPieceBytes);
  for (off_t at = 0;;) {
    const ssize_t count = ::pread(from, piece.data(), piece.size(), at);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error("reading", errno);
    if (count == 0) return hash.finish();
    const std::string_view bytes(piece.data(), static_cast<std::size_t>(count));
    hash.add(bytes);
    if (to >= 0) MONARCH_TRY(write_all(to, bytes));
    at += count;
  }
}

Error changed(const std::string& path, const std::string& has, std::string_view was) {
  return {ErrorCode::kInvalid,
          text("plugin ", path, " was changed since the job began: its sha256 is ", has, ", and was ", was)};
}

// The copy is judged by its own bytes, as they are mapped.
Result<PluginCopy> judged(UniqueFd file, std::string name, const std::string& sha256_wanted) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return errno_error("looking at the copy", errno);
  if (status.st_size == 0) return Error{ErrorCode::kInvalid, "the copy is empty"};
  MONARCH_ASSIGN(auto bytes, MappedMemory::map(file.get(), static_cast<std::size_t>(status.st_size)));
  std::string has = sha256(bytes->bytes());
  if (has != sha256_wanted) return Error{ErrorCode::kInvalid, text("its copy has the sha256 ", has)};
  return PluginCopy{std::move(file), std::move(name), std::move(bytes), std::move(has)};
}

Result<PluginCopy> existing(const std::string& name, const std::string& sha256) {
  UniqueFd file(::open(name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (!file.valid()) return errno_error(text("opening ", name), errno);
  return judged(std::move(file), name, sha256);
}

Result<PluginCopy> copied_to_folder(int from, const std::string& name, const std::string& sha256,
                                    const std::string& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) return errno_error(text("making ", folder), errno);
  if (auto there = existing(name, sha256); there.ok()) return there;
  const std::string fresh = text(name, '.', ::getpid());
  (void)::unlink(fresh.c_str());  // of an earlier process of this number
  UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0400));
  if (!file.valid()) return errno_error(text("making ", fresh), errno);
  const auto written = read_through(from, file.get());
  file.reset();
  // Whoever was faster has made the same. What is there and is something else, after a crash of the host, goes.
  if (written.ok() && ::link(fresh.c_str(), name.c_str()) != 0 && !existing(name, sha256).ok()) {
    const UniqueFd where(::open(folder.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    const auto in_it = [&](const std::string& path) { return path.c_str() + folder.size() + 1; };
    (void)::renameat(where.get(), in_it(fresh), where.get(), in_it(name));  // existing() says whether it worked
  }
  (void)::unlink(fresh.c_str());
  if (!written.ok()) return written.error();
  return existing(name, sha256);
}

Result<PluginCopy> sealed_copy(int from, const std::string& sha256) {
  UniqueFd file(::memfd_create("monarch-plugin", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.valid()) return errno_error("memfd_create", errno);
  if (const auto copied = read_through(from, file.get()); !copied.ok()) return copied.error();
  MONARCH_TRY(seal_memory(file.get()));
  // WARNING: /proc/self is a debugger's own where a debugger reads this name.
  std::string name = text("/proc/", ::getpid(), "/fd/", file.get());
  return judged(std::move(file), std::move(name), sha256);
}

}  // namespace

Result<PluginCopy> copy_plugin(const std::string& path, std::string_view expected, const std::string& folder) {
  const std::string what = text("plugin ", path);
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return errno_error(what, errno);
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) return errno_error(what, errno);
  if (!S_ISREG(status.st_mode)) return Error{ErrorCode::kInvalid, text(what, " is no file")};
  if (status.st_size == 0) return Error{ErrorCode::kInvalid, text(what, " is empty")};
  auto has = read_through(file.get(), -1);
  if (!has.ok()) return Error{has.error().code, text(what, ": ", has.error().message)};
  if (!expected.empty() && *has != expected) return changed(path, *has, expected);
  std::string base = path.substr(path.rfind('/') + 1);
  base.resize(std::min(base.size(), kLongestName));
  const std::string name = text(folder, '/', has->substr(0, kNamedByDigits), '-', base);
  auto copy = folder.empty() ? Result<PluginCopy>(Error{}) : copied_to_folder(file.get(), name, *has, folder);
  if (!copy.ok()) copy = sealed_copy(file.get(), *has);
  if (copy.ok()) return copy;
  return Error{copy.error().code, text(what, " cannot be copied: ", copy.error().message)};
}

}  // namespace monarch
