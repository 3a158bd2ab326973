#pragma once

// WorkerLinks: the control port. It binds each link to the host whose key opened it, turns what a beat says into the
// differences that the core is told, answers beats with leases, and sends commands, again where a beat shows that one
// was lost.
//
// Thread: the supervisor's loop. Lifetime: within the server link's and the core's.

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/health/liveness.h"
#include "supervisor/core/health/pace.h"
#include "supervisor/core/health/pause_watch.h"
#include "supervisor/core/health/term_claims.h"
#include "supervisor/core/job/job_core.h"
#include "transport/base/ids.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/message.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/zmq/link_table.h"
#include "transport/zmq/server_link.h"

namespace monarch {

// The User-Id that the ZAP handler gives a host's key.
std::string user_id_of(HostId host);
std::optional<HostId> host_of_user_id(std::string_view user_id);

struct WorkerLinksHandlers {
  std::function<std::uint64_t(const CoreEvent&)> decide;  // the ticket of its record
  std::function<bool(std::uint64_t ticket)> is_durable;
  std::function<bool()> all_durable;  // everything that was decided
  std::function<void(HostId, HostHealth, Duration silence)> on_health;
  std::function<void(HostId, const HostPressure&)> on_pressure = {};
  // Of each beat: what the host's files did not take of its ranks' output in all, and why not now.
  std::function<void(HostId, std::uint64_t lost_bytes, const std::string& failure)> on_output_lost = {};
  // Who gave this host has foretold the end of what runs there; before what the same beat says of ranks.
  std::function<void(HostId)> on_warned = {};
  std::function<void()> on_output = {};  // a rank has written something
  // How much a rank has written; empty where no copy is kept. A rank's output is complete for the core once it is
  // copied.
  std::function<void(const RankReport&)> on_written = {};
  // Ranks are about to be started there. False: not now, the next beat shows that they are missing.
  std::function<bool(HostId, const Start&)> on_start = {};
  // A rank asks that a checkpoint count.
  std::function<void(HostId, const RankReport&)> on_commit = {};
  // Of the vault of a host, as each of its beats says it; port 0: it has none.
  std::function<void(HostId, const VaultReport&)> on_vault = {};
  std::function<void(HostId, const PostReport&)> on_post = {};
  std::function<void(HostId, const InputTaken&)> on_input_taken = {};
  // A rank that is where it should be, as a beat tells of it that was sent then on the host's clock.
  std::function<void(HostId, const RankReport&, Instant sent_at)> on_report = {};
  // The hello of a worker's daemon.
  std::function<void(HostId, const Hello&)> on_greeted = {};
  // A worker's last word, which may be lost: for launchers that do not see its end themselves.
  std::function<void(HostId, const Goodbye&)> on_goodbye = {};
  // What this supervisor has in hand itself says that another one of a later term has taken the job.
  std::function<bool()> has_successor = {};
  std::function<void(Term)>
      on_superseded;  // so it is, or most of the hosts have promised that term: we are the old one
};

struct LinkDrops {
  std::uint64_t foreign_job = 0;
  std::uint64_t foreign_worker = 0;  // of one that was launched before, and is not proven to have ended
  std::uint64_t malformed = 0;
  std::uint64_t forged = 0;
  std::uint64_t stale_link = 0;
  std::uint64_t later_term = 0;  // said for a supervisor that would have come after this one
};

class WorkerLinks {
 public:
  // `boot_id` is this machine's.
  WorkerLinks(EventLoop& loop, ServerLink& link, JobCore& core, Term term, std::string boot_id,
              WorkerLinksHandlers handlers);
  ~WorkerLinks();
  WorkerLinks(const WorkerLinks&) = delete;
  WorkerLinks& operator=(const WorkerLinks&) = delete;

  void on_message(InboundMessage&& message);
  // False: the host has no link, or its queue is full. What is lost is not kept: the next beat shows what is missing.
  template <class Message>
  bool send(HostId host, const Message& message) {
    return send(host, number_of<Message>(), encode_payload(message));
  }
  // As soon as it is the host's turn: of many hosts only so many start ranks at a time as tell of them in time.
  bool send(HostId host, const Start& start);
  // One of the core's that has a message for a host. Best effort, too.
  void perform(const Action& action);
  // How many of them are on hosts that took it; for the others it is not kept.
  std::size_t signal(const std::vector<RankId>& ranks, int number, std::optional<SignalTo> to);

  // All output of this rank is copied.
  void on_copied(const Incarnation& process);

  // The latest end of a lease that this host may hold from us, with the margin for its clock.
  Instant grants_until(HostId host) const { return peers_[host.value()].grants_until; }

  // A host is expected to beat from now on, or no longer.
  void expect(HostId host);
  // By a supervisor that has just come back: until it has had the time to dial again and be let in, its silence means
  // nothing.
  void expect_again(HostId host);
  void stop_expecting(HostId host);

  // This host is about to be given up, or has ended: the core is told how far its ranks had come.
  void tell_steps(HostId host);

  // A record of the journal took so long to be on the disk: a sign of this supervisor's own health.
  void note_disk(Duration took) { liveness_.wrote(took, loop_.now()); }

  // What ranks said of themselves last, for status.
  void add_progress(JobStatus& status) const;

  const Liveness& liveness() const { return liveness_; }
  const LinkDrops& drops() const { return drops_; }
  std::uint32_t daemon_starts(HostId host) const { return peers_[host.value()].daemon_starts; }
  // As its last beat said.
  std::optional<HostPressure> pressure(HostId host) const { return peers_[host.value()].pressure; }

 private:
  struct KnownRank {
    RankReport report;
    std::uint64_t ticket = 0;  // of the record that told the core
  };
  struct Peer {
    bool greeted = false;  // a hello came over its newest link
    bool forged = false;   // it was told in the log
    std::uint32_t daemon_starts = 0;
    std::uint32_t warnings = 0;
    std::optional<HostPressure> pressure;
    std::map<RankId, KnownRank> ranks;
    std::map<RankId, RankReport> not_copied;  // as the host said it last
    Instant resent_at;
    std::deque<Start> to_start;                             // in their order, until its turn
    std::optional<std::pair<MeshId, Generation>> starting;  // told of, and not seen in a beat
    Instant grants_until;
    std::uint64_t next_seq = 1;
  };

  void on_later_term(HostId host, Term term);
  void distrust(HostId host);
  void watch_claims();
  bool is_known(HostId host, std::uint64_t incarnation);
  void on_goodbye(HostId host, const Goodbye& goodbye);
  void on_keeper_gone(HostId host, const KeeperGone& gone);
  void cut_ports(HostId host, Reserved& reserved) const;
  void on_hello(HostId host, const Hello& hello);
  void on_beat(HostId host, const Beat& beat);
  void on_reserved(HostId host, Reserved reserved);
  void start_some();
  bool start_now(HostId host);
  void note_started(HostId host, const Beat& beat);
  bool send(HostId host, std::uint16_t type, std::string payload);
  void note_rank(HostId host, const RankReport& report);
  RankReport as_copied(HostId host, const RankReport& report);
  void note_change(HostId host, const RankReport& report);
  void note_step(HostId host, const RankReport& report);
  Ack ack_of(HostId host, const Beat& beat) const;
  void resend_lost(HostId host, const Beat& beat);
  void tell_hold();
  void watch_health();

  EventLoop& loop_;
  ServerLink& link_;
  JobCore& core_;
  Term term_;
  std::string boot_id_;
  WorkerLinksHandlers handlers_;
  LinkTable table_;
  Liveness liveness_;
  TermClaims claims_;
  PauseWatch pauses_;
  LinkDrops drops_;
  std::vector<Peer> peers_;
  std::set<Incarnation> copied_;
  Pace starts_;
  TimerId start_timer_ = 0;
  TimerId health_timer_ = 0;
  TimerId claims_timer_ = 0;
  Instant hold_told_;  // the end of the last hold that people were told of
};

}  // namespace monarch
