#include "cli/follow/report_places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

#include "cli/term/write_all.h"
#include "transport/base/files/open_below.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

namespace fs = std::filesystem;

constexpr int kNewFile = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
// The user names the folder itself, also by a link.
constexpr int kNamedFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
constexpr unsigned kFolderMode = 0755;  // of the folder for all others, too, whose umask may be 0
constexpr unsigned kBelowMode = 0777;   // of what is made in it, less the umask
constexpr unsigned kFileMode = 0666;

Error invalid(const std::string& path, std::string_view what) {
  return Error{ErrorCode::kInvalid, text(printable(path), ": ", what)};
}

}  // namespace

Result<std::shared_ptr<const ReportFile>> ReportFile::open(const std::string& path) {
  if (path.empty()) return Error{ErrorCode::kInvalid, "the name of a file is empty"};
  const fs::path file(path);
  const std::string parent = file.has_parent_path() ? file.parent_path().string() : ".";
  const auto cannot = [&](int error) {
    return errno_error(text(printable(path), ": writing into ", printable(parent)), error);
  };
  UniqueFd folder(::open(parent.c_str(), kNamedFolder));
  if (!folder.valid() || ::faccessat(folder.get(), ".", W_OK | X_OK, 0) != 0) return cannot(errno);
  const std::string name = file.filename();
  struct stat what {};
  const bool there = ::fstatat(folder.get(), name.c_str(), &what, 0) == 0;
  if (name.empty() || (there && S_ISDIR(what.st_mode))) return invalid(path, "is a folder");
  return std::shared_ptr<const ReportFile>(new ReportFile(path, name, std::move(folder)));
}

Result<std::unique_ptr<ReportDraft>> ReportDraft::create(std::shared_ptr<const ReportFile> report) {
  std::string name = text(report->name_, ".", ::getpid(), ".new");
  UniqueFd file(::openat(report->folder_.get(), name.c_str(), kNewFile, kFileMode));
  if (!file.valid()) return errno_error(text("writing ", printable(report->path())), errno);
  return std::unique_ptr<ReportDraft>(new ReportDraft(std::move(report), std::move(name), std::move(file)));
}

ReportDraft::~ReportDraft() {
  if (!name_.empty()) (void)::unlinkat(report_->folder_.get(), name_.c_str(), 0);
}

Status ReportDraft::commit() {
  const int folder = report_->folder_.get();
  if (::renameat(folder, name_.c_str(), folder, report_->name_.c_str()) != 0) {
    return errno_error(text("writing ", printable(report_->path())), errno);
  }
  name_.clear();
  return {};
}

Status write_report(std::shared_ptr<const ReportFile> report, std::string_view content) {
  const std::string writing = text("writing ", printable(report->path()));
  MONARCH_ASSIGN(const auto draft, ReportDraft::create(std::move(report)));
  MONARCH_TRY(write_all(draft->fd(), content, writing));
  return draft->commit();
}

Result<std::shared_ptr<const ArtifactFolder>> ArtifactFolder::open(const std::string& given) {
  if (given.empty()) return Error{ErrorCode::kInvalid, "the name of a folder is empty"};
  std::string path = given;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  std::error_code failed;
  if (const fs::path parent = fs::path(path).parent_path(); !parent.empty()) fs::create_directories(parent, failed);
  if (failed) return Error{ErrorCode::kInternal, text("making ", printable(path), ": ", failed.message())};
  if (::mkdir(path.c_str(), kFolderMode) != 0 && errno != EEXIST)
    return errno_error(text("making ", printable(path)), errno);
  UniqueFd folder(::open(path.c_str(), kNamedFolder));
  if (!folder.valid() && errno == ENOTDIR) return invalid(path, "is no folder");
  struct stat what {};
  if (!folder.valid() || ::fstat(folder.get(), &what) != 0)
    return errno_error(text("opening ", printable(path)), errno);
  const bool empty = fs::is_empty(text("/proc/self/fd/", folder.get()), failed);
  if (failed) return Error{ErrorCode::kInternal, text("reading ", printable(path), ": ", failed.message())};
  if (!empty) return invalid(path, "there is something in it");
  if ((what.st_mode & S_IWOTH) != 0) return invalid(path, "everybody may write to it");
  if ((what.st_mode & S_IWGRP) != 0 && what.st_gid != ::getegid()) {
    return invalid(path, text("the group ", what.st_gid, " may write to it, which is not yours"));
  }
  if (::faccessat(folder.get(), ".", W_OK | X_OK, 0) != 0) {
    return errno_error(text("writing into ", printable(path)), errno);
  }
  return std::shared_ptr<const ArtifactFolder>(new ArtifactFolder(path, std::move(folder)));
}

Status ArtifactFolder::make_folder(const std::string& name) const {
  for (std::size_t slash = name.find('/');; slash = name.find('/', slash + 1)) {
    const std::string folder = name.substr(0, slash);
    MONARCH_ASSIGN(const UniqueFd parent, open_parent_below(folder_.get(), folder));
    if (::mkdirat(parent.get(), last_part(folder).c_str(), kBelowMode) != 0 && errno != EEXIST) {
      return errno_error(text("making ", printable(path_), "/", printable(folder)), errno);
    }
    if (slash == std::string::npos) return {};
  }
}

Result<UniqueFd> ArtifactFolder::make_file(const std::string& name) const {
  if (const std::size_t slash = name.rfind('/'); slash != std::string::npos)
    MONARCH_TRY(make_folder(name.substr(0, slash)));
  auto file = open_below(folder_.get(), name, kNewFile, kFileMode);
  if (file.ok()) return file;
  return errno_error(text("writing ", printable(path_), "/", printable(name)), file.error().errno_value);
}

}  // namespace monarch
