#include "worker/errand/tree_builder.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>

#include "transport/base/files/open_below.h"
#include "transport/base/files/remove_tree.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr char kFreshName[] = "workspace.new";
constexpr char kHashName[] = "workspace.sha256";
constexpr std::size_t kCopyBytes = 256U << 10U;
constexpr std::size_t kHashBytes = 64;

// The sha256 of what is there now.
Result<std::string> copy_bytes(int from, int to, const std::string& path, const std::function<void()>& on_turn) {
  const bool shared = ::ioctl(to, FICLONE, from) == 0;
  std::string piece(kCopyBytes, '\0');
  Sha256 hash;
  for (;;) {
    on_turn();
    const ssize_t got = ::read(shared ? to : from, piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return disk_error(text("reading the content of ", printable(path)), errno);
    if (got == 0) return hash.finish();
    std::string_view bytes(piece.data(), static_cast<std::size_t>(got));
    hash.add(bytes);
    while (!shared && !bytes.empty()) {
      const ssize_t written = ::write(to, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return disk_error(text("writing ", printable(path), " of the workspace"), errno);
      bytes.remove_prefix(static_cast<std::size_t>(written));
    }
  }
}

class Builder {
 public:
  Builder(const TreeOrder& order, const BlobCache& cache, int tree) : order_(order), cache_(cache), tree_(tree) {}

  Status add(const TreeEntry& entry) {
    order_.on_turn();
    MONARCH_ASSIGN(const UniqueFd parent, open_parent_below(tree_, entry.path));
    const std::string name = last_part(entry.path);
    switch (entry.kind) {
      case TreeEntryKind::kFolder:
        if (::mkdirat(parent.get(), name.c_str(), 0777) == 0) return {};
        return disk_error(text("mkdir ", printable(entry.path)), errno);
      case TreeEntryKind::kLink:
        if (::symlinkat(entry.target.c_str(), parent.get(), name.c_str()) == 0) return {};
        return disk_error(text("making the link ", printable(entry.path)), errno);
      case TreeEntryKind::kFile: return add_file(entry, parent.get(), name);
    }
    return {};
  }

 private:
  Status add_file(const TreeEntry& entry, int parent, const std::string& name) {
    const TreeBlob blob{.sha256 = entry.sha256, .size = entry.size};
    MONARCH_ASSIGN(const UniqueFd from, cache_.read(blob));
    const UniqueFd to(::openat(parent, name.c_str(), O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                               entry.executable ? 0777 : 0666));
    if (!to.valid()) return disk_error(text("making ", printable(entry.path), " of the workspace"), errno);
    MONARCH_ASSIGN(const std::string there, copy_bytes(from.get(), to.get(), entry.path, order_.on_turn));
    if (there == entry.sha256) return {};
    cache_.forget(blob);
    return Error{ErrorCode::kNotFound, text("what this host kept as the content of ", printable(entry.path),
                                            " has the sha256 ", there, ", not ", entry.sha256)};
  }

  const TreeOrder& order_;
  const BlobCache& cache_;
  int tree_;
};

Status write_hash(int folder, const std::string& hash) {
  (void)::unlinkat(folder, kHashName, 0);
  const UniqueFd file(::openat(folder, kHashName, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (file.valid() && ::write(file.get(), hash.data(), hash.size()) == static_cast<ssize_t>(hash.size())) return {};
  return disk_error(text("writing ", kHashName), errno);
}

Result<UniqueFd> open_state(const std::string& directory) {
  UniqueFd folder(::open(directory.c_str(), kOpenFolder));
  if (!folder.valid()) return errno_error(text("opening ", printable(directory)), errno);
  return folder;
}

}  // namespace

bool has_tree(const std::string& state_directory, const std::string& hash) {
  const auto state = open_state(state_directory);
  if (!state.ok()) return false;
  const UniqueFd tree(::openat(state->get(), kTreeName, kOpenFolder));
  const UniqueFd file(::openat(state->get(), kHashName, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  std::array<char, kHashBytes + 1> bytes{};
  if (!tree.valid() || !file.valid()) return false;
  const ssize_t got = ::read(file.get(), bytes.data(), bytes.size());
  return got > 0 && std::string_view(bytes.data(), static_cast<std::size_t>(got)) == hash;
}

Status build_tree(const TreeOrder& order, const BlobCache& cache) {
  MONARCH_TRY(remove_trees(order.state_directory));
  MONARCH_ASSIGN(const UniqueFd state, open_state(order.state_directory));
  if (::mkdirat(state.get(), kFreshName, 0700) != 0) {
    return disk_error(text("mkdir ", printable(order.state_directory), '/', kFreshName), errno);
  }
  const UniqueFd tree(::openat(state.get(), kFreshName, kOpenFolder));
  if (!tree.valid()) return disk_error(text("opening ", printable(order.state_directory), '/', kFreshName), errno);
  Builder builder(order, cache, tree.get());
  Status first;
  for (const TreeEntry& entry : order.tree.entries) {
    const Status added = builder.add(entry);
    if (first.ok()) first = added;
    if (!added.ok() && added.error().code != ErrorCode::kNotFound)
      break;  // else the rest is looked at: all come again at once
  }
  if (!first.ok()) {
    (void)remove_trees(order.state_directory);  // on a full disk nothing of it may stay; the first error is told
    return first;
  }
  MONARCH_TRY(write_hash(state.get(), order.hash));
  if (::renameat(state.get(), kFreshName, state.get(), kTreeName) == 0) return {};
  return disk_error(text("renaming ", printable(order.state_directory), '/', kFreshName), errno);
}

Status remove_trees(const std::string& state_directory) {
  const auto state = open_state(state_directory);
  if (!state.ok()) return state.error().code == ErrorCode::kNotFound ? Status() : Status(state.error());
  for (const char* name : {kHashName, kTreeName, kFreshName, kRanksName}) {
    MONARCH_TRY(remove_tree(state->get(), name));
  }
  return {};
}

}  // namespace monarch
