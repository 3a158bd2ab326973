#pragma once

// JobSpec: a job as the cores see it, after the spec has been read, checked and completed with defaults. What a spec
// may say is decided in supervisor/spec; no value here needs checking again.
//
// Thread: a value that does not change after it was made.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervisor/core/spec/launch_spec.h"
#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/rank.h"

namespace monarch {

struct Dimension {
  std::string name;
  std::uint32_t size = 1;
  bool operator==(const Dimension&) const = default;
};

// What lives and dies together: ranks that agree on the dimensions up to and including `along`.
enum class GangScope : std::uint8_t { kAll, kEach, kDimension };

struct GangSpec {
  GangScope scope = GangScope::kAll;
  std::size_t along = 0;  // kDimension: index into dims
  bool operator==(const GangSpec&) const = default;
};

struct RestartPolicy {
  std::optional<std::uint32_t> max = 4;  // nothing: unlimited
  Duration window = Duration::seconds(600);
  Duration backoff = Duration::milliseconds(500);
  Duration backoff_max = Duration::seconds(30);
  double jitter = 0.25;
  bool operator==(const RestartPolicy&) const = default;
};

struct ReallocatePolicy {
  std::optional<std::uint32_t> max = 4;
  Duration window = Duration::seconds(3600);
  bool operator==(const ReallocatePolicy&) const = default;
};

// Before a lost host fails the job: gangs without hosts are parked. Sizes never change.
struct ShrinkPolicy {
  std::string along;      // the dimension of the mesh's gangs
  std::uint32_t min = 1;  // gangs that go on: never fewer
  bool regrow = true;     // as hosts come back
  bool operator==(const ShrinkPolicy&) const = default;
};

// What is done about a rank that makes no progress.
enum class HangAction : std::uint8_t { kReport, kRestart };
constexpr HangAction monarch_enum_max(HangAction) { return HangAction::kRestart; }

// How long a phase of a program may last without a word of it.
struct PhaseLimit {
  std::optional<Duration> longest;  // nothing: auto, from what was seen
  bool written = false;             // by the user: a restart may follow
  // A default that is written out means what one means that is not.
  bool operator==(const PhaseLimit& other) const { return longest == other.longest; }
};

struct HangPolicy {
  HangAction action = HangAction::kReport;
  std::map<std::string, PhaseLimit> phases = {{"init", {.longest = Duration::seconds(600)}},
                                              {"step", {}},
                                              {"checkpoint", {.longest = Duration::seconds(1'800)}}};
  bool operator==(const HangPolicy&) const = default;
};

struct Supervision {
  Duration heartbeat = Duration::seconds(1);
  Duration suspect_after = Duration::seconds(3);
  Duration lost_after = Duration::seconds(5);
  Duration lease = Duration::seconds(6);
  HangPolicy hang;
  RestartPolicy restart;
  ReallocatePolicy reallocate;
  std::optional<ShrinkPolicy> shrink;  // of a mesh: only where its gangs are those of `along`
  std::vector<int> fatal_exit_codes = {2, 126, 127};
  int on_peer_lost = 0;  // the signal that surviving ranks of other gangs get; 0: none
  OrphanPolicy orphan = OrphanPolicy::kHold;
  Duration orphan_ttl = Duration::seconds(60);
  bool operator==(const Supervision&) const = default;
};

struct StopPolicy {
  int signal = 15;
  SignalTo to = SignalTo::kAuto;  // of every signal for a rank
  Duration grace = Duration::seconds(30);
  Duration after_failure = Duration::zero();
  bool operator==(const StopPolicy&) const = default;
};

// "auto", "rank" or "group"; nothing for another word.
std::optional<SignalTo> signal_to(std::string_view word);

struct PortSpec {
  std::string name;
  std::optional<std::uint16_t> fixed;  // nothing: the keeper's choice
  bool operator==(const PortSpec&) const = default;
};

struct ReadyPolicy {
  ReadyKind kind = ReadyKind::kExec;
  std::size_t port = 0;  // kTcp: index into ports
  bool operator==(const ReadyPolicy&) const = default;
};

enum class GpuVisibility : std::uint8_t { kGang, kRank };

// Of each rank. Nothing: it is not asked for, and not limited.
struct ResourcesSpec {
  std::optional<std::uint32_t> gpus;
  GpuVisibility visible = GpuVisibility::kGang;
  std::optional<std::uint32_t> cpus;
  BindKind bind = BindKind::kNone;
  bool operator==(const ResourcesSpec&) const = default;
};

// Of an idle mesh: what may come with a claim from another host than the slot's.
struct ClaimPolicy {
  bool trusts_job = false;       // anything that a rank of the job says, code among it; else
  std::vector<std::string> env;  // these variables: names, or patterns with one `*` at the end
  bool operator==(const ClaimPolicy&) const = default;
};

struct MeshSpec {
  std::string name;
  std::vector<Dimension> dims;    // outermost first; the rank is the row-major index
  std::size_t per_host_dims = 0;  // how many of the innermost dims share a host
  GangSpec gang;
  std::optional<MeshId> like;  // on the first hosts of that mesh; nothing: on hosts of its own
  std::vector<MeshId> depends_on;
  std::vector<std::string> wrap;  // put before program
  std::vector<std::string> program;
  std::map<std::string, std::string> env;
  std::vector<std::string> env_pass;   // names, or patterns with one `*` at the end
  std::optional<std::string> workdir;  // absolute, or below base_directory(); nothing: that
  std::string setup;                   // bash
  bool sidecar = false;
  bool idle = false;  // its gangs start when they are claimed; then it is a sidecar, too
  ClaimPolicy claims;
  bool serves = false;  // its ranks are there until they are told to end: one that ends before has failed, with 0 too
  std::vector<PortSpec> ports;
  ReadyPolicy ready;
  ResourcesSpec resources;
  StopPolicy stop;
  Supervision supervision;
  std::uint32_t standby_gangs = 0;  // that are kept at their gates

  std::uint32_t size() const;      // product of dims
  std::uint32_t per_host() const;  // product of the innermost per_host_dims
  std::uint32_t hosts() const;     // size() / per_host()
  std::uint32_t gangs() const;
  std::uint32_t gang_size() const { return size() / gangs(); }
  std::uint32_t gang_hosts() const { return (gang_size() + per_host() - 1) / per_host(); }
  GangId gang_of(Rank rank) const;
  std::vector<std::uint32_t> coordinates_of(Rank rank) const;  // one per dim

  bool operator==(const MeshSpec&) const = default;
};

// Of a job that is left up.
struct Lifetime {
  Duration idle = Duration::forever();
  Duration max = Duration::forever();
  bool operator==(const Lifetime&) const = default;
};

struct LogLimits {
  std::uint64_t max_bytes = 1ULL << 30U;  // per rank and stream
  bool operator==(const LogLimits&) const = default;
};

// A folder that the job relies on.
struct StorageSpec {
  std::string path;     // absolute, on each host
  bool shared = false;  // all hosts see the same files in it
  bool operator==(const StorageSpec&) const = default;
};

// Checkpoints that ranks hand over are kept in the memory of their host and of others.
struct CheckpointSpec {
  std::uint32_t peer = 0;    // copies on hosts other than those of the rank's gang; 0: nothing is kept
  std::uint64_t memory = 0;  // bytes per host, its own ranks' and others'
  bool operator==(const CheckpointSpec&) const = default;
};

// A folder that every host gets a copy of; of virtual hosts, it is used where it is.
struct WorkspaceSpec {
  std::string path;                  // absolute
  std::vector<std::string> exclude;  // as lines of a .gitignore
  std::vector<std::string> include;  // likewise: of what is left out since it may be a secret
  std::uint64_t max_bytes = 1ULL << 30U;
  bool operator==(const WorkspaceSpec&) const = default;
};

// Which ways tensors may take between ranks.
struct TensorSpec {
  bool shm = true;
  bool verbs = true;
  bool tcp = true;
  bool pin = true;  // a driver of GPUs may know the memory that they are copied by
  bool operator==(const TensorSpec&) const = default;
};

// Who gets the standard input of `run`.
struct InputSpec {
  MeshId mesh;
  std::optional<Rank> rank;  // nothing: all of it
  bool operator==(const InputSpec&) const = default;
};

struct JobSpec {
  std::string name;
  Launch launch;
  ControlSpec control;
  NetworkSpec network;
  SupervisorPlace supervisor_on = SupervisorPlace::kHere;
  std::vector<MeshSpec> meshes;
  Supervision supervision;
  Duration start_timeout = Duration::seconds(120);
  Duration time_limit = Duration::forever();
  Lifetime lifetime;
  LogLimits logs;
  std::vector<StorageSpec> storage;
  std::optional<WorkspaceSpec> workspace;
  CheckpointSpec checkpoints;
  std::optional<TensorSpec> tensors;  // nothing: its ranks neither publish nor pull tensors
  std::optional<InputSpec> input;     // nothing: nobody does
  bool calls = false;                 // its ranks speak with each other: each host has a post
  bool drills = false;                // faults may be injected while it runs
  std::string directory;              // absolute; of the spec's file

  std::uint32_t hosts_needed() const;  // of all meshes on hosts of their own, placed one after the other
  std::uint32_t spares() const;        // hosts that are kept connected without ranks
  const PrepareSpec& prepare() const;  // what warms them
  std::uint32_t pool_size() const;     // all hosts that the job may use
  // The last so many of these are nobody yet: one is asked for each time that one of them is to be launched.
  std::uint32_t hosts_on_request() const;
  bool is_on_request(HostId host) const { return host.value() + hosts_on_request() >= pool_size(); }
  bool supervised_away() const;  // the supervisor is on the first host, and that is another machine

  bool operator==(const JobSpec&) const = default;
};

// Of its `input`, in their order.
std::vector<RankId> ranks_with_input(const JobSpec& spec);

// Where ranks start that name no other folder: the workspace, or the folder of the spec. "." is the tree that each host
// has of the workspace, in a place that only the host knows; virtual hosts have the workspace itself.
std::string base_directory(const JobSpec& spec);

// Crews: the gangs of the spec's meshes; and in meshes behind these, which nothing else of the job counts: what warms a
// spare, a crew of one rank for each host, by its number; then standby gangs, for each mesh of the spec in a mesh of
// their own. Ranks of a crew follow those of the crew before it.
struct CrewKey {
  MeshId mesh;
  GangId gang;
  friend bool operator==(const CrewKey&, const CrewKey&) = default;
};
struct CrewPlace {
  CrewKey key;
  std::uint32_t index = 0;  // in its crew
};
inline constexpr std::string_view kPrepareMesh = "spares-prepare";  // no mesh of a spec has a `-` in its name
MeshId prepare_mesh(const JobSpec& spec);
MeshId standby_mesh(const JobSpec& spec, MeshId of);
std::optional<MeshId> mesh_of_standby(const JobSpec& spec, MeshId mesh);  // of which mesh; nothing: no standby gangs'
std::uint32_t crew_size(const JobSpec& spec, MeshId mesh);
std::uint32_t crew_count(const JobSpec& spec, MeshId mesh);
RankId crew_rank(const JobSpec& spec, const CrewPlace& place);
std::size_t crew_host(const JobSpec& spec, const CrewPlace& place);  // on which of its crew's hosts, from the first
// Its members on one of its hosts: from the first until behind the last.
std::pair<std::uint32_t, std::uint32_t> crew_members_on(const JobSpec& spec, const CrewKey& key, std::size_t host);
std::optional<CrewPlace> crew_of(const JobSpec& spec, RankId rank);  // nothing: nobody's
// By MeshId, those behind the meshes of the spec included: folders of output.
std::vector<std::string> log_mesh_names(const JobSpec& spec);

}  // namespace monarch
