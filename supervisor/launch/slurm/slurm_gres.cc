#include "supervisor/launch/slurm/slurm_gres.h"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "supervisor/core/spec/hostlist.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::string_view kGpu = "gpu";
constexpr std::string_view kJob = "JobId=";
constexpr std::string_view kNodes = "Nodes=";
constexpr std::string_view kGres = "GRES=";
constexpr std::size_t kNameBytes = 64;
constexpr std::size_t kNamesOfNode = 64;

std::string_view taken_up_to(std::string_view& rest, char end) {
  const std::size_t length = std::min(rest.find(end), rest.size());
  const std::string_view taken = rest.substr(0, length);
  rest.remove_prefix(std::min(length + 1, rest.size()));
  return taken;
}

// A name becomes a part of an option of srun.
bool is_gres_name(std::string_view name) {
  return !name.empty() && name.size() <= kNameBytes && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
}

std::optional<std::uint32_t> count_from(std::string_view digits) {
  std::uint32_t count = 0;
  const auto [stopped, error] = std::from_chars(digits.data(), digits.data() + digits.size(), count);
  if (error != std::errc() || stopped != digits.data() + digits.size()) return std::nullopt;
  return count;
}

// Up to the comma that is within no parentheses: those of an index list are.
std::string_view next_entry(std::string_view& rest) {
  std::size_t end = 0;
  bool inside = false;
  for (; end < rest.size() && (inside || rest[end] != ','); ++end) {
    if (rest[end] == '(' || rest[end] == ')') inside = rest[end] == '(';
  }
  const std::string_view entry = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return entry;
}

// "gpu:2(IDX:0-1)", "gpu:a100:1(IDX:0)" or "nic(CNT:1)".
std::optional<std::pair<std::string, std::uint32_t>> read_entry(std::string_view entry) {
  std::string_view head = taken_up_to(entry, '(');
  if (entry.empty() || entry.back() != ')') return std::nullopt;
  entry.remove_suffix(1);
  const std::string_view kind = taken_up_to(entry, ':');
  std::string_view digits = entry;
  if (kind == "IDX") {
    const std::size_t colon = head.rfind(':');
    if (colon == std::string_view::npos) return std::nullopt;
    digits = head.substr(colon + 1);
    head = head.substr(0, colon);
  } else if (kind != "CNT") {
    return std::nullopt;
  }
  const auto count = count_from(digits);
  const std::string_view name = taken_up_to(head, ':');
  if (!count || !is_gres_name(name)) return std::nullopt;
  return std::pair(std::string(name), *count);
}

Result<NodeGres> read_entries(std::string_view list) {
  NodeGres gres;
  for (std::string_view rest = list; !rest.empty();) {
    const auto entry = read_entry(next_entry(rest));
    std::uint32_t* sum = entry ? &gres[entry->first] : nullptr;
    if (sum == nullptr || gres.size() > kNamesOfNode ||
        entry->second > std::numeric_limits<std::uint32_t>::max() - *sum) {
      return Error{ErrorCode::kInvalid, text("not a list of GRES: `", printable(list), "`")};
    }
    *sum += entry->second;
  }
  return gres;
}

// The value of a word of a line, whose words are apart by spaces.
std::optional<std::string_view> word_of(std::string_view line, std::string_view name) {
  while (!line.empty()) {
    const std::string_view word = taken_up_to(line, ' ');
    if (word.starts_with(name)) return word.substr(name.size());
  }
  return std::nullopt;
}

Words other_options(const NodeGres& gres) {
  std::string list;
  for (const auto& [name, count] : gres) {
    if (name != kGpu && count > 0) list += text(list.empty() ? "" : ",", name, ":", count);
  }
  return list.empty() ? Words() : Words{text("--gres=", list)};
}

std::uint32_t gpus_in(const NodeGres& gres) {
  const auto found = gres.find(std::string(kGpu));
  return found == gres.end() ? 0 : found->second;
}

Words options_of(const JobGres& job, const std::string& node, std::string_view gpus_option) {
  const bool any = std::any_of(job.begin(), job.end(), [](const auto& one) { return gpus_in(one.second) > 0; });
  if (!any) return {};
  const auto found = job.find(node);
  Words options = found == job.end() ? Words() : other_options(found->second);
  const std::uint32_t gpus = found == job.end() ? 0 : gpus_in(found->second);
  if (gpus > 0) options.push_back(text(gpus_option, gpus));
  return options.empty() ? no_gres_options() : options;
}

}  // namespace

Words job_detail_query(std::uint32_t job, const Words& environment) {
  return in_environment(environment, {"scontrol", "--details", "show", "job", text(job)});
}

// WARNING: the number of an array is one of its tasks', and shows them all, each under an id of its own; scontrol(1).
Result<JobGres> read_job_gres(std::string_view answer, std::uint32_t job) {
  JobGres found;
  const std::string id = text(job);
  bool ours = false;
  while (!answer.empty()) {
    const std::string_view line = taken_up_to(answer, '\n');
    if (line.starts_with(kJob)) ours = word_of(line, kJob) == id;
    const auto nodes = word_of(line, kNodes);
    const auto list = word_of(line, kGres);
    if (!ours || !nodes || !list) continue;
    auto names = expand_hostlist(*nodes);
    if (!names.ok()) return Error{ErrorCode::kInvalid, text("not a list of nodes: `", printable(*nodes), "`")};
    MONARCH_ASSIGN(const NodeGres gres, read_entries(*list));
    for (std::string& name : *names) found.insert_or_assign(std::move(name), gres);
    if (found.size() > limits::kHostlistNames)
      return Error{ErrorCode::kInvalid, "a job of more nodes than there can be"};
  }
  if (found.empty()) return Error{ErrorCode::kInvalid, "scontrol shows no nodes of the job"};
  return found;
}

// WARNING: where the job asked for GPUs by --gpus a step without any such option is refused, and one of --gpus-per-task
// gets those of one task.
// --gres=gpu:N is a number for each node of the job and refused where they have different ones, a type where the job
// asked for none; --gpus=N is of the step and holds for all of them. Other GRES are named beside it, lest a step that
// names some is given no others (Slurm 22.05).
Words gres_options(const JobGres& job, const std::string& node) { return options_of(job, node, "--gpus="); }

// WARNING: of a step with many nodes --gpus=N leaves some of them one GPU, --gpus-per-task is refused where the job
// asked for fewer of a task, and without an option a step has what one task of the job has; --gpus-per-node gives them
// all in each of these (Slurm 22.05).
std::optional<Words> shared_gres_options(const JobGres& job, const Words& nodes) {
  std::optional<Words> options;
  for (const std::string& node : nodes) {
    Words its = options_of(job, node, "--gpus-per-node=");
    if (options && *options != its) return std::nullopt;
    options = std::move(its);
  }
  return options;
}

Words no_gres_options() { return {"--gres=none"}; }

}  // namespace monarch
