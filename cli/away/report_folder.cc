#include "cli/away/report_folder.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "supervisor/client/new_job.h"
#include "transport/base/files/remove_tree.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kPiece = 64U << 10U;

}  // namespace

Result<std::unique_ptr<ReportFolder>> ReportFolder::create(const std::string& name) {
  MONARCH_ASSIGN(const StateDir state, open_state());
  MONARCH_ASSIGN(const auto root, state.root());
  MONARCH_ASSIGN(const auto reports, root.child_or_create("reports"));
  MONARCH_ASSIGN(const auto folder, reports.create_child(name));
  return std::unique_ptr<ReportFolder>(new ReportFolder(folder.path(), reports.path(), name));
}

ReportFolder::~ReportFolder() {
  const UniqueFd parent(::open(parent_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  // What cannot be removed now lies in the job's own state folder, for whoever looks there.
  if (parent.valid()) (void)monarch::remove_tree(parent.get(), name_);
}

void ReportFolder::look() {
  names_.emplace();
  std::error_code failed;
  for (fs::recursive_directory_iterator at(path_, failed), end; !failed && at != end; at.increment(failed)) {
    if (fs::is_regular_file(at->symlink_status(failed)))
      names_->push_back(fs::path(at->path()).lexically_relative(path_));
  }
  std::sort(names_->rbegin(), names_->rend());
}

bool ReportFolder::open_next() {
  while (!names_->empty()) {
    const std::string name = names_->back();
    file_ = UniqueFd(::open(text(path_, "/", name).c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
    struct stat what {};
    if (file_.valid() && ::fstat(file_.get(), &what) == 0) {
      left_ = static_cast<std::uint64_t>(what.st_size);
      return true;
    }
    names_->pop_back();
  }
  return false;
}

std::optional<ViewerFrame> ReportFolder::next() {
  if (!names_) look();
  if (!file_.valid()) {
    if (!open_next()) return std::nullopt;
    const ViewerFile file{.name = names_->back(), .size = left_};
    names_->pop_back();
    if (left_ == 0) file_.reset();
    return ViewerFrame{.kind = ViewerFrameKind::kFile, .payload = encode_file(file)};
  }
  ViewerFrame piece{.kind = ViewerFrameKind::kFileBytes,
                    .payload = std::string(std::min<std::uint64_t>(left_, kPiece), '\0')};
  long got = -1;
  do {
    got = ::read(file_.get(), piece.payload.data(), piece.payload.size());
  } while (got < 0 && errno == EINTR);
  if (got <= 0) {
    // It became shorter, or cannot be read: who counts at the other end names it.
    file_.reset();
    return next();
  }
  piece.payload.resize(static_cast<std::size_t>(got));
  left_ -= static_cast<std::uint64_t>(got);
  if (left_ == 0) file_.reset();
  return piece;
}

}  // namespace monarch
