#pragma once

// OutputRelay: the bulk port. It passes pieces of the ranks' output from workers to the viewers that asked for it. Best
// effort: what a viewer does not take in time is dropped and counted; each piece names its offset, and the viewer reads
// what it missed from the rank's file. A host speaks for the ranks and generations that were started on it, as it was
// told or the journal has it: what it says of another is dropped and counted, and told once.
//
// Where hosts share no disk with the supervisor it feeds an OutputCopy as well, and viewers read that. What no file
// took goes to viewers, too, and of stderr the end of it is kept here, for the cause of a failure.
//
// The stacks that workers were asked for come here too; they go to the supervisor's loop.
//
// Thread: start(), add_viewer(), written() and counters() from the supervisor's loop; it runs a thread of its own, so
// that a flood of output, or a slow disk under a copy, never delays a beat. Lifetime: within the context's and the
// inbox's.

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/state/actions.h"
#include "supervisor/core/state/past_places.h"
#include "supervisor/workers/output_copy.h"
#include "supervisor/workers/verdict.h"
#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/inbox.h"
#include "transport/loop/loop_thread.h"
#include "transport/messages/rank.h"
#include "transport/messages/stacks.h"
#include "transport/zmq/server_link.h"

namespace monarch {

struct StacksCame {
  Incarnation process;
  Stacks stacks;
};

// Who speaks for these ranks at these generations from now on, wherever their slots go.
struct RanksStarted {
  HostId host;
  Generation first;
  Generation last;
  std::vector<RankId> ranks;
};

struct OutputRelayOptions {
  JobUuid job;
  std::size_t meshes = 0;                      // of the spec: of those alone viewers are shown anything
  std::vector<RanksStarted> started = {};      // before this supervisor
  std::optional<OutputCopyOptions> copy = {};  // nothing: the hosts' files are ours
  Inbox<StacksCame>* stacks = nullptr;         // what does not fit is as good as never said
  Inbox<Incarnation>* copied = nullptr;        // of a copy; what does not fit is told again when it is asked for again
};

// Of a gang, or a standby, that was started before: who speaks for each of its ranks (in order, as many on each host)
// up to its newest generation.
std::vector<RanksStarted> started_before(const std::vector<PastPlace>& places, Generation newest,
                                         const std::vector<RankId>& ranks);
// All that was started: of gangs, standbys, and what warms spares.
std::vector<RanksStarted> started_before(const JobCore& core);

class OutputRelay {
 public:
  // Of a rank, the newest entries: what is older than those has been copied long since.
  static constexpr std::size_t kGenerationsKept = 8;

  static constexpr std::size_t kTailsKept = 64;  // of ranks whose host's disk is full, those that wrote last

  static Result<std::unique_ptr<OutputRelay>> start(std::unique_ptr<ServerLink> link, OutputRelayOptions options);
  // Before its START is sent. kBusy: it has to be said again.
  Status started(std::vector<RanksStarted> started);
  Status started(HostId host, const Start& start);
  OutputRelay(const OutputRelay&) = delete;
  OutputRelay& operator=(const OutputRelay&) = delete;

  // A connected SEQPACKET socket whose peer was checked; the viewer hears Accepted first.
  Status add_viewer(UniqueFd socket);
  // For the copy: how much a rank has written. False: too much waits already; say it again with the next beat.
  bool written(const OutputWritten& written) { return thread_->put(written); }
  // Pieces that some viewer has to read from the file.
  std::uint64_t dropped_pieces() const { return counters_->dropped.load(std::memory_order_relaxed); }
  // What a rank wrote to its stderr last and no file took, and where its place is.
  UnkeptTail unkept_tail(RankId rank, std::uint64_t generation) const;
  // Why the copy is not written now; empty: it is, or there is none.
  std::string copy_failure() const;
  LinkCounters link_counters() const;
  std::uint64_t foreign_job() const { return counters_->foreign_job.load(std::memory_order_relaxed); }
  // Hosts that have said something of what was not started there, since the last such question; each once.
  std::vector<HostId> newly_refused();
  // Such pieces.
  std::uint64_t forged_pieces() const { return counters_->forged.load(std::memory_order_relaxed); }

 private:
  struct Counters {
    std::atomic<std::uint64_t> dropped = 0;
    std::atomic<std::uint64_t> forged = 0;
    std::atomic<std::uint64_t> malformed = 0;
    std::atomic<std::uint64_t> foreign_job = 0;
    PublishedCounters link;
  };
  struct Unkept {
    Incarnation process;
    UnkeptTail tail;
  };
  // What the thread finds out and the supervisor asks for.
  struct Findings {
    std::mutex mutex;
    std::list<Unkept> tails;  // the newest first
    std::vector<HostId> refused;
    std::string copy_failure;
  };
  using Command = std::variant<UniqueFd, OutputWritten, std::vector<RanksStarted>>;
  class Worker;
  OutputRelay() = default;

  std::unique_ptr<Counters> counters_;
  std::unique_ptr<Findings> findings_;
  std::unique_ptr<LoopThread<Command>> thread_;
};

}  // namespace monarch
