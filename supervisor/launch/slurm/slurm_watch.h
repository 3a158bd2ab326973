#pragma once

// SlurmWatch: looks now and then at what Slurm makes of our job and its nodes, which nobody is told otherwise: that the
// job is over or another one has its number, that a node is drained, or down, or the job's no longer. A node that is
// down for Slurm may be well; what is on it ends when its slurmd comes back.
//
// Thread: the supervisor's loop. Lifetime: shorter than that of its calls and the loop.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/launch/launcher.h"
#include "supervisor/launch/slurm/slurm_calls.h"
#include "supervisor/launch/slurm/slurm_commands.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"

namespace monarch {

Words nodes_query(const std::vector<std::string>& nodes, const Words& environment);
// {node: what is seen of it}; lines that are none are passed over.
std::map<std::string, SeenNode> read_nodes(std::string_view answer);

struct SlurmWatchOptions {
  std::uint32_t job = 0;
  std::vector<std::string> nodes;  // that the job had at its start
  Words environment;
  Duration every = Duration::seconds(10);
};

struct SlurmWatchHandlers {
  std::function<void(const Result<std::string>& state)> on_job;  // the answer to job_state_query()
  std::function<void(const std::string& node, const SeenNode&)>
      on_node;                                           // each time, of all that are not well, and those that were not
  std::function<std::vector<std::string>()> more_nodes;  // of other jobs of Slurm
};

class SlurmWatch {
 public:
  SlurmWatch(EventLoop& loop, SlurmCalls& calls, SlurmWatchOptions options, SlurmWatchHandlers handlers);
  SlurmWatch(const SlurmWatch&) = delete;
  SlurmWatch& operator=(const SlurmWatch&) = delete;
  ~SlurmWatch();

 private:
  void look();
  void on_job(const Result<std::string>& answer);
  void on_nodes(const Result<std::string>& answer);
  void tell(const std::string& node, const SeenNode& seen);
  void look_later();

  EventLoop& loop_;
  SlurmCalls& calls_;
  SlurmWatchOptions options_;
  SlurmWatchHandlers handlers_;
  TimerId next_ = 0;
  std::vector<std::string> left_;         // nodes that the job has no longer
  std::map<std::string, SeenNode> told_;  // those that are not well
  // Owner: this. Calls on their way ask whether it is still there.
  Scope scope_;
};

}  // namespace monarch
