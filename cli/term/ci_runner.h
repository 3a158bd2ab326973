#pragma once

// CiRunner: what the runner of a CI job understands in its log: groups that fold, and a mark for what went wrong. It
// also keeps ranks from saying such things: what they write is escaped where the runner would obey it.
//
// Thread: a value and pure functions.

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/term/environment.h"
#include "transport/base/time.h"
#include "transport/messages/viewer.h"

namespace monarch {

class CiRunner {
 public:
  enum class Kind : std::uint8_t { kNone, kGithub, kGitlab, kBuildkite, kAzure };

  CiRunner() = default;
  explicit CiRunner(Kind kind) : kind_(kind) {}
  // By GITHUB_ACTIONS, GITLAB_CI, BUILDKITE and TF_BUILD.
  static CiRunner of(const Environment& env);

  bool is_one() const { return kind_ != Kind::kNone; }

  // Whole lines for the log; empty where there is no runner. One group at a time.
  std::string open_group(std::string_view name, std::string_view title, WallTime now) const;
  std::string close_group(std::string_view name, WallTime now) const;
  // For a job that did not succeed: the first cause, where the runner shows it to people; empty where it knows no such
  // thing.
  std::string annotation(const Verdict& verdict, std::string_view job) const;

  // A line, printable already, that the runner takes for text. `at_start`: nothing of ours is in front of it.
  std::string as_text(std::string line, bool at_start) const;
  // The same of a JSON value, which stays the same value.
  std::string as_text_json(std::string json) const;
  // The same of several lines of ours that quote others.
  std::string lines_as_text(std::string_view lines) const;

 private:
  Kind kind_ = Kind::kNone;
};

}  // namespace monarch
