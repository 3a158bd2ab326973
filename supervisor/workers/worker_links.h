#pragma once

// WorkerLinks: the control port. It binds each link to the host whose key opened it, gives what comes over it to the
// BeatBook, which knows what it means, and sends answers and commands.
//
// Thread: the supervisor's loop. Lifetime: within the server link's and the core's.

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/beats/beat_book.h"
#include "supervisor/core/health/pace.h"
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
  BeatBookHandlers beats = {};  // on_host and on_claim are WorkerLinks' own
  std::function<void(HostId, const HostPressure&)> on_pressure = {};
  // Of each beat: what the host's files did not take of its ranks' output in all, and why not now.
  std::function<void(HostId, std::uint64_t lost_bytes, const std::string& failure)> on_output_lost = {};
  // Ranks are about to be started there. False: not now, the next beat shows that they are missing.
  std::function<bool(HostId, const Start&)> on_start = {};
  // Of the vault of a host, as each of its beats says it; port 0: it has none.
  std::function<void(HostId, const VaultReport&)> on_vault = {};
  std::function<void(HostId, const PostReport&, Instant sent_at)> on_post = {};  // by its host's clock
  std::function<void(HostId, const InputTaken&)> on_input_taken = {};
  // The hello of a worker's daemon.
  std::function<void(HostId, const Hello&)> on_greeted = {};
  // A worker's last word, which may be lost: for launchers that do not see its end themselves.
  std::function<void(HostId, const Goodbye&)> on_goodbye = {};
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
  void on_copied(const Incarnation& process) { book_.on_copied(process); }

  // As BeatBook's.
  void expect(HostId host);
  void expect_again(HostId host);
  void stop_expecting(HostId host);
  void tell_steps(HostId host) { book_.tell_steps(host); }
  void note_disk(Duration took) { book_.note_disk(took, loop_.now()); }
  void add_progress(JobStatus& status) const { book_.add_progress(status, loop_.now()); }
  const Liveness& liveness() const { return book_.liveness(); }
  std::uint32_t daemon_starts(HostId host) const { return book_.daemon_starts(host); }

  const LinkDrops& drops() const { return drops_; }
  // As its last beat said.
  std::optional<HostPressure> pressure(HostId host) const { return peers_[host.value()].pressure; }
  // Of the host's post, as its hello said; empty: it has said of none.
  const std::string& door(HostId host) const { return peers_[host.value()].door; }

 private:
  struct Peer {
    bool forged = false;  // it was told in the log
    std::optional<HostPressure> pressure;
    std::string door;
    std::deque<Start> to_start;                             // in their order, until its turn
    std::optional<std::pair<MeshId, Generation>> starting;  // told of, and not seen in a beat
    std::uint64_t next_seq = 1;
  };

  BeatBookHandlers book_handlers(BeatBookHandlers handlers);
  bool bind(const InboundMessage& message, HostId host, const FrameHeader& header);
  bool is_known(HostId host, std::uint64_t incarnation);
  void on_goodbye(HostId host, const Goodbye& goodbye);
  void on_keeper_gone(HostId host, const KeeperGone& gone);
  void on_hello(HostId host, const Hello& hello);
  void on_beat(HostId host, const Beat& beat);
  void on_host(HostId host, const Beat& beat);
  void start_some();
  bool start_now(HostId host);
  void note_started(HostId host, const Beat& beat);
  bool send(HostId host, std::uint16_t type, std::string payload);
  void watch_health();
  void watch_claims();

  EventLoop& loop_;
  ServerLink& link_;
  JobCore& core_;
  Term term_;
  std::string boot_id_;
  WorkerLinksHandlers handlers_;
  BeatBook book_;
  LinkTable table_;
  LinkDrops drops_;
  std::vector<Peer> peers_;
  Pace starts_;
  TimerId start_timer_ = 0;
  TimerId health_timer_ = 0;
  TimerId claims_timer_ = 0;
};

}  // namespace monarch
