#include "cli/term/ci_runner.h"

#include <array>

#include "cli/term/cause_text.h"
#include "supervisor/client/link/viewer_json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kMostAnnotatedLines = 10;

// Both runners that obey these look for them anywhere in a line.
constexpr std::array kAnywhere = {std::string_view("##["), std::string_view("##vso[")};
constexpr std::array kGroupMarks = {std::string_view("---"), std::string_view("+++"), std::string_view("~~~"),
                                    std::string_view("^^^")};

std::string replaced(std::string words, std::string_view what, std::string_view with) {
  for (std::size_t at = words.find(what); at != std::string::npos; at = words.find(what, at + with.size())) {
    words.replace(at, what.size(), with);
  }
  return words;
}

// The escapes of the runner's own toolkit for what follows its second `::`.
std::string github_message(std::string words) {
  return replaced(replaced(replaced(std::move(words), "%", "%25"), "\r", "%0D"), "\n", "%0A");
}
std::string github_property(std::string words) {
  return replaced(replaced(github_message(std::move(words)), ":", "%3A"), ",", "%2C");
}
std::string azure_message(std::string words) {
  return replaced(replaced(replaced(std::move(words), "%", "%AZP25"), "\r", "%0D"), "\n", "%0A");
}

std::string last_lines(std::string_view raw) {
  while (raw.ends_with('\n')) raw.remove_suffix(1);
  std::size_t begin = raw.size();
  for (std::size_t lines = 0; begin > 0 && lines < kMostAnnotatedLines; ++lines) {
    const std::size_t newline = raw.rfind('\n', begin - 1);
    begin = newline == std::string_view::npos ? 0 : newline;
  }
  std::string out;
  std::string_view rest = raw.substr(begin);
  while (!rest.empty()) {
    if (rest.starts_with('\n')) rest.remove_prefix(1);
    const std::size_t newline = rest.find('\n');
    out += text("\n", printable(rest.substr(0, newline)));
    rest.remove_prefix(newline == std::string_view::npos ? rest.size() : newline);
  }
  return out;
}

}  // namespace

CiRunner CiRunner::of(const Environment& env) {
  const auto says_so = [&](std::string_view name) {
    const std::string value = env.get(name);
    return value == "true" || value == "True" || value == "1";
  };
  if (says_so("GITHUB_ACTIONS")) return CiRunner(Kind::kGithub);
  if (says_so("GITLAB_CI")) return CiRunner(Kind::kGitlab);
  if (says_so("BUILDKITE")) return CiRunner(Kind::kBuildkite);
  if (says_so("TF_BUILD")) return CiRunner(Kind::kAzure);
  return CiRunner(Kind::kNone);
}

std::string CiRunner::open_group(std::string_view name, std::string_view title, WallTime now) const {
  switch (kind_) {
    case Kind::kNone: return "";
    case Kind::kGithub: return text("::group::", github_message(std::string(title)), "\n");
    case Kind::kGitlab:
      return text("\x1b[0Ksection_start:", now.nanoseconds_since_epoch / 1'000'000'000, ":", name,
                  "[collapsed=true]\r\x1b[0K", title, "\n");
    case Kind::kBuildkite: return text("--- ", title, "\n");
    case Kind::kAzure: return text("##[group]", title, "\n");
  }
  return "";
}

std::string CiRunner::close_group(std::string_view name, WallTime now) const {
  switch (kind_) {
    case Kind::kNone: return "";
    case Kind::kGithub: return "::endgroup::\n";
    case Kind::kGitlab:
      return text("\x1b[0Ksection_end:", now.nanoseconds_since_epoch / 1'000'000'000, ":", name, "\r\x1b[0K\n");
    case Kind::kBuildkite: return "+++ monarch: result\n";  // a group ends where the next begins
    case Kind::kAzure: return "##[endgroup]\n";
  }
  return "";
}

std::string CiRunner::annotation(const Verdict& verdict, std::string_view job) const {
  if (verdict.outcome == Outcome::kSucceeded) return "";
  const bool has_cause = verdict.cause.kind != CauseKind::kNone && verdict.cause.kind != CauseKind::kRequest;
  const std::string what = has_cause ? cause_text(verdict.cause) : printable(verdict.reason);
  const std::string title = text(job, " ", outcome_name(verdict.outcome), " (exit ", verdict.exit_code, ")");
  const std::string message = what + last_lines(verdict.cause.stderr_tail);
  switch (kind_) {
    case Kind::kNone: return "";
    case Kind::kGithub: return text("::error title=", github_property(title), "::", github_message(message), "\n");
    case Kind::kAzure: return text("##vso[task.logissue type=error]", azure_message(text(title, ": ", message)), "\n");
    case Kind::kBuildkite:          // the result stands in a group that is open
    case Kind::kGitlab: return "";  // it shows a file of --junit instead
  }
  return "";
}

std::string CiRunner::as_text(std::string line, bool at_start) const {
  if (kind_ == Kind::kGithub || kind_ == Kind::kAzure) {
    for (const std::string_view mark : kAnywhere) line = replaced(std::move(line), mark, text("#\\", mark.substr(1)));
  }
  if (!at_start) return line;
  const std::size_t begin = line.find_first_not_of(" \t");
  if (begin == std::string::npos) return line;
  bool command = kind_ == Kind::kGithub && line[begin] == ':';
  if (kind_ == Kind::kBuildkite) {
    for (const std::string_view mark : kGroupMarks) {
      command = command || std::string_view(line).substr(begin).starts_with(mark);
    }
  }
  if (command) line.insert(begin, "\\");
  return line;
}

std::string CiRunner::as_text_json(std::string json) const {
  if (kind_ != Kind::kGithub && kind_ != Kind::kAzure) return json;
  return replaced(std::move(json), "##", "#\\u0023");
}

std::string CiRunner::lines_as_text(std::string_view lines) const {
  if (!is_one()) return std::string(lines);
  std::string out;
  while (!lines.empty()) {
    const std::size_t newline = lines.find('\n');
    out += as_text(std::string(lines.substr(0, newline)), true);
    if (newline == std::string_view::npos) break;
    out.push_back('\n');
    lines.remove_prefix(newline + 1);
  }
  return out;
}

}  // namespace monarch
