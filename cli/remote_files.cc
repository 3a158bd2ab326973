#include "cli/remote_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "transport/base/open_below.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kNewFile = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;

Error refused_file(const std::string& name, const std::string& why) {
  return {ErrorCode::kInvalid, text(printable(name), ": ", why)};
}

}  // namespace

RemoteFiles::~RemoteFiles() {
  if (!fresh_.empty())
    (void)::unlinkat(folder_.get(), fresh_.c_str(), 0);  // of a talk that broke off: half a report is none
}

Status RemoteFiles::begin(const ViewerFile& file) {
  MONARCH_TRY(close_one());
  const bool report = file.name == kReportFileName;
  if (report ? junit_.empty() : artifacts_.empty()) return refused_file(file.name, "a file that nobody asked for");
  if (++files_ > kMostFiles) return refused_file(file.name, text("more than ", kMostFiles, " files"));
  MONARCH_TRY(report ? open_report() : open_artifact(file.name.substr(kArtifactsFolder.size())));
  name_ = file.name;
  left_ = file.size;
  struct statvfs disk {};
  if (::fstatvfs(file_.get(), &disk) != 0) return errno_error(text("writing ", printable(name_)), errno);
  const std::uint64_t room = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (left_ > room) return refused_file(name_, text("has ", left_, " bytes, and there is room for ", room));
  return {};
}

Status RemoteFiles::open_report() {
  const std::size_t slash = junit_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : slash == 0 ? "/" : junit_.substr(0, slash);
  folder_ = UniqueFd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder_.valid()) return errno_error(text("writing ", printable(junit_)), errno);
  fresh_ = text(report_name(), ".", ::getpid(), ".new");
  file_ = UniqueFd(::openat(folder_.get(), fresh_.c_str(), kNewFile, 0666));
  if (file_.valid()) return {};
  const int error = errno;
  fresh_.clear();
  return errno_error(text("writing ", printable(junit_)), error);
}

std::string RemoteFiles::report_name() const { return junit_.substr(junit_.rfind('/') + 1); }

// Folders are made on the way; each is opened in the one before it, and none may be a link.
Status RemoteFiles::open_artifact(const std::string& path) {
  const UniqueFd root(::open(artifacts_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid()) return errno_error(text("writing into ", printable(artifacts_)), errno);
  for (std::size_t slash = path.find('/'); slash != std::string::npos; slash = path.find('/', slash + 1)) {
    const std::string folder = path.substr(0, slash);
    MONARCH_ASSIGN(const UniqueFd parent, open_parent_below(root.get(), folder));
    if (::mkdirat(parent.get(), last_part(folder).c_str(), 0777) != 0 && errno != EEXIST) {
      return errno_error(text("making ", printable(artifacts_), "/", printable(folder)), errno);
    }
  }
  MONARCH_ASSIGN(file_, open_below(root.get(), path, kNewFile, 0666));
  return {};
}

Status RemoteFiles::append(std::string_view bytes) {
  if (name_.empty()) return Error{ErrorCode::kInvalid, "bytes of no file"};
  if (bytes.size() > left_) return refused_file(name_, "is larger than it was said to be");
  while (!bytes.empty()) {
    const long wrote = ::write(file_.get(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return errno_error(text("writing ", printable(name_)), wrote < 0 ? errno : ENOSPC);
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
    left_ -= static_cast<std::uint64_t>(wrote);
  }
  return {};
}

Status RemoteFiles::close_one() {
  if (name_.empty()) return {};
  const std::string name = std::exchange(name_, "");
  file_.reset();
  if (left_ > 0) return refused_file(name, text("lacks ", left_, " bytes of what it was said to have"));
  if (fresh_.empty()) return {};
  const std::string fresh = std::exchange(fresh_, "");
  if (::renameat(folder_.get(), fresh.c_str(), folder_.get(), report_name().c_str()) == 0) return {};
  const int error = errno;
  (void)::unlinkat(folder_.get(), fresh.c_str(), 0);
  return errno_error(text("writing ", printable(junit_)), error);
}

Status RemoteFiles::finish() { return close_one(); }

}  // namespace monarch
