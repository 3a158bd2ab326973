#include "supervisor/launch/slurm/job_end.h"

#include <algorithm>
#include <charconv>
#include <string>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

// scontrol(1): a % begins a format of strftime(3).
constexpr std::string_view kSeconds = "SLURM_TIME_FORMAT=%s";

Words with_seconds(Words environment, Words command) {
  environment.emplace_back(kSeconds);
  return in_environment(environment, std::move(command));
}

std::string_view line_of(std::string_view answer, std::string_view beginning) {
  while (!answer.empty()) {
    const std::size_t end = std::min(answer.find('\n'), answer.size());
    const std::string_view line = answer.substr(0, end);
    if (line.starts_with(beginning)) return line;
    answer.remove_prefix(std::min(end + 1, answer.size()));
  }
  return {};
}

// The last of that name: those that users write, as the job's name, come before those that Slurm does.
std::string_view last_word_of(std::string_view line, const std::string& name) {
  const std::string key = text(" ", name, "=");
  const std::size_t found = line.rfind(key);
  if (found == std::string_view::npos) return {};
  line.remove_prefix(found + key.size());
  return line.substr(0, line.find(' '));
}

std::optional<std::int64_t> positive_number(std::string_view word) {
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  if (error != std::errc() || end != word.data() + word.size() || number <= 0) return std::nullopt;
  return number;
}

}  // namespace

Words job_end_query(std::uint32_t job, const Words& environment) {
  return with_seconds(environment, {"scontrol", "--oneliner", "show", "job", text(job)});
}

JobEnd read_job_end(std::string_view answer, std::uint32_t job) {
  // Command and WorkDir, which are the user's, come last.
  std::string_view line = line_of(answer, text("JobId=", job, " "));
  line = line.substr(0, line.find(" Command="));
  const std::string_view reason = last_word_of(line, "Reason");
  JobEnd seen;
  seen.state = read_job_state(text(job, "|", last_word_of(line, "JobState"), "|", reason), job).state;
  seen.start = positive_number(last_word_of(line, "StartTime"));
  seen.end = positive_number(last_word_of(line, "EndTime"));
  seen.preempted = positive_number(last_word_of(line, "PreemptTime")).has_value();
  seen.time_is_up = reason == "TimeLimit";
  return seen;
}

Words kill_wait_query(const Words& environment) { return with_seconds(environment, {"scontrol", "show", "config"}); }

std::optional<Duration> read_kill_wait(std::string_view answer) {
  std::string_view line = line_of(answer, "KillWait ");
  line = line.substr(std::min(line.find('='), line.size()));
  const std::size_t first = line.find_first_of("0123456789");
  if (first == std::string_view::npos) return std::nullopt;
  line.remove_prefix(first);
  const auto seconds = positive_number(line.substr(0, line.find(' ')));
  if (!seconds) return std::nullopt;
  return Duration::seconds(*seconds);
}

Duration warning_of(Duration warn, std::optional<Duration> limit) {
  return limit && *limit < warn * 2 ? *limit / 10 : warn;
}

}  // namespace monarch
