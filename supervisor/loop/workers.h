#pragma once

// Workers: the supervisor's side of its workers: the ports at which they call, their links, what they report of ranks,
// output, checkpoints and stacks.
//
// Thread: the process's main thread. Lifetime: within that of what it shares.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/core/health/output_losses.h"
#include "supervisor/loop/shared.h"
#include "supervisor/workers/claim_desk.h"
#include "supervisor/workers/commit_desk.h"
#include "supervisor/workers/hang_watch.h"
#include "supervisor/workers/input_desk.h"
#include "supervisor/workers/output_relay.h"
#include "supervisor/workers/roster_desk.h"
#include "supervisor/workers/stack_dumps.h"
#include "supervisor/workers/vault_desk.h"
#include "supervisor/workers/worker_links.h"
#include "transport/loop/inbox.h"
#include "transport/zmq/descriptor_watch.h"
#include "transport/zmq/zap.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {

struct WorkersHandlers {
  std::function<void(const HostVerdict&)> on_health;
  std::function<void(HostId, const HostPressure&)> on_pressure;
  std::function<void(HostId)> on_warned;
  std::function<void(HostId, std::int32_t daemon_pid)> on_greeted;
  std::function<void(HostId, bool orderly)> on_goodbye;
  std::function<void()> on_output;  // something of a rank's came
};

// Its members are destroyed in the reverse order, sockets before their context.
class Workers {
 public:
  Workers(Shared& shared, WorkersHandlers handlers) : shared_(shared), handlers_(std::move(handlers)) {}

  // Errors of ports that the spec names are its author's to mend, unless somebody else has them for now: ports_taken().
  Status open();
  bool ports_taken() const { return ports_taken_; }
  void attach(ZmqLoop& loop);

  const KnownPorts& ports() const { return ports_; }
  // As those of the ports are: at every address that hosts reach, or at loopback's.
  ServerOptions port_options(std::uint16_t known) const;
  const CurveKeyPair& keys() const { return *keys_; }
  // Of the ports: who opens and closes them from then on.
  std::vector<ListenerDoor> take_doors() { return std::move(doors_); }
  const std::vector<ListenerDoor>& doors() const { return doors_; }

  // The table follows from the core's state: whose key is known and who has not ended may connect. At the end of this
  // turn, once for all that came in it.
  void publish_keys();
  // A decision has this ticket.
  void changed(std::uint64_t ticket);
  // What is announced.
  void told(const JobEvent& event);
  void perform(const Action& action) { links_->perform(action); }
  void add_to(JobStatus& status) const;
  // As RosterDesk's; an error where no host of the job has a post.
  Status when_served(std::uint64_t viewer, std::function<void()> then);
  void viewer_left(std::uint64_t viewer);
  // Into a verdict: what was lost, and a rank's last words.
  void complete(Verdict& verdict) const;

  WorkerLinks& links() { return *links_; }
  OutputRelay& relay() { return *relay_; }
  HangWatch& hangs() { return *hangs_; }
  StackDumps& stacks() { return *stacks_; }
  InputDesk& input() { return *input_; }

 private:
  void publish_keys_now();
  Status open_stacks();
  void open_input();
  Status open_relay(std::unique_ptr<ServerLink> bulk_link);
  int kept_listener(std::size_t which, std::uint16_t port) const;
  Error port_error(const Error& error);
  BeatBookHandlers beat_handlers();
  WorkerLinksHandlers links_handlers();
  std::function<void(const RankReport&)> written_handler();
  std::function<void(HostId, const RankReport&)> commit_handler();
  std::function<void(HostId, const VaultReport&)> vault_handler();
  std::function<void(HostId, const PostReport&, Instant sent_at)> post_handler();
  void dump_stacks(RankId rank, const std::function<void(std::string)>& then);
  void make_claim_desk();
  void on_post_ended(HostId host, const std::string& how);
  void on_output_lost(HostId host, std::uint64_t bytes, const std::string& failure);

  Shared& shared_;
  WorkersHandlers handlers_;
  KnownPorts ports_;
  bool ports_taken_ = false;  // those that the spec names, by somebody else
  std::optional<CurveKeyPair> keys_;
  bool keys_are_due_ = false;
  std::unique_ptr<ZmqContext> context_;
  std::unique_ptr<ZapHandler> zap_;
  std::unique_ptr<ServerLink> control_link_;
  std::unique_ptr<HangWatch> hangs_;
  std::unique_ptr<CommitDesk> commits_;
  std::unique_ptr<VaultDesk> vaults_;   // nothing: no checkpoints are kept in memory
  std::unique_ptr<RosterDesk> roster_;  // nothing: nobody calls in this job
  std::unique_ptr<ClaimDesk> claims_;   // likewise
  std::uint64_t posts_ended_ = 0;       // that this supervisor has heard of
  std::unique_ptr<WorkerLinks> links_;
  std::unique_ptr<InputDesk> input_;
  std::unique_ptr<WatchedInbox<StacksCame>> stacks_came_;  // of the relay's thread
  std::unique_ptr<StackDumps> stacks_;
  std::unique_ptr<WatchedInbox<Incarnation>> copied_;  // of the relay's thread; nothing: no copy is kept
  std::unique_ptr<OutputRelay> relay_;
  OutputLosses losses_;
  std::string copy_failure_;  // that was told
  std::vector<ListenerDoor> doors_;
};

}  // namespace monarch
