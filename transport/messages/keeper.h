#pragma once

// What a keeper and the process that it guards (a worker's daemon, a supervisor) say to each other, over a socketpair;
// orders about ranks (rank.h) and stacks (stacks.h) travel there as well.
//
// Thread: values.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/message.h"
#include "transport/messages/rank.h"

namespace monarch {

// ---- keeper → guarded process ----

// The keeper's first frame to every guarded process that it starts. With a stash, its memfd comes along as the
// descriptor.
struct KeeperHello {
  std::uint64_t incarnation = 0;  // of the keeper
  std::int32_t keeper_pid = 0;
  std::uint32_t starts = 1;  // which start of the guarded process this is
  bool has_stash = false;
  std::vector<RankReport> ranks;  // adopted; KeeperPipes follow for each whose pipes are open
  std::vector<RankId> spawned;    // processes of KeeperSpawn that live
  std::uint32_t warnings = 0;     // as in KeeperWarned
};
MONARCH_MESSAGE(KeeperHello, 48, incarnation, keeper_pid, starts, has_stash, ranks, spawned, warnings)

// Two descriptors: the read ends of the rank's stdout and stderr. Header: rank and generation.
struct KeeperPipes {
  std::string mesh_name;
  std::uint64_t log_max_bytes = 0;
  std::uint16_t ready_port = 0;        // not 0: the rank is ready once this port accepts a connection
  std::optional<Incarnation> standby;  // whose pipes they were: what comes from now on is this rank's
};
MONARCH_MESSAGE(KeeperPipes, 49, mesh_name, log_max_bytes, ready_port, standby)

struct KeeperPing {
  std::uint64_t number = 0;
};
MONARCH_MESSAGE(KeeperPing, 50, number)

struct KeeperChanged {
  RankReport report;
};
MONARCH_MESSAGE(KeeperChanged, 51, report)

// The keeper is ending, and all that it kept has ended; what it starts from now on is nothing.
struct KeeperEnded {
  std::uint32_t left = 0;  // processes that it could not kill
};
MONARCH_MESSAGE(KeeperEnded, 52, left)

// The keeper was sent TERM, which is the word of who gave this host that what runs there is about to be ended (see
// Bootstrap).
struct KeeperWarned {
  std::uint32_t warnings = 0;  // so often until now
};
MONARCH_MESSAGE(KeeperWarned, 53, warnings)

// ---- guarded process → keeper ----

struct KeeperPong {
  std::uint64_t number = 0;
};
MONARCH_MESSAGE(KeeperPong, 64, number)

// What the next guarded process needs to go on: opaque to the keeper, kept in a sealed memfd.
struct KeeperStash {
  std::string bytes;
};
MONARCH_MESSAGE(KeeperStash, 65, bytes)

struct KeeperLease {
  std::vector<Incarnation> processes;
  Instant until;  // this host's boot clock
};
MONARCH_MESSAGE(KeeperLease, 66, processes, until)

struct KeeperForget {
  std::vector<Incarnation> processes;
};
MONARCH_MESSAGE(KeeperForget, 67, processes)

// A process without gate, lease or pipes of the keeper's: a worker of the local launcher. Three descriptors: its stdin,
// stdout and stderr. Its end is reported by KeeperChanged. Header: rank (the launcher's key) and generation.
struct KeeperSpawn {
  std::vector<std::string> program;
  std::map<std::string, std::string> env;  // added to the keeper's
  std::string workdir;
  std::string executable = {};  // of the keeper's host; empty: the program's first word
  Duration memory_patience =
      {};  // beyond kKillDeadline, from SIGKILL to its end: for the kernel to give its memory back
};
MONARCH_MESSAGE(KeeperSpawn, 68, program, env, workdir, executable, memory_patience)

// A process of KeeperSpawn that lives on where the keeper ends before the job does: what it carries is worth more than
// this keeper.
struct KeeperLetLive {
  Incarnation process;
};
MONARCH_MESSAGE(KeeperLetLive, 71, process)

// The pipes of a rank that was a standby are read as the rank's: nothing that it writes from now on is taken for the
// standby's.
struct KeeperPipesTaken {
  Incarnation process;
};
MONARCH_MESSAGE(KeeperPipesTaken, 72, process)

// These descriptors, which come with it, are the guard's from now on: each process that it guards after this one has
// them, too.
struct KeeperKeepOpen {
  std::uint32_t count = 0;
};
MONARCH_MESSAGE(KeeperKeepOpen, 73, count)

struct KeeperShutdown {
  std::int32_t exit_code = 0;  // the keeper's own, once all that it keeps has ended
};
MONARCH_MESSAGE(KeeperShutdown, 69, exit_code)

// The ready port of this rank accepts connections.
struct KeeperReady {
  Incarnation process;
};
MONARCH_MESSAGE(KeeperReady, 70, process)

}  // namespace monarch
