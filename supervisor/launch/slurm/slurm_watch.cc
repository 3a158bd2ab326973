#include "supervisor/launch/slurm/slurm_watch.h"

#include <algorithm>
#include <array>
#include <utility>

#include "supervisor/core/spec/hostlist.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

NodeSight sight_of(std::string_view state) {
  const auto has = [state](const char* part) { return state.find(part) != std::string_view::npos; };
  if (has("down")) return NodeSight::kDown;
  return has("drain") || has("fail") ? NodeSight::kDraining : NodeSight::kWell;
}

}  // namespace

Words nodes_query(const std::vector<std::string>& nodes, const Words& environment) {
  return in_environment(environment,
                        {"sinfo", "--noheader", "--Node", text("--nodes=", join(nodes, ",")), "--format=%N|%T|%E"});
}

std::map<std::string, SeenNode> read_nodes(std::string_view answer) {
  std::map<std::string, SeenNode> nodes;
  while (!answer.empty()) {
    std::string_view line = answer.substr(0, answer.find('\n'));
    answer.remove_prefix(std::min(line.size() + 1, answer.size()));
    const std::string_view node = take_column(line);
    const std::string_view state = take_column(line);
    if (node.empty() || state.empty()) continue;
    const bool told = !line.empty() && line != "none";
    // A node of several partitions has a line in each.
    nodes[std::string(node)] = {sight_of(state), text(printable(state), told ? ": " : "", told ? printable(line) : "")};
  }
  return nodes;
}

SlurmWatch::SlurmWatch(EventLoop& loop, SlurmCalls& calls, SlurmWatchOptions options, SlurmWatchHandlers handlers)
    : loop_(loop), calls_(calls), options_(std::move(options)), handlers_(std::move(handlers)) {
  next_ = loop_.at(loop_.now(), [this] { look(); });
}

SlurmWatch::~SlurmWatch() { loop_.cancel(next_); }

void SlurmWatch::look() {
  next_ = 0;
  calls_.call(job_state_query(options_.job, options_.environment),
              scope_.guard([this](const Result<std::string>& answer) { on_job(answer); }));
}

void SlurmWatch::on_job(const Result<std::string>& answer) {
  if (answer.ok()) {
    const SlurmJobWord job = read_job_state(*answer, options_.job);
    const auto nodes = expand_hostlist(job.nodes);
    if (job.state == SlurmJobState::kRunning && nodes.ok()) {
      left_.clear();
      for (const std::string& node : options_.nodes) {
        if (std::find(nodes->begin(), nodes->end(), node) == nodes->end()) left_.push_back(node);
      }
    }
  }
  handlers_.on_job(answer);
  std::vector<std::string> all = options_.nodes;
  for (std::string& node : handlers_.more_nodes()) all.push_back(std::move(node));
  calls_.call(nodes_query(all, options_.environment),
              scope_.guard([this](const Result<std::string>& seen) { on_nodes(seen); }));
}

// A controller that does not answer has changed nothing.
void SlurmWatch::on_nodes(const Result<std::string>& answer) {
  look_later();
  if (!answer.ok()) return;
  for (auto& [node, seen] : read_nodes(*answer)) {
    const bool left = std::find(left_.begin(), left_.end(), node) != left_.end();
    if (left) seen = {NodeSight::kDown, text("no node of job ", options_.job, " any more, and ", seen.words)};
    tell(node, seen);
  }
}

void SlurmWatch::tell(const std::string& node, const SeenNode& seen) {
  if (seen.sight != NodeSight::kWell) {
    told_[node] = seen;
  } else if (told_.erase(node) == 0) {
    return;
  }
  handlers_.on_node(node, seen);
}

void SlurmWatch::look_later() {
  next_ = loop_.at(loop_.now() + options_.every, [this] { look(); });
}

}  // namespace monarch
