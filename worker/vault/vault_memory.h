#pragma once

// VaultMemory: the bytes of checkpoints, each a memfd. What a rank hands over is kept as it is, sealed by the rank;
// what comes from another vault is written here piece by piece, and sealed when it is whole. A sealed one may be given
// to ranks: nobody can change it any more.
//
// WARNING: the kernel charges memory to the cgroup of who touched it first, so what a rank saves stays in that rank's
// account until it has ended, then goes to its parent's (Linux, Documentation/admin-guide/cgroup-v2.rst, "Memory
// Ownership").
//
// Thread: the loop's.

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "worker/core/vault/vault_core.h"

namespace monarch::vault {

class VaultMemory {
 public:
  void adopt(BlobId blob, UniqueFd sealed) { blobs_[blob] = std::move(sealed); }
  Status create(BlobId blob, std::uint64_t bytes);
  Status write(BlobId blob, std::uint64_t offset, std::string_view bytes);
  Status seal(BlobId blob);
  void drop(BlobId blob) { blobs_.erase(blob); }

  Result<std::string> read(BlobId blob, std::uint64_t offset, std::size_t length) const;
  // For whoever is given it.
  Result<UniqueFd> copy_of(BlobId blob) const;

 private:
  Result<int> descriptor(BlobId blob) const;

  std::map<BlobId, UniqueFd> blobs_;
};

}  // namespace monarch::vault
