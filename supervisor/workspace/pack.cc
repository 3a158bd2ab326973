#include "supervisor/workspace/pack.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

#include "supervisor/workspace/scan.h"
#include "transport/base/files/open_below.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr char kFreshManifest[] = "workspace.manifest.new";
constexpr std::size_t kReadBytes = 256U << 10U;
constexpr int kReadings = 3;  // of a file that changes meanwhile

Status write_all(int fd, std::string_view bytes, const char* name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno_error(text("writing ", name, " in the job's folder"), errno);
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<UniqueFd> fresh_file(int folder, const char* name) {
  (void)::unlinkat(folder, name, 0);  // of a supervisor that did not come to its end
  UniqueFd file(::openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return errno_error(text("making ", name, " in the job's folder"), errno);
  return file;
}

bool same(const struct stat& a, const struct stat& b) {
  return a.st_size == b.st_size && a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

class Packer {
 public:
  Packer(int folder, int blobs, const WorkspaceSpec& workspace, int cancel)
      : folder_(folder), blobs_(blobs), workspace_(workspace), cancel_(cancel) {}

  // Appends the file's bytes, unless others like them are there.
  Status add(TreeEntry& entry) {
    for (int reading = 0; reading < kReadings; ++reading) {
      MONARCH_ASSIGN(const bool whole, copy(entry));
      if (!whole) continue;
      if (!seen_.insert(entry.sha256).second) return {};
      end_ += entry.size;
      return {};
    }
    return about(entry, "changes while it is read");
  }
  std::uint64_t end() const { return end_; }

 private:
  Error about(const TreeEntry& entry, std::string_view what) const {
    return Error{ErrorCode::kInvalid,
                 text("the workspace ", printable(workspace_.path), ": ", printable(entry.path), ' ', what)};
  }
  Error failed(const TreeEntry& entry, int error) const { return errno_error(about(entry, "").message, error); }

  bool is_cancelled() const {
    pollfd polled{.fd = cancel_, .events = POLLIN, .revents = 0};
    return cancel_ >= 0 && ::poll(&polled, 1, 0) > 0;
  }

  // False: it changed meanwhile. What is written behind end_ is written over.
  Result<bool> copy(TreeEntry& entry) {
    const auto file = open_below(folder_, entry.path, O_RDONLY | O_NONBLOCK);
    if (!file.ok()) {  // which names it
      return Error{ErrorCode::kInvalid,
                   text("the workspace ", printable(workspace_.path), ": ", printable(file.error().message))};
    }
    struct stat before {};
    if (::fstat(file->get(), &before) != 0) return failed(entry, errno);
    if (!S_ISREG(before.st_mode)) return about(entry, "is no file any more");
    if (::lseek(blobs_, static_cast<off_t>(end_), SEEK_SET) < 0) return errno_error("workspace.blobs", errno);
    Sha256 hash;
    std::string piece(kReadBytes, '\0');
    std::uint64_t size = 0;
    for (;;) {
      if (is_cancelled()) return Error{ErrorCode::kGone, "nobody wants the workspace any more"};
      const ssize_t got = ::read(file->get(), piece.data(), piece.size());
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return failed(entry, errno);
      if (got == 0) break;
      const std::string_view bytes(piece.data(), static_cast<std::size_t>(got));
      size += bytes.size();
      if (end_ + size > workspace_.max_bytes) return about(entry, "grew beyond workspace.max_size");
      hash.add(bytes);
      MONARCH_TRY(write_all(blobs_, bytes, kPackBlobsFile));
    }
    struct stat after {};
    if (::fstat(file->get(), &after) != 0) return failed(entry, errno);
    entry.size = size;
    entry.executable = (after.st_mode & kMayExecute) != 0;
    entry.sha256 = hash.finish();
    return same(before, after) && size == static_cast<std::uint64_t>(after.st_size);
  }

  int folder_;
  int blobs_;
  const WorkspaceSpec& workspace_;
  int cancel_;
  std::uint64_t end_ = 0;
  std::set<std::string> seen_;
};

Result<std::string> read_whole(int folder, const char* name, std::size_t most) {
  const UniqueFd file(::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!file.valid()) return errno_error(text("opening ", name), errno);
  std::string bytes(most + 1, '\0');
  std::size_t size = 0;
  for (;;) {
    const ssize_t got = ::pread(file.get(), bytes.data() + size, bytes.size() - size, static_cast<off_t>(size));
    if (got < 0) return errno_error(text("reading ", name), errno);
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

Result<std::shared_ptr<const WorkspacePack>> WorkspacePack::make(int job_folder, const WorkspaceSpec& workspace,
                                                                 int cancel) {
  MONARCH_ASSIGN(const UniqueFd folder, open_workspace(workspace));
  MONARCH_ASSIGN(ScannedWorkspace scanned, scan_workspace(folder.get(), workspace));
  MONARCH_ASSIGN(const UniqueFd blobs, fresh_file(job_folder, kPackBlobsFile));
  Packer packer(folder.get(), blobs.get(), workspace, cancel);
  for (TreeEntry& entry : scanned.tree.entries) {
    if (entry.kind == TreeEntryKind::kFile) MONARCH_TRY(packer.add(entry));
  }
  if (::ftruncate(blobs.get(), static_cast<off_t>(packer.end())) != 0 || ::fsync(blobs.get()) != 0) {
    return errno_error("writing workspace.blobs in the job's folder", errno);
  }
  const std::string manifest = encode_manifest(scanned.tree);
  if (manifest.size() > TreeManifest::kBytes) {
    return Error{ErrorCode::kInvalid,
                 text("the workspace ", printable(workspace.path), " has names of ", amount_text(manifest.size()),
                      " in all; at most ", amount_text(TreeManifest::kBytes))};
  }
  {
    MONARCH_ASSIGN(const UniqueFd fresh, fresh_file(job_folder, kFreshManifest));
    MONARCH_TRY(write_all(fresh.get(), manifest, kPackManifestFile));
    if (::fsync(fresh.get()) != 0) return errno_error("writing workspace.manifest in the job's folder", errno);
  }
  // From now on there is one.
  if (::renameat(job_folder, kFreshManifest, job_folder, kPackManifestFile) != 0) {
    return errno_error("writing workspace.manifest in the job's folder", errno);
  }
  return opened(job_folder, std::move(scanned.left_out));
}

Result<std::shared_ptr<const WorkspacePack>> WorkspacePack::open(int job_folder) { return opened(job_folder, {}); }

Result<std::shared_ptr<const WorkspacePack>> WorkspacePack::opened(int job_folder, std::vector<std::string> left_out) {
  std::shared_ptr<WorkspacePack> pack(new WorkspacePack);
  MONARCH_ASSIGN(pack->manifest_, read_whole(job_folder, kPackManifestFile, TreeManifest::kBytes));
  MONARCH_ASSIGN(const TreeManifest tree, parse_manifest(pack->manifest_));
  for (const TreeEntry& entry : tree.entries) {
    pack->files_ += entry.kind == TreeEntryKind::kFile ? 1 : 0;
    pack->bytes_ += entry.size;
  }
  pack->blobs_ = blobs_of(tree);
  pack->left_out_ = std::move(left_out);
  pack->file_ = UniqueFd(::openat(job_folder, kPackBlobsFile, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!pack->file_.valid() || ::fstat(pack->file_.get(), &status) != 0) {
    return errno_error(ErrorCode::kGone, "opening workspace.blobs of the job's folder", errno);
  }
  const std::uint64_t end = pack->blobs_.empty() ? 0 : pack->blobs_.back().offset + pack->blobs_.back().size;
  if (static_cast<std::uint64_t>(status.st_size) != end) {
    return Error{ErrorCode::kInvalid,
                 text("workspace.blobs in the job's folder has ", status.st_size, " bytes, not ", end)};
  }
  return std::shared_ptr<const WorkspacePack>(std::move(pack));
}

void WorkspacePack::remove(int job_folder) {
  // The manifest first: without it there is none. What is not there needs no removal.
  for (const char* name : {kPackManifestFile, kFreshManifest, kPackBlobsFile}) (void)::unlinkat(job_folder, name, 0);
}

Result<std::string> WorkspacePack::read(std::uint64_t offset, std::uint64_t most) const {
  std::string bytes(std::min<std::uint64_t>(most, kReadBytes), '\0');
  const ssize_t got = ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
  if (got < 0) return errno_error("reading workspace.blobs of the job's folder", errno);
  if (got == 0) return Error{ErrorCode::kGone, "workspace.blobs of the job's folder became shorter"};
  bytes.resize(static_cast<std::size_t>(got));
  return bytes;
}

}  // namespace monarch
