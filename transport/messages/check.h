#pragma once

// What `monarch doctor`, and a supervisor that doubts a host, ask of it, and what `monarch-worker check` there answers:
// facts, never judgements, so that an older worker need not know what a newer doctor thinks of them. A talk is one
// request and one answer at a time, as often as the doctor likes. What a talk has done there, for the doctor or for a
// drill, is taken back by its end. How the messages follow each other is wire/check_stream.h's.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/time.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/message.h"
#include "transport/messages/strike.h"

namespace monarch {

// Whoever says `word` at a door is answered `answer`: both are drawn for one run of the doctor, so that nobody else's
// door is taken for it. A knock waits for what begins with `answer`; an empty one: that the connection opens is enough.
struct DoorWords {
  std::string word;
  std::string answer;
};
MONARCH_FIELDS(DoorWords, word, answer)

// A job's worker on the host.
struct WorkerMarks {
  std::string job_uuid;
  std::string host;
};
MONARCH_FIELDS(WorkerMarks, job_uuid, host)

// A rank that a keeper of the job has started there.
struct RankThere {
  std::string mesh;
  std::uint32_t rank = 0;
  std::uint32_t processes = 0;  // of it that keepers started, and that are not stopped
};
MONARCH_FIELDS(RankThere, mesh, rank, processes)

// What is there of it now.
struct WorkerThere {
  std::uint32_t keepers = 0;
  std::uint32_t stopped = 0;    // of the keepers, by a signal or a debugger
  std::uint32_t processes = 0;  // with its daemon and ranks, and what descends from them
  std::vector<RankThere> ranks = {};
};
MONARCH_FIELDS(WorkerThere, keepers, stopped, processes, ranks)

// A door to knock at.
struct DoorCall {
  std::string name;     // whose it is
  std::string address;  // numeric
  std::uint16_t port = 0;
};
MONARCH_FIELDS(DoorCall, name, address, port)

struct DoorReached {
  DoorCall call;
  std::string error;  // empty: it was reached, and was the right one
};
MONARCH_FIELDS(DoorReached, call, error)

// A program as a mesh names it, to be looked for as its ranks would.
struct ProgramNeed {
  std::string mesh;
  std::string program;
  std::string workdir;
  std::string path;  // PATH of the mesh; empty: of the login
};
MONARCH_FIELDS(ProgramNeed, mesh, program, workdir, path)

struct FolderNeed {
  std::string name;  // "storage", "workdir of mesh m"
  std::string path;
  bool written = false;  // whether it has to be possible to write there
};
MONARCH_FIELDS(FolderNeed, name, path, written)

struct TokenOrder {
  std::string folder;
  std::string name;
  std::string content;  // to write; nothing to read
};
MONARCH_FIELDS(TokenOrder, folder, name, content)

struct TokenFound {
  std::string folder;
  std::string content;  // of the file; after writing what was written
  std::string error;    // empty: written, or read
};
MONARCH_FIELDS(TokenFound, folder, content, error)

struct CheckRequest {
  DoorWords words;
  Duration life = Duration::seconds(60);         // after which the check takes its things away and ends, whatever comes
  Duration patience = Duration::seconds(4);      // with one door, or one folder
  bool look = false;                             // answer with facts
  bool wake_gpus = false;                        // takes seconds for each that nobody has opened yet
  std::optional<std::uint16_t> first_door = {};  // open a door at one of these ports; 0 to 0: any
  std::uint16_t last_door = 0;
  std::vector<DoorCall> calls;
  std::vector<FolderNeed> folders;
  std::vector<ProgramNeed> programs;
  std::vector<TokenOrder> write;  // taken away again at the end
  std::vector<TokenOrder> read;
  std::optional<WorkerMarks> worker = {};  // look for it
  std::optional<StrikeOrder> strike = {};  // in effect until the next one, `undo`, or the talk's end
  bool undo = false;    // take the last strike back; with `strike`: one of a talk that is lost, which stops somebody
  bool rights = false;  // tell which faults the host allows
};
MONARCH_FIELDS(CheckRequest, words, life, patience, look, wake_gpus, first_door, last_door, calls, folders, programs,
               write, read, worker, strike, undo, rights)

inline constexpr std::uint64_t kUnlimited = UINT64_MAX;

struct LimitFacts {
  std::uint64_t soft = kUnlimited;
  std::uint64_t hard = kUnlimited;
  bool operator==(const LimitFacts&) const = default;
};
MONARCH_FIELDS(LimitFacts, soft, hard)

struct FolderFacts {
  std::string name;
  std::string path;
  std::string error;  // of entering it, or of writing there; empty: neither failed
  bool there = false;
  bool no_exec = false;
  bool read_only = false;
  std::uint64_t free_bytes = 0;
  std::uint64_t total_bytes = 0;
  std::uint64_t free_files = kUnlimited;
};
MONARCH_FIELDS(FolderFacts, name, path, error, there, no_exec, read_only, free_bytes, total_bytes, free_files)

struct ProgramFacts {
  std::string mesh;
  std::string program;
  std::string found;  // the file
  std::string error;  // why there is none
};
MONARCH_FIELDS(ProgramFacts, mesh, program, found, error)

struct RdmaPortFacts {
  std::string name;  // "mlx5_0:1"
  std::string state;
  std::string link_layer;
  std::string rate;
};
MONARCH_FIELDS(RdmaPortFacts, name, state, link_layer, rate)

struct InterfaceFacts {
  std::string name;
  std::string address;  // numeric
  std::uint32_t mtu = 0;
};
MONARCH_FIELDS(InterfaceFacts, name, address, mtu)

// Processes with the mark of a job whose keeper is not there any more.
struct OrphanFacts {
  std::string job_uuid;
  std::string host;  // as the job called it; empty: unknown
  std::vector<std::int32_t> pids;
  std::string program;  // of the first
};
MONARCH_FIELDS(OrphanFacts, job_uuid, host, pids, program)

struct HostFacts {
  std::string version;  // of the worker
  std::string kernel;
  std::string machine;
  std::string user;
  LimitFacts files;
  LimitFacts locked;
  LimitFacts processes;
  std::string no_cgroup_because;  // empty: one was made, joined and removed
  std::optional<std::uint64_t> ptrace_scope;
  std::vector<FolderFacts> places;  // "cache", "state", "shared memory"
  HostInventory inventory;
  bool gpu_driver = false;
  bool gpus_can_be_opened = true;
  std::vector<RdmaPortFacts> rdma;
  std::vector<InterfaceFacts> interfaces;
  std::vector<OrphanFacts> orphans;
  std::vector<std::string> stale_sockets;  // folders of jobs of which nothing runs
  bool kills_at_logout = false;            // logind ends what a session leaves, and this user's sessions are not exempt
  std::string address;  // from which it reaches the first door of `calls`; without any, by which it was logged in to
};
MONARCH_FIELDS(HostFacts, version, kernel, machine, user, files, locked, processes, no_cgroup_because, ptrace_scope,
               places, inventory, gpu_driver, gpus_can_be_opened, rdma, interfaces, orphans, stale_sockets,
               kills_at_logout, address)

// What faults need that are more than signals to processes of the user.
struct FaultRights {
  std::string no_nft_because;       // empty: nft can be used there
  std::vector<std::string> tables;  // of nft, that drills have made and that are there now
  std::optional<std::uint64_t> ptrace_scope;
  bool traces_all = false;  // whatever that is
};
MONARCH_FIELDS(FaultRights, no_nft_because, tables, ptrace_scope, traces_all)

struct CheckAnswer {
  WallTime received;  // the request, by the host's clock
  WallTime answered;
  std::string error;  // of the request as a whole; empty: none
  std::optional<HostFacts> facts = {};
  std::uint16_t door = 0;  // the port of the open one; 0: none
  std::vector<DoorReached> calls = {};
  std::vector<FolderFacts> folders = {};
  std::vector<ProgramFacts> programs = {};
  std::vector<TokenFound> written = {};
  std::vector<TokenFound> read = {};
  std::optional<WorkerThere> worker = {};
  std::optional<StrikeSeen> struck = {};  // of `strike`, or of `undo`
  std::optional<FaultRights> rights = {};
};
MONARCH_FIELDS(CheckAnswer, received, answered, error, facts, door, calls, folders, programs, written, read, worker,
               struck, rights)

// How the names of token files begin; a time and the run's word follow, so that a later doctor knows those of a killed
// one.
inline constexpr char kTokenPrefix[] = ".monarch-doctor-";

}  // namespace monarch
