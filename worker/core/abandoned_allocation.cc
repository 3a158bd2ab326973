#include "worker/core/abandoned_allocation.h"

#include <algorithm>

#include "transport/base/text.h"

namespace monarch {

namespace {

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

bool has_line(std::string_view lines, std::string_view wanted) {
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    if (trimmed(lines.substr(0, end)) == wanted) return true;
    lines.remove_prefix(std::min(end + 1, lines.size()));
  }
  return false;
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
  facts.first_node = value_of(answer, "BatchHost");
  facts.nodes = value_of(answer, "NodeList");
  return facts;
}

std::vector<std::string> allocation_steps_query(std::uint32_t job) {
  return {"squeue", "--noheader", "--steps", text("--jobs=", job), "--format=%j"};
}

bool only_ours(std::string_view answer, const std::string& job_id) {
  while (!answer.empty()) {
    const std::size_t end = std::min(answer.find('\n'), answer.size());
    const std::string_view name = trimmed(answer.substr(0, end));
    answer.remove_prefix(std::min(end + 1, answer.size()));
    if (name.empty() || name == "batch" || name == "extern") continue;
    if (!name.starts_with(text(job_id, '.'))) return false;
  }
  return true;
}

std::vector<std::string> nodes_query(const AllocationFacts& facts) {
  return {"scontrol", "show", "hostnames", facts.nodes};
}

// What does not name this worker's node is no list of the job's.
bool lost_first_node(std::string_view answer, const AllocationFacts& facts, const std::string& node) {
  return has_line(answer, node) && !has_line(answer, facts.first_node);
}

std::vector<std::string> release_command(std::uint32_t job) { return {"scancel", text(job)}; }

AllocationFate fate_of(const AllocationFacts& facts, const std::string& node, bool first_node_is_lost) {
  if (!facts.known || !facts.running || !facts.has_script || facts.first_node.empty() || facts.nodes.empty())
    return AllocationFate::kLeave;
  if (facts.first_node == node) return AllocationFate::kLeave;  // the script is here, and ends it
  return first_node_is_lost ? AllocationFate::kRelease : AllocationFate::kWait;
}

}  // namespace monarch
