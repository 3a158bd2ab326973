#pragma once

// SlurmNodes: the launcher of a job on Slurm. It has the nodes of the job's allocation from the start, and asks for one
// more for each host on request that is to be launched; a worker's step is SlurmLauncher's. A node that was asked for
// is given back with its worker's end.
//
// Thread: the supervisor's loop. Lifetime: shorter than the loop's and the guard's.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/core/spec/placement.h"
#include "supervisor/launch/launcher.h"
#include "supervisor/launch/slurm/end_watch.h"
#include "supervisor/launch/slurm/node_requests.h"
#include "supervisor/launch/slurm/slurm_launcher.h"
#include "supervisor/launch/slurm/slurm_spec.h"
#include "supervisor/launch/slurm/slurm_watch.h"

namespace monarch {

struct SlurmNodesOptions {
  SlurmLauncherOptions steps;          // its hosts: those of the allocation, and then those on request
  const std::vector<PoolHost>& hosts;  // as they are called now
  std::size_t known = 0;               // how many of these are of the allocation
  SlurmRequest wish;
  Duration queue_limit = Duration::seconds(900);
  Duration warn;  // before the end of its time ranks are told; zero: nobody is
  OnPreempt on_preempt = OnPreempt::kStop;
};

class SlurmNodes final : public Launcher {
 public:
  SlurmNodes(EventLoop& loop, Guard& guard, SlurmNodesOptions options, LauncherHandlers handlers);

  void launch(HostId host, const Bootstrap& bootstrap) override;
  void destroy(HostId host) override;
  void begin() override { end_watch_->begin(); }

  void on_goodbye(HostId host, bool orderly) override { steps_->on_goodbye(host, orderly); }
  void on_warned(HostId host) override;
  void on_changed(const RankReport& report) override { steps_->on_changed(report); }
  void on_guard_lost() override { steps_->on_guard_lost(); }
  std::unique_ptr<Continuation> continuation(ContinuationOrder order, OnContinued then) override;

 private:
  enum class Phase : std::uint8_t {
    kUnknown,  // not asked for by this supervisor; an earlier one may have
    kAsked,    // for a node, which is not there yet
    kPlaced,   // what becomes of it is the step's launcher's to tell
    kReturning,
    kNone,  // no node is held for it
  };
  struct Requested {
    Phase phase = Phase::kUnknown;
    Bootstrap bootstrap;
    std::string node;
  };

  bool on_request(HostId host) const { return host.value() >= options_.known; }
  Requested& at(HostId host) { return requested_.at(host.value() - options_.known); }
  void on_over(const std::string& state) const;
  void on_granted(HostId host, const GrantedNode& granted);
  void on_step_ended(HostId host, std::string how, bool orderly);
  void on_seen(const std::string& node, const SeenNode& seen);
  void return_node(HostId host, std::string how, bool orderly);
  std::vector<std::string> nodes_on_request() const;
  std::vector<std::string> nodes_to_avoid() const;

  EventLoop& loop_;
  SlurmNodesOptions options_;
  LauncherHandlers handlers_;
  std::vector<Requested> requested_;
  std::vector<std::pair<std::string, Instant>> bad_;  // nodes on which a worker was lost, and when
  std::unique_ptr<SlurmLauncher> steps_;
  std::unique_ptr<NodeRequests> requests_;
  std::unique_ptr<SlurmWatch> watch_;
  std::unique_ptr<EndWatch> end_watch_;
};

}  // namespace monarch
