#include "supervisor/journal/journal_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <thread>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

Errno answer(int returned) { return returned < 0 ? errno : 0; }

bool has_no_name(int fd) {
  struct stat status {};
  return ::fstat(fd, &status) == 0 && status.st_nlink == 0;
}

class PosixJournalFile final : public JournalFile {
 public:
  explicit PosixJournalFile(UniqueFd fd) : fd_(std::move(fd)) {}

  Errno write(std::string_view bytes) override {
    while (!bytes.empty()) {
      const ssize_t written = ::write(fd_.get(), bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno;
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return 0;
  }
  Errno sync() override { return answer(::fdatasync(fd_.get())); }
  bool deleted() override { return has_no_name(fd_.get()); }

 private:
  UniqueFd fd_;
};

class PosixJournalFiles final : public JournalFiles {
 public:
  explicit PosixJournalFiles(UniqueFd directory) : directory_(std::move(directory)) {}

  Errno create(const std::string& name, std::unique_ptr<JournalFile>& file) override {
    UniqueFd fd(::openat(directory_.get(), name.c_str(),
                         O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_NOFOLLOW | O_CLOEXEC, S_IRUSR | S_IWUSR));
    if (!fd.valid()) return errno;
    if (::fchmod(fd.get(), S_IRUSR | S_IWUSR) < 0) return errno;  // whatever the umask took away
    file = std::make_unique<PosixJournalFile>(std::move(fd));
    return 0;
  }
  Errno open(const std::string& name, std::unique_ptr<JournalFile>& file) override {
    UniqueFd fd(::openat(directory_.get(), name.c_str(), O_WRONLY | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd.valid()) return errno;
    file = std::make_unique<PosixJournalFile>(std::move(fd));
    return 0;
  }
  Errno rename(const std::string& from, const std::string& to) override {
    return answer(::renameat(directory_.get(), from.c_str(), directory_.get(), to.c_str()));
  }
  Errno remove(const std::string& name) override { return answer(::unlinkat(directory_.get(), name.c_str(), 0)); }
  Errno sync_directory() override { return answer(::fsync(directory_.get())); }
  // The kernel syncs a file in the thread that asks for it, and commits what several ask for at one time together.
  std::vector<Errno> sync_all(const std::vector<JournalFile*>& files) override {
    std::vector<Errno> answers(files.size(), 0);
    const auto sync = [&](std::size_t which) { answers[which] = files[which]->sync(); };
    std::vector<std::thread> others;
    std::size_t own = files.size();
    try {
      while (own > 1) {
        others.emplace_back(sync, own - 1);
        --own;
      }
    } catch (const std::system_error&) {
      // Where no thread can be had, one after the other.
    }
    for (std::size_t which = 0; which < own; ++which) sync(which);
    for (std::thread& other : others) other.join();
    return answers;
  }
  bool deleted() override { return has_no_name(directory_.get()); }

  Result<std::vector<std::string>> list() override {
    // A descriptor of its own: a directory stream moves the offset of the one that it is given.
    const int fd = ::openat(directory_.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR* stream = fd < 0 ? nullptr : ::fdopendir(fd);
    if (stream == nullptr) return errno_error("list the state directory", errno);
    std::vector<std::string> names;
    errno = 0;
    while (const dirent* entry = ::readdir(stream)) names.emplace_back(entry->d_name);
    const int failure = errno;
    (void)::closedir(stream);  // only read from
    if (failure != 0) return errno_error("list the state directory", failure);
    return names;
  }

  Result<std::string> read(const std::string& name, std::uint64_t offset, std::size_t limit) override {
    const UniqueFd fd(::openat(directory_.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!fd.valid()) return errno_error(text("open ", name), errno);
    struct stat status {};
    if (::fstat(fd.get(), &status) < 0) return errno_error(text("stat ", name), errno);
    if (!S_ISREG(status.st_mode)) return Error{ErrorCode::kInvalid, text(name, " is not a regular file")};
    const auto size = static_cast<std::uint64_t>(status.st_size);
    std::string bytes(size <= offset ? 0 : static_cast<std::size_t>(std::min<std::uint64_t>(limit, size - offset)),
                      '\0');
    std::size_t filled = 0;
    while (filled < bytes.size()) {
      const ssize_t got =
          ::pread(fd.get(), bytes.data() + filled, bytes.size() - filled, static_cast<off_t>(offset + filled));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return errno_error(text("read ", name), errno);
      if (got == 0) break;  // it got shorter meanwhile
      filled += static_cast<std::size_t>(got);
    }
    bytes.resize(filled);
    return bytes;
  }

 private:
  UniqueFd directory_;
};

}  // namespace

std::unique_ptr<JournalFiles> posix_journal_files(UniqueFd directory) {
  return std::make_unique<PosixJournalFiles>(std::move(directory));
}

std::string aside_of(const std::string& name) { return name + ".tmp"; }

namespace {

// `file` is open where that worked; else nothing of it is left.
Errno open_aside(JournalFiles& files, const std::string& name, std::string_view bytes,
                 std::unique_ptr<JournalFile>& file) {
  (void)files.remove(aside_of(name));  // ENOENT, or the rest of a crash
  Errno failure = files.create(aside_of(name), file);
  if (failure != 0) return failure;
  failure = file->write(bytes);
  if (failure != 0) (void)files.remove(aside_of(name));  // the first failure is the one to report
  return failure;
}

}  // namespace

Errno write_aside(JournalFiles& files, const std::string& name, std::string_view bytes) {
  std::unique_ptr<JournalFile> file;
  return open_aside(files, name, bytes, file);
}

Errno write_file_atomically(JournalFiles& files, const std::string& name, std::string_view bytes,
                            Durability durability) {
  const bool now = durability == Durability::kNow;
  std::unique_ptr<JournalFile> file;
  Errno failure = open_aside(files, name, bytes, file);
  if (failure != 0) return failure;
  if (now) failure = file->sync();
  file.reset();
  if (failure == 0) failure = files.rename(aside_of(name), name);
  if (failure != 0) {
    (void)files.remove(aside_of(name));  // the first failure is the one to report
    return failure;
  }
  return now ? files.sync_directory() : 0;
}

}  // namespace monarch
