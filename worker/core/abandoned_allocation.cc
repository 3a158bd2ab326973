#include "worker/core/abandoned_allocation.h"

#include <algorithm>
#include <charconv>

#include "transport/base/text.h"

namespace monarch {

namespace {

// Of a step's workers, those that look whether there is one before them.
constexpr std::size_t kMostLook = 8;

constexpr std::string_view kBlanks = " \t\r\n";

std::string_view trimmed(std::string_view words) {
  const std::size_t first = words.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  return words.substr(first, words.find_last_not_of(kBlanks) - first + 1);
}

// The value of `key=` that begins a word; without blanks, which of these none has.
std::string_view value_of(std::string_view answer, std::string_view key) {
  for (std::size_t at = answer.find(key); at != std::string_view::npos; at = answer.find(key, at + 1)) {
    const bool begins = at == 0 || kBlanks.find(answer[at - 1]) != std::string_view::npos;
    if (!begins || at + key.size() >= answer.size() || answer[at + key.size()] != '=') continue;
    const std::string_view rest = answer.substr(at + key.size() + 1);
    return rest.substr(0, rest.find_first_of(kBlanks));
  }
  return {};
}

std::vector<std::string_view> lines_of(std::string_view answer) {
  std::vector<std::string_view> lines;
  while (!answer.empty()) {
    const std::size_t end = std::min(answer.find('\n'), answer.size());
    if (const std::string_view line = trimmed(answer.substr(0, end)); !line.empty()) lines.push_back(line);
    answer.remove_prefix(std::min(end + 1, answer.size()));
  }
  return lines;
}

}  // namespace

std::vector<std::string> allocation_query(std::uint32_t job) {
  return {"scontrol", "--oneliner", "show", "job", text(job)};
}

AllocationFacts read_allocation(std::string_view answer, std::uint32_t job) {
  AllocationFacts facts;
  facts.known = value_of(answer, "JobId") == text(job);
  if (!facts.known) return facts;
  facts.running = value_of(answer, "JobState") == "RUNNING";
  facts.has_script = value_of(answer, "BatchFlag") == "1";
  facts.is_ours = value_of(answer, "Comment") == "monarch";
  facts.is_array = !value_of(answer, "ArrayJobId").empty();
  facts.first_node = value_of(answer, "BatchHost");
  facts.nodes = value_of(answer, "NodeList");
  return facts;
}

std::vector<std::string> nodes_query(const AllocationFacts& facts) {
  return {"scontrol", "show", "hostnames", facts.nodes};
}

std::set<std::string> read_nodes(std::string_view answer) {
  const auto lines = lines_of(answer);
  return {lines.begin(), lines.end()};
}

std::vector<std::string> allocation_steps_query(std::uint32_t job) {
  return {"squeue", "--noheader", "--steps", text("--jobs=", job), "--format=%i|%N|%j"};
}

// "12.3|h2|hello-3fa2.h2"; Slurm's own are "12.batch" and "12.extern".
std::vector<AllocationStep> read_allocation_steps(std::string_view answer) {
  std::vector<AllocationStep> steps;
  for (const std::string_view line : lines_of(answer)) {
    const std::size_t node = line.find('|');
    const std::size_t name = line.find('|', std::min(node, line.size() - 1) + 1);
    const std::string_view id = line.substr(0, node);
    const std::string_view digits = id.substr(std::min(id.find('.'), id.size() - 1) + 1);
    AllocationStep step;
    const auto [stopped, error] = std::from_chars(digits.data(), digits.data() + digits.size(), step.number);
    if (digits == "batch" || digits == "extern") continue;
    // What cannot be read is a step all the same, and none of ours.
    if (error == std::errc() && stopped == digits.data() + digits.size() && name != std::string_view::npos) {
      step.nodes = trimmed(line.substr(node + 1, name - node - 1));
      step.name = trimmed(line.substr(name + 1));
    }
    steps.push_back(std::move(step));
  }
  return steps;
}

// A worker is known by its command line (marks.h). The bracket keeps the search from finding itself.
std::vector<std::string> others_query(const OthersLook& look) {
  std::string list;
  for (const std::string& node : look.nodes) list += text(list.empty() ? "" : ",", node);
  std::vector<std::string> words = {"/usr/bin/env"};
  if (!look.slurm_conf.empty()) words.push_back(text("SLURM_CONF=", look.slurm_conf));
  const std::vector<std::string> command = {
      "srun",
      text("--jobid=", look.job),
      "--overlap",
      text("--nodes=", look.nodes.size()),
      text("--ntasks=", look.nodes.size()),
      "--ntasks-per-node=1",
      text("--nodelist=", list),
      text("--job-name=", look.job_id, ".+look"),
      "--mem=0",
      "--gres=none",
      "--mpi=none",
      "--cpu-bind=none",
      "--chdir=/",
      "/bin/sh",
      "-c",
      text("if cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -q -e '[-]-job ", look.job_uuid,
           "'; then echo worker; fi")};
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

std::set<std::string> others_of(const AllocationView& view) {
  std::set<std::string> others;
  for (const std::string& node : view.step_nodes) {
    if (node != view.node && view.nodes.contains(node)) others.insert(node);
  }
  return others;
}

std::set<std::string> before_of(const AllocationFacts& facts, const AllocationView& view) {
  std::set<std::string> others = others_of(view);
  others.erase(facts.first_node);
  return {others.begin(), others.lower_bound(view.node)};
}

std::vector<std::string> release_command(std::uint32_t job) { return {"scancel", text(job)}; }

AllocationFate fate_of(const AllocationFacts& facts, const std::string& node) {
  const bool known = facts.known && facts.running && !facts.first_node.empty() && !facts.nodes.empty();
  if (!known || !facts.has_script || !facts.is_ours || facts.is_array) return AllocationFate::kLeave;
  if (facts.first_node == node) return AllocationFate::kLeave;  // the script is here, and ends it
  return AllocationFate::kWait;
}

AllocationFate fate_of(const AllocationFacts& facts, const AllocationView& view) {
  if (fate_of(facts, view.node) == AllocationFate::kLeave) return AllocationFate::kLeave;
  // What does not name this worker's node is no list of the job's.
  if (!view.nodes.contains(view.node)) return AllocationFate::kWait;
  // Who leaves it to another one does so before the first node is given up, and is not waited for by that one.
  const std::size_t before = before_of(facts, view).size();
  if (before > kMostLook) return AllocationFate::kLeave;
  if (before > 0 && !view.none_before) return AllocationFate::kLookBefore;
  if (view.nodes.contains(facts.first_node)) return AllocationFate::kWait;
  AllocationFate fate = AllocationFate::kRelease;
  for (const AllocationStep& step : view.steps) {
    if (!step.name.starts_with(text(view.job_id, '.'))) return AllocationFate::kLeave;
    // A step is listed until its node has said that it ended, which one that is lost never does; one of many nodes
    // until all have.
    const bool lost = step.nodes.find_first_of("[,") == std::string::npos && !view.nodes.contains(step.nodes);
    if (step.number == view.step || lost) continue;
    if (step.number < view.step) return AllocationFate::kLeave;
    fate = AllocationFate::kWait;
  }
  const std::set<std::string> others = others_of(view);
  if (others.empty()) return fate;
  return fate == AllocationFate::kRelease ? AllocationFate::kLook : fate;
}

}  // namespace monarch
