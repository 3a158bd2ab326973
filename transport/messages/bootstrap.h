#pragma once

// What a worker is started with, and what it answers: the one frame on its standard input, the one on its standard
// output; and what its keeper keeps of it for the next daemon.
//
// Thread: values.

#include <cstdint>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/message.h"

namespace monarch {

struct Bootstrap {
  std::string job_id;
  std::uint32_t host = 0;
  std::string host_name;
  Term term;
  std::string server_public_key;  // z85
  std::string control_endpoint;   // "tcp://127.0.0.1:20000"
  std::string bulk_endpoint;
  // Three folders of this worker. Without a state_directory, those left empty are the host's own
  // (worker/core/host_places.h).
  std::string state_directory;  // its promise
  std::string log_directory;    // <mesh>/<rank>.<generation>.{out,err} go here; if it is the host's own, worker.log too
  Duration heartbeat = Duration::seconds(1);
  Duration suspect_after = Duration::seconds(3);
  Duration orphan_ttl = Duration::seconds(60);  // without a supervisor and without ranks the worker ends after this
  // Numeric, of this host; empty: that from which it reaches the control endpoint. If that is its own loopback, a
  // tunnel's, the address at which its user logged in counts before.
  std::string host_address;
  std::string interface;           // of this host, whose address counts before those; empty: none is asked for
  std::string socket_directory;    // 0700: the doors of its ranks; short (107 bytes a path)
  bool copied = false;             // the supervisor keeps a copy of all output: nothing of it is skipped
  bool login_environment = false;  // ranks begin with what a login has, not with all that the launcher's shell had
  std::uint64_t checkpoint_memory =
      0;                         // bytes for checkpoints of ranks, in a vault beside the daemon; 0: this host has none
  std::uint16_t first_port = 0;  // of those that ranks are given, and the vault: 0: any
  std::uint16_t last_port = 0;
  // TERM is the word of who gave this host that what runs there is about to be ended: told, not obeyed.
  bool term_foretells = false;
  std::uint64_t worker = 0;  // which worker of the host it is: those of a job are counted upwards
  bool post = false;         // ranks of this host call, or are called: they have a post
  bool one_machine = false;  // all hosts of the job are this one
};
MONARCH_FIELDS(Bootstrap, job_id, host, host_name, term, server_public_key, control_endpoint, bulk_endpoint,
               state_directory, log_directory, heartbeat, suspect_after, orphan_ttl, host_address, interface,
               socket_directory, copied, login_environment, checkpoint_memory, first_port, last_port, term_foretells,
               worker, post, one_machine)

struct Gpu {
  std::uint32_t index = 0;  // as CUDA_VISIBLE_DEVICES of this host counts
  std::string uuid;
  bool operator==(const Gpu&) const = default;
};
MONARCH_FIELDS(Gpu, index, uuid)

// What a host has for ranks, as its keeper found it at its start.
struct HostInventory {
  std::uint32_t cpus = 0;  // that the keeper may use
  std::vector<Gpu> gpus;
  bool operator==(const HostInventory&) const = default;
};
MONARCH_FIELDS(HostInventory, cpus, gpus)

// Why it could not start, where more than its words is to be known of that.
enum class BootstrapRefusal : std::uint8_t {
  kOther,
  kInterface,  // this host has no such interface as the bootstrap names
};
constexpr BootstrapRefusal monarch_enum_max(BootstrapRefusal) { return BootstrapRefusal::kInterface; }

// What it answers on its standard output, one frame, before it closes it.
struct BootstrapReply {
  std::string public_key;  // z85
  std::int32_t keeper_pid = 0;
  std::string boot_id;
  std::string version;
  std::string error;  // not empty: it could not start, and this is why
  HostInventory inventory;
  std::string host_address;                             // numeric; empty: none is known
  std::string log_directory;                            // where the output of its ranks lies
  std::string architecture;                             // as `uname -m` says it
  BootstrapRefusal refusal = BootstrapRefusal::kOther;  // meaningful with an error
};
MONARCH_FIELDS(BootstrapReply, public_key, keeper_pid, boot_id, version, error, inventory, host_address, log_directory,
               architecture, refusal)

// What a worker's daemon needs to go on where the one before it stopped, as the bytes of a KeeperStash. The keeper
// makes the first one, of the bootstrap alone, and never looks into a later one.
struct DaemonStash {
  JobUuid job;  // of the bootstrap frame's header
  Bootstrap bootstrap;
  std::string public_key;  // z85; empty until the first daemon made the pair
  std::string secret_key;
  Term promised;  // the highest term promised
};
MONARCH_FIELDS(DaemonStash, job, bootstrap, public_key, secret_key, promised)

}  // namespace monarch
