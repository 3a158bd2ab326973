#pragma once

// BeatBook: what a beat means. Of all that workers say it makes the differences that the core is told, each of them
// once; the answer, with the leases that the host gets and the ends that it may forget; and what has to be said again.
// It keeps what hosts have said last, when each was heard, and until when each may hold a lease.
//
// What it tells the core is decided at once, between two reports of one beat, too: the next one is read by what has
// become of the job by then.
//
// Thread: the supervisor's loop; time is told by the caller. Lifetime: within the core's. It is not journalled: a
// supervisor that comes back has heard nothing.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "supervisor/core/health/liveness.h"
#include "supervisor/core/health/pause_watch.h"
#include "supervisor/core/health/term_claims.h"
#include "supervisor/core/job/job_core.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/rank.h"
#include "transport/messages/worker.h"

namespace monarch {

struct BeatBookHandlers {
  std::function<std::uint64_t(const CoreEvent&)> decide;  // the ticket of its record
  std::function<bool(std::uint64_t ticket)> is_durable;
  std::function<bool()> all_durable;                       // everything that was decided
  std::function<void(const HostVerdict&)> on_health = {};  // after the core was told
  // What is said of the host itself; before anything of the same beat about its ranks. Of a beat that comes after a
  // later one it is nothing: what was wished for then may be done since.
  std::function<void(HostId, const Beat&)> on_host = {};
  // Who gave this host has foretold the end of what runs there; likewise.
  std::function<void(HostId)> on_warned = {};
  std::function<void()> on_output = {};  // a rank has written something
  // How much a rank has written; empty where no copy is kept. A rank's output is complete for the core once it is
  // copied.
  std::function<void(const RankReport&)> on_written = {};
  // A rank asks that a checkpoint count.
  std::function<void(HostId, const RankReport&)> on_commit = {};
  // A rank that is where it should be, as a beat tells of it that was sent then on the host's clock.
  std::function<void(HostId, const RankReport&, Instant sent_at)> on_report = {};
  // A host speaks of a later term for the first time.
  std::function<void(HostId, Term)> on_claim = {};
  // What this supervisor has in hand itself says that another one of a later term has taken the job.
  std::function<bool()> has_successor = {};
  // So it is, or most of the hosts have promised that term: we are the old one.
  std::function<void(Term)> on_superseded;
};

class BeatBook {
 public:
  struct Answer {
    Ack ack;
    std::vector<Action> again;  // commands that the beat shows to be lost
  };

  BeatBook(const JobCore& core, Term term, BeatBookHandlers handlers);

  // Its next words come over another link: who speaks there has to say hello.
  void on_link(HostId host) { peers_[host.value()].greeted = false; }
  // Is it the worker that we know there that says so?
  bool is_known(HostId host, std::uint64_t incarnation) const;
  bool is_known(HostId host, const Hello& hello) const;
  // Of a worker that is known, as the others. `same_clock`: nothing has to be estimated of its clock.
  void on_hello(HostId host, const Hello& hello, bool same_clock, Instant now);
  Answer on_beat(HostId host, const Beat& beat, Instant now);
  void on_keeper_gone(HostId host);
  void on_reserved(HostId host, Reserved reserved);
  // A frame of a term that is later than ours.
  void on_later_term(HostId host, Term term, Instant now);
  // All output of this rank is copied.
  void on_copied(const Incarnation& process);

  // A host is expected to beat from now on, or no longer.
  void expect(HostId host, Instant now) { liveness_.expect(host, now); }
  // By a supervisor that has just come back: until it has had the time to dial again and be let in, its silence means
  // nothing.
  void expect_again(HostId host, Instant now);
  void stop_expecting(HostId host);
  // This host is about to be given up, or has ended: the core is told how far its ranks had come.
  void tell_steps(HostId host);

  // When hosts have to be looked at again, for their silence and for what they say of other terms.
  Instant next_look() const { return liveness_.next_deadline(); }
  void look(Instant due, Instant now);
  Instant next_claim() const { return claims_.next_deadline(); }
  void look_at_claims(Instant now);
  // A record of the journal took so long to be on the disk: a sign of this supervisor's own health.
  void note_disk(Duration took, Instant now) { liveness_.wrote(took, now); }

  // The latest end of a lease that this host may hold from us, with the margin for its clock.
  Instant grants_until(HostId host) const { return peers_[host.value()].grants_until; }
  const Liveness& liveness() const { return liveness_; }
  std::uint32_t daemon_starts(HostId host) const { return peers_[host.value()].daemon_starts; }
  // What ranks said of themselves last, for status.
  void add_progress(JobStatus& status, Instant now) const;

 private:
  struct KnownRank {
    RankReport report;
    std::uint64_t ticket = 0;  // of the record that told the core
  };
  struct Peer {
    bool greeted = false;  // a hello came over its newest link
    std::uint32_t daemon_starts = 0;
    std::uint32_t warnings = 0;
    std::uint64_t incarnation = 0;  // of its worker, whose is
    std::uint64_t newest_beat = 0;  // by the number
    std::map<RankId, KnownRank> ranks;
    std::map<RankId, RankReport> not_copied;  // as the host said it last
    Instant resent_at;
    Instant grants_until;
  };

  static std::string cut(std::string words);  // of a worker's, to fit a record of the journal
  void tell_health(const HostVerdict& verdict);
  void tell_hold();
  void distrust(HostId host);
  void cut_ports(HostId host, Reserved& reserved) const;
  bool is_newest(HostId host, const Beat& beat);
  void note_rank(HostId host, const RankReport& report);
  RankReport as_copied(HostId host, const RankReport& report);
  void note_change(HostId host, const RankReport& report);
  void keep(HostId host, const RankReport& report, RankReport& last);
  void note_step(HostId host, const RankReport& report);
  bool may_forget(HostId host, const RankReport& report, ReportOf of) const;
  Ack ack_of(HostId host, const Beat& beat) const;
  std::vector<Action> lost(HostId host, const Beat& beat, Instant now);

  const JobCore& core_;
  Term term_;
  BeatBookHandlers handlers_;
  Liveness liveness_;
  TermClaims claims_;
  PauseWatch pauses_;
  std::vector<Peer> peers_;
  std::set<Incarnation> copied_;
  Instant hold_told_;  // the end of the last hold that people were told of
};

}  // namespace monarch
