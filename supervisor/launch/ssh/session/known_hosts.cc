#include "supervisor/launch/ssh/session/known_hosts.h"

#include <fcntl.h>
#include <libssh/libssh.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>

#include "supervisor/launch/ssh/session/libssh_key.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr std::size_t kKnownHostsBytes = 32U << 20U;  // a larger file is refused
constexpr std::string_view kRevoked = "@revoked";
constexpr std::string_view kAuthority = "@cert-authority";

Result<std::string> read_all(const std::string& file) {
  const UniqueFd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) {
    if (errno == ENOENT) return std::string();
    return errno_error(text("reading ", file), errno);
  }
  std::string all;
  char piece[1U << 16U];
  for (;;) {
    const ssize_t got = ::read(fd.get(), piece, sizeof piece);
    if (got == 0) return all;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(text("reading ", file), errno);
    all.append(piece, static_cast<std::size_t>(got));
    if (all.size() > kKnownHostsBytes) return Error{ErrorCode::kInvalid, text(file, " has more than 32 MiB")};
  }
}

struct Line {
  KnownAs as = KnownAs::kHost;
  std::string rest;  // pattern, type and key, one space between them
};

std::optional<Line> parse(std::string_view raw) {
  Line line;
  for (const char c : raw) {
    const bool blank = c == ' ' || c == '\t' || c == '\r';
    if (!blank) line.rest.push_back(c);
    if (blank && !line.rest.empty() && line.rest.back() != ' ') line.rest.push_back(' ');
  }
  if (line.rest.empty() || line.rest[0] == '#') return std::nullopt;
  if (line.rest[0] != '@') return line;
  const std::size_t end = line.rest.find(' ');
  const std::string mark = line.rest.substr(0, end);
  if (end == std::string::npos || (mark != kRevoked && mark != kAuthority)) return std::nullopt;
  line.as = mark == kRevoked ? KnownAs::kRevoked : KnownAs::kAuthority;
  line.rest.erase(0, end + 1);
  return line;
}

std::optional<HostKey> key_of(const std::string& host, const Line& line) {
  ssh_knownhosts_entry* entry = nullptr;
  if (ssh_known_hosts_parse_line(host.c_str(), line.rest.c_str(), &entry) != SSH_OK) return std::nullopt;
  const std::unique_ptr<ssh_knownhosts_entry, void (*)(ssh_knownhosts_entry*)> owner(entry, ssh_knownhosts_entry_free);
  return describe_key(entry->publickey);
}

}  // namespace

std::string known_hosts_name(const SshTarget& target) {
  std::string host = target.address;
  std::transform(host.begin(), host.end(), host.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return target.port == 22 ? host : text("[", host, "]:", target.port);
}

std::vector<KnownKey> parse_known_hosts(std::string_view all, const std::string& file, const std::string& host) {
  std::vector<KnownKey> found;
  std::size_t number = 0;
  for (std::size_t at = 0; at < all.size();) {
    const std::size_t end = std::min(all.find('\n', at), all.size());
    const auto line = parse(all.substr(at, end - at));
    at = end + 1;
    ++number;
    if (!line) continue;
    auto key = key_of(host, *line);
    if (key) found.push_back({std::move(*key), line->as, text(file, ":", number), file});
  }
  return found;
}

Result<std::vector<KnownKey>> known_keys(const std::vector<std::string>& files, const std::string& host) {
  std::vector<KnownKey> found;
  for (const std::string& file : files) {
    MONARCH_ASSIGN(const std::string all, read_all(file));
    for (KnownKey& known : parse_known_hosts(all, file, host)) found.push_back(std::move(known));
  }
  return found;
}

Status remember_key(const std::string& file, const std::string& host, const HostKey& key) {
  const std::string folder = file.substr(0, file.rfind('/'));
  if (!folder.empty() && ::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    return errno_error(text("making ", folder), errno);
  }
  const UniqueFd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK, 0600));
  if (!fd.valid()) return errno_error(text("writing ", file), errno);
  // Whoever edited it last may have left its last line open. One write, so that sessions that learn at once mix no
  // lines.
  char last = '\n';
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  if (size > 0 && ::pread(fd.get(), &last, 1, size - 1) != 1) return errno_error(text("reading ", file), errno);
  const std::string line = text(last == '\n' ? "" : "\n", host, " ", key.type, " ", key.base64, "\n");
  if (::write(fd.get(), line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return errno_error(text("writing ", file), errno);
  }
  return {};
}

}  // namespace monarch
