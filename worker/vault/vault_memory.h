#pragma once

// VaultMemory: the bytes of checkpoints, each a memfd. What a rank hands over is kept as it is, sealed by the rank;
// what comes from another vault is written here piece by piece, and sealed when a rank is given it: nobody can change
// it any more. Until then nobody else has had it, so its memory is used again once it is given up: pages that are new
// cost more than what is written into them.
//
// WARNING: the kernel charges memory to the cgroup of who touched it first, so what a rank saves stays in that rank's
// account until it has ended, then goes to its parent's (Linux, Documentation/admin-guide/cgroup-v2.rst, "Memory
// Ownership").
//
// Thread: the loop's.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/mapped_memory.h"
#include "worker/core/vault/vault_core.h"

namespace monarch::vault {

class VaultMemory {
 public:
  // `most`: bytes of all, also of what waits to be used again; of that no more than of what is kept.
  explicit VaultMemory(std::uint64_t most) : most_(most) {}

  void adopt(BlobId blob, UniqueFd sealed, std::uint64_t bytes);
  Status create(BlobId blob, std::uint64_t bytes);
  // Of one that is not whole yet.
  Status write(BlobId blob, std::uint64_t offset, std::string_view bytes);
  // It is whole.
  void close(BlobId blob);
  void drop(BlobId blob);

  Result<std::string> read(BlobId blob, std::uint64_t offset, std::size_t length) const;
  // The same where they lie. Owners: whoever reads there.
  Result<std::shared_ptr<const MappedMemory>> map(BlobId blob, std::uint64_t offset, std::size_t length) const;
  // For whoever is given it.
  Result<UniqueFd> copy_of(BlobId blob);

  // What waits to be used again.
  std::uint64_t spare_bytes() const { return spare_bytes_; }

 private:
  struct Blob {
    UniqueFd memory;
    std::uint64_t bytes = 0;
    bool is_whole = false;
    bool is_sealed = false;  // somebody else has it, or may have it
  };
  struct Spare {
    UniqueFd memory;
    std::uint64_t bytes = 0;
  };
  Result<const Blob*> find(BlobId blob) const;
  Result<UniqueFd> take_memory(std::uint64_t bytes);
  void give_up_spares(std::uint64_t room);

  const std::uint64_t most_;
  std::map<BlobId, Blob> blobs_;
  std::uint64_t kept_bytes_ = 0;
  std::deque<Spare> spares_;  // the oldest first
  std::uint64_t spare_bytes_ = 0;
};

}  // namespace monarch::vault
