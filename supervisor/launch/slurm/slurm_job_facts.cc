#include "supervisor/launch/slurm/slurm_job_facts.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::uint32_t kMostCpus = 1U << 20U;

// The value behind a word that stands at the beginning of a line or behind a blank; up to the next blank.
std::string_view field(std::string_view answer, std::string_view name) {
  std::size_t at = 0;
  while ((at = answer.find(name, at)) != std::string_view::npos) {
    const bool begins = at == 0 || answer[at - 1] == ' ' || answer[at - 1] == '\n';
    const std::size_t value = at + name.size();
    at = value;
    if (!begins || value >= answer.size() || answer[value] != '=') continue;
    const std::string_view rest = answer.substr(value + 1);
    const std::string_view word = rest.substr(0, rest.find_first_of(" \n"));
    return word == "(null)" || word == "N/A" ? std::string_view() : word;
  }
  return {};
}

template <class Number>
Number number_or_zero(std::string_view word) {
  Number number = 0;
  const auto [stopped, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && stopped == word.data() + word.size() ? number : 0;
}

// "0-3,8" is five.
std::uint32_t count_ids(std::string_view ids) {
  std::uint32_t count = 0;
  while (!ids.empty()) {
    const std::string_view range = ids.substr(0, ids.find(','));
    ids.remove_prefix(std::min(range.size() + 1, ids.size()));
    const std::size_t dash = range.find('-');
    const auto first = number_or_zero<std::uint32_t>(range.substr(0, dash));
    const auto last = dash == std::string_view::npos ? first : number_or_zero<std::uint32_t>(range.substr(dash + 1));
    if (last < first || last - first >= kMostCpus) return 0;
    count += last - first + 1;
    if (count > kMostCpus) return 0;
  }
  return count;
}

// "1-02:03:04", "00:05:00", as Slurm writes times; nothing: "UNLIMITED", or no time.
std::optional<Duration> time_of(std::string_view word) {
  constexpr std::int64_t kMostDays = 36'500;
  std::int64_t days = 0;
  if (const std::size_t dash = word.find('-'); dash != std::string_view::npos) {
    days = number_or_zero<std::int64_t>(word.substr(0, dash));
    word.remove_prefix(dash + 1);
  }
  if (word.empty() || word.front() < '0' || word.front() > '9' || days < 0 || days > kMostDays) return std::nullopt;
  std::int64_t seconds = 0;
  while (!word.empty()) {
    const std::string_view part = word.substr(0, word.find(':'));
    const auto number = number_or_zero<std::int64_t>(part);
    if (part.size() > 4 || number < 0) return std::nullopt;
    seconds = seconds * 60 + number;
    if (seconds > kMostDays * 86'400) return std::nullopt;
    word.remove_prefix(std::min(part.size() + 1, word.size()));
  }
  return Duration::seconds(days * 86'400 + seconds);
}

// "gpu:2(IDX:0-1)" without what is in brackets; of several, all.
std::string without_indices(std::string_view gres) {
  std::string plain;
  bool inside = false;
  for (const char c : gres) {
    if (c == '(') inside = true;
    if (!inside) plain += c;
    if (c == ')') inside = false;
  }
  return plain;
}

}  // namespace

// WARNING: the number of an array is one of its tasks', and shows them all, each under an id of its own; scontrol(1).
Result<SlurmJobFacts> read_job_facts(std::string_view answer, std::uint32_t job) {
  while (field(answer, "JobId") != text(job)) {
    const std::size_t next = answer.find("\nJobId=");
    if (next == std::string_view::npos) break;
    answer.remove_prefix(next + 1);
  }
  answer = answer.substr(0, answer.find("\nJobId="));
  if (field(answer, "JobId") != text(job)) {
    return Error{ErrorCode::kInvalid, text("not what scontrol says of job ", job, ": `",
                                           printable(answer.substr(0, answer.find('\n'))), "`")};
  }
  SlurmJobFacts facts;
  facts.state = field(answer, "JobState");
  const std::string_view partitions = field(answer, "Partition");
  facts.partition = partitions.substr(0, partitions.find(','));
  facts.account = field(answer, "Account");
  facts.qos = field(answer, "QOS");
  facts.reservation = field(answer, "Reservation");
  facts.features = field(answer, "Features");
  const auto limit = time_of(field(answer, "TimeLimit"));
  const auto ran = time_of(field(answer, "RunTime"));
  if (limit && ran) facts.time_left = std::max(*limit - *ran, Duration::zero());
  facts.exclusive = field(answer, "OverSubscribe") == "NO";
  // A line for each group of nodes that are alike; the first one stands for all.
  const std::size_t group = answer.find("\n     Nodes=");
  if (group == std::string_view::npos) return facts;
  std::string_view line = answer.substr(group + 1);
  line = line.substr(0, line.find('\n'));
  facts.cpus = count_ids(field(line, "CPU_IDs"));
  facts.memory_mib = number_or_zero<std::uint64_t>(field(line, "Mem"));
  facts.gres = without_indices(field(line, "GRES"));
  return facts;
}

}  // namespace monarch
