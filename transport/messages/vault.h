#pragma once

// The messages about checkpoints that are kept in the memory of hosts: what the supervisor tells each host's vault,
// what a daemon starts its vault with and hears of it, and what vaults say to each other. A vault is a process beside
// the daemon; how it decides is worker/core/vault/vault_core.h's.
//
// Of a generation its counter counts here: it never resets, and it is what a rank knows of itself.
//
// Thread: values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/message.h"
#include "transport/messages/peer.h"

namespace monarch {

inline constexpr std::uint32_t kVaultPieceBytes = 1U << 20U;  // of a checkpoint, in one message

// The kernel gives a vault's memory back page by page when it ends: so long it may take beyond what another process
// does.
inline Duration vault_memory_patience(std::uint64_t memory) {
  constexpr std::uint64_t kMillisecondsPerGib = 500;
  return Duration::milliseconds(static_cast<std::int64_t>((memory >> 20U) * kMillisecondsPerGib >> 10U));
}

// One rank's checkpoint of one step, as one start of its gang wrote it.
struct VaultKey {
  RankId rank;
  std::uint64_t generation = 0;
  std::uint64_t step = 0;
  auto operator<=>(const VaultKey&) const = default;
};
MONARCH_FIELDS(VaultKey, rank, generation, step)

struct VaultMesh {
  std::string name;
  std::uint32_t gang_size = 1;  // ranks; those of a gang follow each other
  bool operator==(const VaultMesh&) const = default;
};
MONARCH_FIELDS(VaultMesh, name, gang_size)

// Neighbouring ranks of a gang, and the host on which they save.
struct VaultSource {
  HostId host;
  Rank first;
  std::uint32_t count = 0;
  bool operator==(const VaultSource&) const = default;
};
MONARCH_FIELDS(VaultSource, host, first, count)

// A gang that is not done. Of one that is not named nothing is kept.
struct VaultGang {
  MeshId mesh;
  GangId gang;
  std::uint64_t generation = 0;            // the present one
  std::optional<std::uint64_t> committed;  // the newest step that all its ranks have committed
  std::optional<std::uint64_t> resumed;    // that from which the present generation goes on
  std::vector<HostId> targets;             // of one with ranks on the host that is told: where copies of theirs go
  std::optional<std::uint64_t> passed;     // below it the present generation commits no step any more
  std::vector<VaultSource> sources;        // whose copies come to the host that is told
  bool operator==(const VaultGang&) const = default;
};
MONARCH_FIELDS(VaultGang, mesh, gang, generation, committed, resumed, targets, passed, sources)

// supervisor → worker, and daemon → vault: all that a vault goes by. It replaces the one before.
struct VaultTable {
  std::uint64_t version = 0;  // of what follows, by its bytes; 0: none
  std::vector<VaultMesh> meshes;
  std::vector<VaultGang> gangs;
  std::vector<PeerAddress> peers;
  bool operator==(const VaultTable&) const = default;
};
MONARCH_MESSAGE(VaultTable, 29, version, meshes, gangs, peers)

// What a beat says of the host's vault.
struct VaultReport {
  std::uint16_t port = 0;
  std::uint64_t table = 0;  // the version that it goes by; 0: none yet
  std::uint64_t used = 0;   // bytes of memory
  bool operator==(const VaultReport&) const = default;
};
MONARCH_MESSAGE(VaultReport, 129, port, table, used)

// What a daemon starts a vault with, as sealed memory in its standard input; and the first word of each daemon that
// connects to it later, which proves by the secret that it is one.
struct VaultSetup {
  JobUuid job;
  std::string host_name;
  HostId host;
  std::string address;  // numeric: where it listens for others
  std::string public_key;
  std::string secret_key;
  std::uint64_t memory = 0;  // bytes that checkpoints may take
  std::string directory;     // of its two doors, for ranks and for the daemon
  std::int32_t keeper_pid = 0;
  std::uint16_t first_port = 0;  // it listens at the highest free one of these; 0: at any
  std::uint16_t last_port = 0;
};
MONARCH_MESSAGE(VaultSetup, 128, job, host_name, host, address, public_key, secret_key, memory, directory, keeper_pid,
                first_port, last_port)

// vault → vault: I have this, keep a copy. The receiver asks for its pieces and says at last what became of it.
struct VaultOffer {
  VaultKey key;
  std::uint64_t bytes = 0;
  std::string digest;  // as the rank said it: another one is another checkpoint under the same key
  bool operator==(const VaultOffer&) const = default;
};
MONARCH_MESSAGE(VaultOffer, 130, key, bytes, digest)

// vault → vault, the answer to an offer.
struct VaultKept {
  VaultKey key;
  std::string digest;
  std::string refused;  // empty: it is kept
  bool full = false;    // refused for want of memory
  bool operator==(const VaultKept&) const = default;
};
MONARCH_MESSAGE(VaultKept, 131, key, digest, refused, full)

// vault → vault: send these bytes. Of none: say how many there are.
struct VaultAsk {
  VaultKey key;
  std::string digest;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint64_t number = 0;  // of this asker's; they may come as the body of that number (transport/peers/body_links.h)
  bool operator==(const VaultAsk&) const = default;
};
MONARCH_MESSAGE(VaultAsk, 132, key, digest, offset, length, number)
MONARCH_ADDED_FIELDS(VaultAsk, 1)

// vault → vault, the answer to an ask. The bytes are a frame of their own; where they come as a body, nothing is said.
struct VaultPiece {
  VaultKey key;
  std::string digest;
  std::uint64_t offset = 0;
  std::uint32_t length = 0;
  std::uint64_t total = 0;
  std::string refused;  // empty: here they are
  bool operator==(const VaultPiece&) const = default;
};
MONARCH_MESSAGE(VaultPiece, 133, key, digest, offset, length, total, refused)

}  // namespace monarch
