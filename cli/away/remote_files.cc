#include "cli/away/remote_files.h"

#include <sys/statvfs.h>

#include <cerrno>
#include <utility>

#include "cli/term/write_all.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

Error refused_file(const std::string& name, const std::string& why) {
  return {ErrorCode::kInvalid, text(printable(name), ": ", why)};
}

}  // namespace

Status RemoteFiles::begin(const ViewerFile& file) {
  MONARCH_TRY(close_one());
  const bool report = file.name == kReportFileName;
  if (report ? junit_ == nullptr : artifacts_ == nullptr)
    return refused_file(file.name, "a file that nobody asked for");
  if (++files_ > kMostFiles) return refused_file(file.name, text("more than ", kMostFiles, " files"));
  if (report) {
    MONARCH_ASSIGN(draft_, ReportDraft::create(junit_));
  } else {
    MONARCH_ASSIGN(file_, artifacts_->make_file(file.name.substr(kArtifactsFolder.size())));
  }
  name_ = file.name;
  left_ = file.size;
  struct statvfs disk {};
  if (::fstatvfs(fd(), &disk) != 0) return errno_error(text("writing ", printable(name_)), errno);
  const std::uint64_t room = static_cast<std::uint64_t>(disk.f_bavail) * disk.f_frsize;
  if (left_ > room) return refused_file(name_, text("has ", left_, " bytes, and there is room for ", room));
  return {};
}

Status RemoteFiles::append(std::string_view bytes) {
  if (name_.empty()) return Error{ErrorCode::kInvalid, "bytes of no file"};
  if (bytes.size() > left_) return refused_file(name_, "is larger than it was said to be");
  left_ -= bytes.size();
  return write_all(fd(), bytes, text("writing ", printable(name_)));
}

Status RemoteFiles::close_one() {
  if (name_.empty()) return {};
  const std::string name = std::exchange(name_, "");
  file_.reset();
  const auto draft = std::move(draft_);
  if (left_ > 0) return refused_file(name, text("lacks ", left_, " bytes of what it was said to have"));
  return draft ? draft->commit() : Status();
}

Status RemoteFiles::finish() { return close_one(); }

}  // namespace monarch
