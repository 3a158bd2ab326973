#include "worker/errand/folder_facts.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include "transport/base/clock.h"
#include "transport/base/machine.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/messages/check.h"
#include "transport/process/forked_work.h"
#include "transport/process/read_small.h"
#include "transport/wire/check_stream.h"
#include "transport/wire/codec.h"

namespace monarch {

namespace {

constexpr std::size_t kProbeBytes = 4096;
constexpr std::size_t kTokenBytes = 4096;
constexpr std::int64_t kOldSeconds = 3600;

UniqueFd open_folder(const std::string& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

// Makes a file of its own; empty: written whole.
std::string write_file(int folder, const std::string& name, const std::string& content) {
  const UniqueFd file(::openat(folder, name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return errno_error("making a file", errno).message;
  const ssize_t wrote = ::write(file.get(), content.data(), content.size());
  // A network file system may say only now that there was no room.
  const bool failed = wrote < 0 || ::fsync(file.get()) != 0;
  const int error = failed ? errno : wrote == static_cast<ssize_t>(content.size()) ? 0 : ENOSPC;
  if (error == 0) return "";
  (void)::unlinkat(folder, name.c_str(), 0);  // it was ours; what stays is old some day
  return errno_error("writing to a file", error).message;
}

// As a token's: if this is killed before it has removed it, a later doctor does. Hosts that share the folder have the
// same numbers of processes.
std::string probe_name() {
  return text(kTokenPrefix, wall_now().nanoseconds_since_epoch / 1'000'000'000, "-", to_hex(random_bytes(8)));
}

FolderFacts facts_of(const FolderNeed& need) {
  FolderFacts facts{.name = need.name, .path = need.path};
  const UniqueFd folder = open_folder(need.path);
  if (!folder.valid()) {
    const int error = errno;
    facts.error = errno_error("entering it", error).message;
    facts.there = error != ENOENT;
    return facts;
  }
  facts.there = true;
  struct statvfs space {};
  if (::fstatvfs(folder.get(), &space) == 0) {
    facts.free_bytes = static_cast<std::uint64_t>(space.f_bavail) * space.f_frsize;
    facts.total_bytes = static_cast<std::uint64_t>(space.f_blocks) * space.f_frsize;
    facts.free_files = space.f_files == 0 ? kUnlimited : space.f_favail;  // some file systems do not count them
    facts.no_exec = (space.f_flag & ST_NOEXEC) != 0;
    facts.read_only = (space.f_flag & ST_RDONLY) != 0;
  }
  if (!need.written) return facts;
  const std::string probe = probe_name();
  facts.error = write_file(folder.get(), probe, std::string(kProbeBytes, 'x'));
  if (facts.error.empty()) (void)::unlinkat(folder.get(), probe.c_str(), 0);  // what stays is old some day
  return facts;
}

TokenFound reading(const TokenOrder& order) {
  TokenFound found{.folder = order.folder};
  const UniqueFd folder = open_folder(order.folder);
  const UniqueFd file(folder.valid() ? ::openat(folder.get(), order.name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC)
                                     : -1);
  if (!file.valid()) {
    found.error = errno_error(folder.valid() ? "opening the file" : "entering it", errno).message;
    return found;
  }
  std::string content(kTokenBytes, '\0');
  const ssize_t got = ::read(file.get(), content.data(), content.size());
  if (got < 0) found.error = errno_error("reading the file", errno).message;
  found.content = content.substr(0, static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  return found;
}

// The time in ".monarch-doctor-<seconds>-<word>"; nothing: it is no token.
std::int64_t time_in(const std::string& name) {
  const std::string_view prefix = kTokenPrefix;
  std::int64_t seconds = 0;
  if (!name.starts_with(prefix)) return 0;
  (void)std::from_chars(name.data() + prefix.size(), name.data() + name.size(), seconds);  // 0 where it is no number
  return seconds;
}

template <class T>
T within(Duration patience, T late, const std::function<T()>& work) {
  const auto answer = answer_within(patience, kCheckBytes, [&] { return encode_payload(work()); });
  if (!answer) return late;
  auto decoded = decode_payload<T>(*answer, kCheckBytes);
  return decoded.ok() ? std::move(*decoded) : late;
}

std::string silence(Duration patience) {
  return text("no answer within ", to_text(patience), ": its file system hangs");
}

}  // namespace

FolderFacts look_at_folder(const FolderNeed& need, Duration patience) {
  FolderFacts late{.name = need.name, .path = need.path, .error = silence(patience), .there = true};
  return within<FolderFacts>(patience, std::move(late), [&] { return facts_of(need); });
}

FolderFacts look_at_place(const FolderNeed& need, Duration patience) {
  FolderFacts late{.name = need.name, .path = need.path, .error = silence(patience), .there = true};
  return within<FolderFacts>(patience, std::move(late), [&] {
    FolderNeed nearest = need;
    for (;;) {
      const UniqueFd folder = open_folder(nearest.path);
      if (folder.valid() || errno != ENOENT || nearest.path.size() <= 1) break;
      nearest.path.resize(std::max<std::size_t>(nearest.path.rfind('/'), 1));
    }
    FolderFacts facts = facts_of(nearest);
    facts.path = need.path;
    return facts;
  });
}

TokenFound write_token(const TokenOrder& order, Duration patience) {
  return within<TokenFound>(patience, {.folder = order.folder, .error = silence(patience)}, [&] {
    TokenFound found{.folder = order.folder};
    const UniqueFd folder = open_folder(order.folder);
    found.error = folder.valid() ? write_file(folder.get(), order.name, order.content)
                                 : errno_error("entering it", errno).message;
    if (found.error.empty()) found.content = order.content;
    return found;
  });
}

TokenFound read_token(const TokenOrder& order, Duration patience) {
  return within<TokenFound>(patience, {.folder = order.folder, .error = silence(patience)},
                            [&] { return reading(order); });
}

void remove_token(const TokenOrder& order, Duration patience) {
  (void)answer_within(patience, kCheckBytes, [&]() -> std::string {
    const UniqueFd folder = open_folder(order.folder);
    if (folder.valid()) (void)::unlinkat(folder.get(), order.name.c_str(), 0);  // what stays is old some day
    return "x";
  });
}

void remove_old_tokens(const std::string& path, Duration patience) {
  (void)answer_within(patience, kCheckBytes, [&]() -> std::string {
    const UniqueFd folder = open_folder(path);
    const std::int64_t now = wall_now().nanoseconds_since_epoch / 1'000'000'000;
    if (!folder.valid()) return "x";
    for (const std::string& name : hidden_names_in(path)) {
      const std::int64_t written = time_in(name);
      struct stat status {};
      if (written == 0 || now - written < kOldSeconds) continue;
      if (::fstatat(folder.get(), name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
      // Of this user's and a plain file: whatever else has that name is not ours to take away.
      if (S_ISREG(status.st_mode) && status.st_uid == ::geteuid()) (void)::unlinkat(folder.get(), name.c_str(), 0);
    }
    return "x";
  });
}

}  // namespace monarch
