#include "supervisor/workspace/scan.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "supervisor/workspace/ignore_rules.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr std::size_t kNamedLargest = 10;

// Keys and passwords of the user's that lie about in trees, by the names under which programs look for them.
constexpr std::array kSecretFolders = {".aws/", ".kube/"};
constexpr std::array kSecretFiles = {
    ".env",    ".env.*",  "!.env.example", "!.env.sample",     "!.env.template",        ".netrc", "_netrc", ".npmrc",
    ".pypirc", ".pgpass", ".vault-token",  ".git-credentials", "**/.docker/config.json"};
// And such as have that name where they hold one, as keys of TLS and SSH do: certificates are nobody's secret.
constexpr std::array kKeyFiles = {"*.pem", "id_*"};
constexpr std::string_view kKeyWord = "PRIVATE KEY-----";
constexpr std::size_t kKeyBytes = 64U << 10U;  // in which it is found
// A file of any name that begins so is a key, and no larger than that.
constexpr std::size_t kLineBytes = 128;
constexpr std::string_view kBegins = "-----BEGIN ";
constexpr std::string_view kBeginsOfPutty = "PuTTY-User-Key-File-";

struct Found {
  std::string name;
  struct stat status {};
};

class Scan {
 public:
  explicit Scan(const WorkspaceSpec& workspace) : workspace_(workspace) {
    for (const std::string& pattern : workspace.exclude) rules_.add_pattern(IgnoreSource::kSpec, pattern);
    for (const char* pattern : kSecretFolders) folders_.add_pattern(IgnoreSource::kSpec, pattern);
    for (const char* pattern : kSecretFiles) files_.add_pattern(IgnoreSource::kSpec, pattern);
    for (const char* pattern : kKeyFiles) keys_.add_pattern(IgnoreSource::kSpec, pattern);
    all_.add_pattern(IgnoreSource::kSpec, "*");
    for (const std::string& pattern : workspace.include) {
      for (IgnoreRules* rules : {&folders_, &files_, &keys_, &all_}) {
        rules->add_pattern(IgnoreSource::kSpec, "!" + pattern);
      }
    }
  }

  Result<ScannedWorkspace> run(int folder) {
    UniqueFd top(::openat(folder, ".", kFolder));
    if (!top.valid()) return failed("", errno);
    MONARCH_TRY(read_folder(std::move(top), ""));
    std::vector<TreeEntry>& entries = out_.tree.entries;
    std::sort(entries.begin(), entries.end(), [](const TreeEntry& a, const TreeEntry& b) { return a.path < b.path; });
    if (out_.bytes > workspace_.max_bytes) return too_large();
    return std::move(out_);
  }

 private:
  Error failed(const std::string& path, int error) const {
    return errno_error(ErrorCode::kInvalid,
                       text("the workspace ", printable(workspace_.path), path.empty() ? "" : ": ", printable(path)),
                       error);
  }

  Status read_folder(UniqueFd folder, const std::string& path) {
    const int fd = folder.get();
    const std::unique_ptr<DIR, int (*)(DIR*)> listing(::fdopendir(fd), ::closedir);
    if (!listing) return failed(path, errno);
    (void)folder.release();  // the listing's now
    std::vector<Found> found;
    for (errno = 0; const dirent* entry = ::readdir(listing.get()); errno = 0) {
      const std::string name = entry->d_name;
      if (name == "." || name == "..") continue;
      Found one{.name = name, .status = {}};
      if (::fstatat(fd, name.c_str(), &one.status, AT_SYMLINK_NOFOLLOW) == 0) found.push_back(std::move(one));
      // Else it went away meanwhile.
      if (found.size() > TreeManifest::kEntries * 2) return too_many(path);
    }
    if (errno != 0) return failed(path, errno);
    MONARCH_TRY(add_rules(fd, path, ".gitignore", IgnoreSource::kGit));
    MONARCH_TRY(add_rules(fd, path, ".monarchignore", IgnoreSource::kMonarch));
    for (const Found& one : found) MONARCH_TRY(take(fd, path.empty() ? one.name : text(path, '/', one.name), one));
    return {};
  }

  Status add_rules(int folder, const std::string& path, const char* name, IgnoreSource source) {
    const UniqueFd file(::openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file.valid() && errno == ENOENT) return {};
    struct stat status {};
    if (!file.valid() || ::fstat(file.get(), &status) != 0) return failed(text(path, '/', name), errno);
    if (!S_ISREG(status.st_mode)) return {};
    std::string content(IgnoreRules::kFileBytes + 1, '\0');
    const ssize_t got = ::pread(file.get(), content.data(), content.size(), 0);
    if (got < 0) return failed(text(path, '/', name), errno);
    content.resize(static_cast<std::size_t>(got));
    if (content.size() > IgnoreRules::kFileBytes) return failed(text(path, '/', name), EFBIG);
    rules_.add_file(source, path, content);
    return {};
  }

  Status take(int folder, const std::string& path, const Found& found) {
    const mode_t mode = found.status.st_mode;
    if (rules_.leaves_out(path, S_ISDIR(mode))) return {};
    TreeEntry entry;
    entry.path = path;
    std::string objection = objection_to_path(path);
    if (objection.empty() && S_ISLNK(mode)) {
      entry.kind = TreeEntryKind::kLink;
      entry.target = target_of(folder, found.name);
      objection = objection_to_link(path, entry.target);
    } else if (objection.empty() && !S_ISDIR(mode) && !S_ISREG(mode)) {
      objection = S_ISSOCK(mode) ? "is a socket" : S_ISFIFO(mode) ? "is a fifo" : "is a device";
    }
    // A home that is taken for a workspace would hand out what opens every other machine.
    if (objection.empty() && S_ISDIR(mode) && found.name == ".ssh") objection = "holds keys, and is never copied";
    if (objection.empty() && may_be_secret(folder, path, found)) {
      objection = "may hold a secret; `workspace.include` takes it";
    }
    if (!objection.empty()) {
      out_.left_out.push_back(text(printable(path), ": ", objection));
      return {};
    }
    if (S_ISREG(mode)) {
      entry.executable = (mode & kMayExecute) != 0;
      entry.size = static_cast<std::uint64_t>(found.status.st_size);
      out_.bytes += entry.size;
      ++out_.files;
    } else if (S_ISDIR(mode)) {
      entry.kind = TreeEntryKind::kFolder;
    }
    if (out_.tree.entries.size() == TreeManifest::kEntries) return too_many(path);
    const bool is_folder = entry.kind == TreeEntryKind::kFolder;
    out_.tree.entries.push_back(std::move(entry));
    if (!is_folder) return {};
    UniqueFd below(::openat(folder, found.name.c_str(), kFolder));
    if (!below.valid()) return failed(path, errno);
    return read_folder(std::move(below), path);
  }

  bool may_be_secret(int folder, const std::string& path, const Found& found) const {
    if (S_ISDIR(found.status.st_mode)) return folders_.leaves_out(path, true);
    if (!S_ISREG(found.status.st_mode)) return false;
    if (files_.leaves_out(path, false)) return true;
    if (keys_.leaves_out(path, false)) {
      return beginning_of(folder, found.name, kKeyBytes).find(kKeyWord) != std::string::npos;
    }
    const bool as_large = found.status.st_size > 0 && static_cast<std::uint64_t>(found.status.st_size) <= kKeyBytes;
    return as_large && all_.leaves_out(path, false) && is_key(beginning_of(folder, found.name, kLineBytes));
  }

  static bool is_key(std::string_view content) {
    const std::string_view line = content.substr(0, content.find('\n'));
    return line.starts_with(kBeginsOfPutty) ||
           (line.starts_with(kBegins) && line.find(kKeyWord) != std::string_view::npos);
  }

  // One that cannot be read is told of where it is hashed.
  static std::string beginning_of(int folder, const std::string& name, std::size_t bytes) {
    const UniqueFd file(::openat(folder, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    std::string content(bytes, '\0');
    const ssize_t got = file.valid() ? ::pread(file.get(), content.data(), content.size(), 0) : -1;
    content.resize(static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
    return content;
  }

  static std::string target_of(int folder, const std::string& name) {
    std::array<char, TreeManifest::kPathBytes + 1> target{};
    const ssize_t size = ::readlinkat(folder, name.c_str(), target.data(), target.size());
    return size < 0 ? std::string() : std::string(target.data(), static_cast<std::size_t>(size));
  }

  // Whose folders at the top have most.
  Error too_many(const std::string& last) const {
    std::map<std::string, std::size_t> counts;
    for (const TreeEntry& entry : out_.tree.entries) ++counts[entry.path.substr(0, entry.path.find('/'))];
    std::string most = last.substr(0, last.find('/'));
    for (const auto& [name, count] : counts) {
      if (count > counts[most]) most = name;
    }
    return Error{ErrorCode::kInvalid,
                 text("the workspace ", printable(workspace_.path), " has more than ", TreeManifest::kEntries,
                      " files and folders, most of them in ", printable(most))};
  }

  Error too_large() const {
    std::vector<const TreeEntry*> files;
    for (const TreeEntry& entry : out_.tree.entries) {
      if (entry.kind == TreeEntryKind::kFile) files.push_back(&entry);
    }
    std::stable_sort(files.begin(), files.end(),
                     [](const TreeEntry* a, const TreeEntry* b) { return a->size > b->size; });
    files.resize(std::min(files.size(), kNamedLargest));
    std::vector<std::string> named;
    for (const TreeEntry* entry : files)
      named.push_back(text(printable(entry->path), " (", amount_text(entry->size), ')'));
    return Error{ErrorCode::kBusy, text("the workspace ", printable(workspace_.path), " has ", amount_text(out_.bytes),
                                        " in ", out_.files, " files, more than the ", amount_text(workspace_.max_bytes),
                                        " of workspace.max_size; its largest: ", join(named, ", "))};
  }

  const WorkspaceSpec& workspace_;
  IgnoreRules rules_;
  IgnoreRules folders_, files_, keys_;  // of secrets
  IgnoreRules all_;                     // whose beginnings are looked at
  ScannedWorkspace out_;
};

}  // namespace

Result<UniqueFd> open_workspace(const WorkspaceSpec& workspace) {
  UniqueFd folder(::open(workspace.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.valid()) return folder;
  const ErrorCode code = errno == ENOENT || errno == ENOTDIR ? ErrorCode::kNotFound : ErrorCode::kInvalid;
  return errno_error(code, text("the workspace ", printable(workspace.path)), errno);
}

Result<ScannedWorkspace> scan_workspace(int folder, const WorkspaceSpec& workspace) {
  return Scan(workspace).run(folder);
}

Result<ScannedWorkspace> scan_workspace(const WorkspaceSpec& workspace) {
  MONARCH_ASSIGN(const UniqueFd folder, open_workspace(workspace));
  return scan_workspace(folder.get(), workspace);
}

}  // namespace monarch
