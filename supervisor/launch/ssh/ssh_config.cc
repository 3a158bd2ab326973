#include "supervisor/launch/ssh/ssh_config.h"

#include <fcntl.h>
#include <fnmatch.h>
#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <memory>
#include <optional>

#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

constexpr std::size_t kConfigBytes = 1U << 20U;  // a larger file is refused
constexpr int kIncludeDepth = 8;                 // as OpenSSH nearly (16); more is refused
constexpr std::size_t kConfigLines = 100'000;    // of all files; more is refused

Error at(const std::string& place, std::string_view what) { return {ErrorCode::kInvalid, text(place, ": ", what)}; }

std::string small_letters(std::string_view word) {
  std::string out(word);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return out;
}

// Words between blanks, or in double quotes; a `=` may stand between the first and the second. Nothing: a quote is
// open.
std::optional<std::vector<std::string>> split(std::string_view line) {
  std::vector<std::string> words;
  std::size_t i = 0;
  const auto blank = [&] { return line[i] == ' ' || line[i] == '\t' || line[i] == '\r'; };
  for (;;) {
    while (i < line.size() && blank()) ++i;
    if (words.size() == 1 && i < line.size() && line[i] == '=') {
      ++i;
      continue;
    }
    if (i >= line.size() || line[i] == '#') return words;
    std::string word;
    if (line[i] == '"') {
      const std::size_t end = line.find('"', i + 1);
      if (end == std::string_view::npos) return std::nullopt;
      word = line.substr(i + 1, end - i - 1);
      i = end + 1;
    } else {
      while (i < line.size() && !blank() && !(words.empty() && line[i] == '=')) word.push_back(line[i++]);
    }
    words.push_back(std::move(word));
  }
}

Result<std::string> read_file(const std::string& path) {
  const UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return errno_error(text("reading ", path), errno);
  std::string all;
  char piece[16U << 10U];
  for (;;) {
    const ssize_t got = ::read(fd.get(), piece, sizeof piece);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(text("reading ", path), errno);
    if (got == 0) return all;
    all.append(piece, static_cast<std::size_t>(got));
    if (all.size() > kConfigBytes) return Error{ErrorCode::kInvalid, text(path, " has more than 1 MiB")};
  }
}

std::string without_tilde(const std::string& path, const std::string& home) {
  if (path == "~" || path.rfind("~/", 0) == 0) return home + path.substr(1);
  return path;
}

// A pattern without a match names nothing.
std::vector<std::string> files_of(const std::string& pattern, const std::string& home) {
  std::string path = without_tilde(pattern, home);
  if (path.empty() || path[0] != '/') path = text(home, "/.ssh/", path);
  glob_t found{};
  std::vector<std::string> files;
  if (::glob(path.c_str(), 0, nullptr, &found) == 0) files.assign(found.gl_pathv, found.gl_pathv + found.gl_pathc);
  ::globfree(&found);
  return files;
}

class Reader {
 public:
  explicit Reader(std::string home) : home_(std::move(home)) {}

  Status file(const std::string& path, int depth) {
    if (depth > kIncludeDepth) return at(path, "Include goes too deep");
    MONARCH_ASSIGN(const std::string all, read_file(path));
    return lines(all, path, depth);
  }

  Status lines(std::string_view all, const std::string& name, int depth) {
    std::size_t number = 0;
    for (std::size_t begin = 0; begin < all.size();) {
      const std::size_t end = std::min(all.find('\n', begin), all.size());
      MONARCH_TRY(line(all.substr(begin, end - begin), text(name, ":", ++number), depth));
      begin = end + 1;
    }
    return {};
  }

  SshConfig take() { return std::move(config_); }

 private:
  Status line(std::string_view raw, const std::string& place, int depth) {
    const auto words = split(raw);
    if (!words) return at(place, "a quote is not closed");
    if (words->empty()) return {};
    SshConfigLine line{small_letters(words->front()), {words->begin() + 1, words->end()}, place};
    if (config_.lines.size() >= kConfigLines) return at(place, "more than 100000 lines");
    if (line.arguments.empty()) return at(place, text(words->front(), " has no value"));
    if (line.keyword == "match" && !(line.arguments.size() == 1 && small_letters(line.arguments[0]) == "all")) {
      return at(place,
                "Match is not read (but for `Match all`); name what it says in the spec, or in a file of its own");
    }
    if (line.keyword != "include") {
      config_.lines.push_back(std::move(line));
      return {};
    }
    if (home_.empty()) return at(place, "Include is not followed from here");
    // Of an included file the Host lines end with it.
    SshConfigLine around;
    for (const SshConfigLine& earlier : config_.lines) {
      if (earlier.keyword == "host" || earlier.keyword == "match") around = earlier;
    }
    for (const std::string& pattern : line.arguments) {
      for (const std::string& path : files_of(pattern, home_)) {
        MONARCH_TRY(file(path, depth + 1));
        if (!around.keyword.empty()) config_.lines.push_back(around);
        if (around.keyword.empty()) config_.lines.push_back({"match", {"all"}, place});
      }
    }
    return {};
  }

  std::string home_;
  SshConfig config_;
};

bool matches(const SshConfigLine& host_line, const std::string& host) {
  bool any = false;
  for (const std::string& pattern : host_line.arguments) {
    const bool negated = !pattern.empty() && pattern[0] == '!';
    // Its brackets mean themselves in OpenSSH; no name of a host has any.
    const bool hit = ::fnmatch(pattern.c_str() + (negated ? 1 : 0), host.c_str(), FNM_NOESCAPE) == 0;
    if (hit && negated) return false;
    any = any || hit;
  }
  return any;
}

Result<std::string> expand(const SshConfigLine& line, const std::string& value, const SshConfigAnswer& so_far,
                           const std::string& host, const std::string& home) {
  std::string out;
  const std::string plain = without_tilde(value, home);
  for (std::size_t i = 0; i < plain.size(); ++i) {
    if (plain[i] != '%') {
      out.push_back(plain[i]);
      continue;
    }
    const char what = ++i < plain.size() ? plain[i] : '\0';
    switch (what) {
      case '%': out += '%'; break;
      case 'd': out += home; break;
      case 'h': out += so_far.host_name.empty() ? host : so_far.host_name; break;
      case 'n': out += host; break;
      case 'r': out += so_far.user; break;
      default: return at(line.place, text("`", value, "`: only %%, %d, %h, %n and %r are known here"));
    }
  }
  return out;
}

std::vector<std::string> parts_at_commas(const std::string& list) {
  std::vector<std::string> parts;
  for (std::size_t begin = 0; begin <= list.size();) {
    const std::size_t end = std::min(list.find(',', begin), list.size());
    if (end > begin) parts.push_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

Result<bool> yes_or_no(const SshConfigLine& line) {
  const std::string word = small_letters(line.arguments.front());
  if (word == "yes" || word == "true") return true;
  if (word == "no" || word == "false") return false;
  return at(line.place, text("`", line.arguments.front(), "` is neither yes nor no"));
}

class Answerer {
 public:
  Answerer(const std::string& host, const std::string& home) : host_(host), home_(home) {}

  Status take(const SshConfigLine& line) {
    const std::string& value = line.arguments.front();
    if (line.keyword == "hostname" && answer_.host_name.empty()) {
      MONARCH_ASSIGN(answer_.host_name, expand(line, value, answer_, host_, home_));
    } else if (line.keyword == "user" && answer_.user.empty()) {
      answer_.user = value;
    } else if (line.keyword == "port" && answer_.port == 0) {
      const char* const end = value.data() + value.size();
      const auto [stop, error] = std::from_chars(value.data(), end, answer_.port);
      if (error != std::errc() || stop != end || answer_.port == 0)
        return at(line.place, text("`", value, "` is no port"));
    } else if (line.keyword == "identityfile") {
      identities_.push_back(&line);
    } else if (line.keyword == "certificatefile") {
      certificates_.push_back(&line);
    } else if (line.keyword == "identitiesonly" && !identities_only_set_) {
      identities_only_set_ = true;
      MONARCH_ASSIGN(answer_.identities_only, yes_or_no(line));
    } else if (line.keyword == "userknownhostsfile" && known_hosts_ == nullptr) {
      known_hosts_ = &line;
    } else if (line.keyword == "proxyjump" && !jumps_set_) {
      jumps_set_ = true;
      if (small_letters(value) != "none") answer_.jumps = parts_at_commas(value);
    } else if (line.keyword == "proxycommand" && !jumps_set_) {
      if (small_letters(value) != "none")
        return at(line.place, "ProxyCommand is not run; use ProxyJump, or `jump` in the spec");
      jumps_set_ = true;
    } else if (line.keyword == "hostkeyalias") {
      return at(line.place, "HostKeyAlias is not followed; pin the key of the host as host_key in the spec");
    }
    return {};
  }

  // Paths last: they may name the host and the user that a later line told.
  Result<SshConfigAnswer> finish() {
    for (const auto& [lines, paths] :
         {std::pair(&identities_, &answer_.identities), std::pair(&certificates_, &answer_.certificates)}) {
      for (const SshConfigLine* line : *lines) {
        if (small_letters(line->arguments.front()) == "none") continue;
        MONARCH_ASSIGN(std::string path, expand(*line, line->arguments.front(), answer_, host_, home_));
        paths->push_back(std::move(path));
      }
    }
    if (known_hosts_ != nullptr) {
      for (const std::string& value : known_hosts_->arguments) {
        MONARCH_ASSIGN(std::string path, expand(*known_hosts_, value, answer_, host_, home_));
        answer_.known_hosts.push_back(std::move(path));
      }
    }
    return std::move(answer_);
  }

 private:
  const std::string& host_;
  const std::string& home_;
  SshConfigAnswer answer_;
  std::vector<const SshConfigLine*> identities_;
  std::vector<const SshConfigLine*> certificates_;
  const SshConfigLine* known_hosts_ = nullptr;
  bool jumps_set_ = false;
  bool identities_only_set_ = false;
};

}  // namespace

Result<SshConfig> load_ssh_config(const std::string& path, const std::string& home) {
  Reader reader(home);
  MONARCH_TRY(reader.file(path, 0));
  return reader.take();
}

Result<SshConfig> parse_ssh_config(std::string_view all, const std::string& place) {
  Reader reader("");
  MONARCH_TRY(reader.lines(all, place, 0));
  return reader.take();
}

Result<SshConfigAnswer> look_up(const SshConfig& config, const std::string& host, const std::string& home) {
  Answerer answerer(host, home);
  bool applies = true;
  for (const SshConfigLine& line : config.lines) {
    if (line.keyword == "host") {
      applies = matches(line, host);
    } else if (line.keyword == "match") {
      applies = true;
    } else if (applies) {
      MONARCH_TRY(answerer.take(line));
    }
  }
  return answerer.finish();
}

}  // namespace monarch
