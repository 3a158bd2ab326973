#pragma once

// NodeRequests: asks Slurm for single nodes, each by a job of its own that only holds it, and gives them back. An
// answer that was lost is looked for by the request's token before anything is asked again; what is not granted within
// a time is refused here. It remembers no job of an earlier supervisor, and finds each by its token.
//
// Thread: the supervisor's loop. Lifetime: shorter than that of its calls and the loop; what is asked then stays with
// Slurm.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/state/launch_failure.h"
#include "supervisor/launch/slurm/slurm_calls.h"
#include "supervisor/launch/slurm/slurm_requests.h"
#include "supervisor/launch/slurm/slurm_spec.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"

namespace monarch {

struct NodeRequestsOptions {
  std::string uuid;  // of our job
  std::string name;  // of Slurm's jobs
  Term term;
  std::uint32_t like = 0;  // the job of Slurm's that has nodes like those
  SlurmRequest wish;
  Words environment;
  Duration limit = Duration::seconds(900);  // in the queue
};

struct GrantedNode {
  std::uint32_t job = 0;
  std::string node;
  Duration waited;
};

// None is told within a call of the owner's.
struct NodeRequestsHandlers {
  std::function<void(HostId, GrantedNode)> on_granted;
  std::function<void(HostId, LaunchFailure)> on_refused;  // final; give_back() ends what may be left of it
  std::function<void(HostId, std::string)> on_waiting;    // for people, as often as the reason changes
};

class NodeRequests {
 public:
  NodeRequests(EventLoop& loop, SlurmCalls& calls, NodeRequestsOptions options, NodeRequestsHandlers handlers);
  NodeRequests(const NodeRequests&) = delete;
  NodeRequests& operator=(const NodeRequests&) = delete;
  ~NodeRequests();

  // A node, none of these. Nothing is asked for this host now.
  void ask(HostId host, std::vector<std::string> exclude);
  // Whatever was asked for this host, by an earlier supervisor too, ends; then `then` is told, as soon as Slurm has
  // said so.
  void give_back(HostId host, std::function<void()> then);
  // The node that was granted for this host, also to an earlier supervisor; nothing: none is.
  void find(HostId host, std::function<void(std::optional<GrantedNode>)> then);

 private:
  enum class Step : std::uint8_t {
    kNone,
    kAsking,   // sbatch runs, or what comes before it
    kUnsure,   // it is not known whether there is a job
    kQueued,   // there is
    kGranted,  // and it has its node
    kReturning,
  };
  struct Request {
    Step step = Step::kNone;
    RequestToken token;
    std::uint32_t job = 0;
    std::vector<std::string> exclude;
    Instant asked;
    std::string told;          // the last reason
    std::uint32_t unseen = 0;  // how often squeue did not know the job
    std::uint32_t tries = 0;
    std::uint32_t submitting = 0;  // calls of sbatch that have not come back
    TimerId retry = 0;
    TimerId deadline = 0;
    std::vector<std::function<void()>> on_returned;
    std::vector<std::function<void(std::optional<GrantedNode>)>> on_found;
  };

  void submit(HostId host);
  void order(HostId host, const SlurmJobFacts& like);
  void on_submitted(HostId host, std::uint32_t number, const Result<std::string>& answer);
  void unsure(HostId host, const Error& why);
  void try_later(HostId host, const std::string& why);
  void refuse(HostId host, std::string message);
  void poll_soon();
  void poll();
  void on_jobs(const Result<std::string>& answer);
  void note(HostId host, const std::vector<RequestedJob>& jobs);
  void note_queued(HostId host, const std::vector<RequestedJob>& jobs);
  void cancel_older(HostId host, const std::vector<RequestedJob>& jobs);
  void cancel(std::uint32_t job);
  void note_returning(HostId host, const std::vector<RequestedJob>& jobs);
  void stop_timers(Request& request);
  std::string limit_message(const Request& request) const;
  bool wants_a_look(const Request& request) const;
  template <class Then>
  void call(Words command, Then then);

  EventLoop& loop_;
  SlurmCalls& calls_;
  NodeRequestsOptions options_;
  NodeRequestsHandlers handlers_;
  std::map<HostId, Request> requests_;
  std::uint32_t numbers_ = 0;
  TimerId next_poll_ = 0;
  Duration pause_;
  bool polling_ = false;
  bool poll_again_ = false;  // somebody came while one was on its way
  // Owner: this. Calls on their way ask whether it is still there.
  Scope scope_;
};

}  // namespace monarch
