#include "supervisor/launch/slurm/slurm_requests.h"

#include <algorithm>
#include <array>
#include <utility>

#include "supervisor/launch/slurm/slurm_spec.h"
#include "transport/base/take_number.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kTokenWord = "monarch ";

bool take_character(std::string_view& text, char wanted) {
  if (text.empty() || text.front() != wanted) return false;
  text.remove_prefix(1);
  return true;
}

// Whole minutes, as sbatch(1) takes them, rounded up.
std::string minutes(Duration time) {
  return text(std::max<std::int64_t>((time.count_milliseconds() + 59'999) / 60'000, 1));
}

void add(Words& command, std::string_view option, const std::string& wish, const std::string& usual) {
  const std::string& value = wish.empty() ? usual : wish;
  if (!value.empty()) command.push_back(text(option, value));
}

}  // namespace

std::string to_text(const RequestToken& token) {
  return text(kTokenWord, token.uuid, ' ', token.host.value(), ' ', token.term, '.', token.number);
}

std::optional<RequestToken> read_token(std::string_view comment) {
  if (!comment.starts_with(kTokenWord)) return std::nullopt;
  comment.remove_prefix(kTokenWord.size());
  RequestToken token;
  const std::size_t blank = comment.find(' ');
  if (blank == std::string_view::npos) return std::nullopt;
  token.uuid = comment.substr(0, blank);
  comment.remove_prefix(blank + 1);
  std::uint32_t host = 0;
  const bool read = take_number(comment, host) && take_character(comment, ' ') && take_number(comment, token.term) &&
                    take_character(comment, '.') && take_number(comment, token.number);
  if (!read || comment.find_first_not_of(' ') != std::string_view::npos) return std::nullopt;
  token.host = HostId(host);
  return token;
}

// What sbatch is told last counts: the options of the spec are its author's, but for those that say whose job it is.
Words node_request_command(const NodeOrder& order) {
  Words command = {"sbatch",           "--parsable",        "--no-requeue",
                   "--chdir=/",        "--input=/dev/null", "--output=/dev/null",
                   "--error=/dev/null"};
  const SlurmRequest& wish = order.wish;
  const SlurmJobFacts& like = order.like;
  add(command, "--partition=", wish.partition, like.partition);
  add(command, "--account=", wish.account, like.account);
  add(command, "--qos=", wish.qos, like.qos);
  add(command, "--constraint=", wish.constraint, like.features);
  add(command, "--reservation=", "", like.reservation);
  const std::optional<Duration> time = wish.time ? wish.time : like.time_left;
  if (time) command.push_back(text("--time=", minutes(*time)));
  if (like.cpus > 0) command.push_back(text("--cpus-per-task=", like.cpus));
  if (like.memory_mib > 0) command.push_back(text("--mem=", like.memory_mib, "M"));
  if (!like.gres.empty()) command.push_back(text("--gres=", like.gres));
  if (like.exclusive) command.emplace_back("--exclusive");
  command.insert(command.end(), wish.options.begin(), wish.options.end());
  std::vector<std::string> exclude = wish.exclude;
  exclude.insert(exclude.end(), order.exclude.begin(), order.exclude.end());
  if (!exclude.empty()) command.push_back(text("--exclude=", join(exclude, ",")));
  for (const std::string& word :
       {std::string("--nodes=1"), std::string("--ntasks=1"), text("--job-name=", order.name),
        text("--comment=", to_text(order.token)), text("--wrap=", holding_script(order.token.uuid))}) {
    command.push_back(word);
  }
  return in_environment(order.environment, std::move(command));
}

// A worker is known by its command line (marks.h). The bracket keeps the search from finding itself.
std::string holding_script(const std::string& uuid) {
  return text(
      "seen=0 missed=0\n"
      "while [ $missed -lt 60 ] && { [ $seen = 0 ] || [ $missed -lt 4 ]; }; do\n"
      "  sleep 5\n"
      "  if cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q -e '[-]-job ",
      uuid,
      "'\n"
      "  then seen=1 missed=0; else missed=$((missed + 1)); fi\n"
      "done");
}

Result<std::uint32_t> read_submitted(std::string_view answer) {
  std::string_view rest = answer;
  std::uint32_t job = 0;
  // "12", or "12;cluster".
  if (take_number(rest, job) && job > 0 && (rest.empty() || rest.front() == '\n' || rest.front() == ';')) return job;
  return Error{ErrorCode::kInvalid, text("sbatch answered `", printable(answer.substr(0, answer.find('\n'))), "`")};
}

// WARNING: sbatch ends with 1 in either case, and says in words which it is (Slurm 22.05).
bool is_refusal(std::string_view words) {
  constexpr std::array kAway = {"ontact slurm", "timed out",   "onnection",      "emporarily", "Zero Bytes",
                                "ommunication", "not respond", "did not answer", "guard"};
  if (says_not_authenticated(words)) return false;
  return std::none_of(kAway.begin(), kAway.end(),
                      [words](const char* part) { return words.find(part) != std::string_view::npos; });
}

Words requests_query(const std::string& name, const Words& environment) {
  return in_environment(
      environment, {"squeue", "--noheader", "--me", "--states=all", text("--name=", name), "--format=%A|%T|%r|%N|%k"});
}

std::vector<RequestedJob> read_requests(std::string_view answer, const std::string& uuid) {
  std::vector<RequestedJob> jobs;
  while (!answer.empty()) {
    std::string_view line = answer.substr(0, answer.find('\n'));
    answer.remove_prefix(std::min(line.size() + 1, answer.size()));
    RequestedJob found;
    std::string_view number = take_column(line);
    const std::string_view state = take_column(line);
    if (!take_number(number, found.job) || !number.empty()) continue;
    const SlurmJobWord word = read_job_state(text(found.job, '|', state, '|'), found.job);
    found.state = word.state;
    found.word = word.word;
    found.reason = take_column(line);
    found.nodes = take_column(line);
    const auto token = read_token(line);
    if (!token || token->uuid != uuid) continue;
    found.token = *token;
    jobs.push_back(std::move(found));
  }
  return jobs;
}

Words cancel_job_command(std::uint32_t job, const Words& environment) {
  return in_environment(environment, {"scancel", text(job)});
}

}  // namespace monarch
