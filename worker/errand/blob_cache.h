#pragma once

// BlobCache: files that were shipped to this host, by the hash of their content:
// $XDG_CACHE_HOME/monarch/blobs/<sha256>. What comes is written into a folder of its own, and moved into place once it
// is whole, has the hash it was announced with, and is on the disk; two hosts that share a home may do that at the same
// time. What was not asked for longest goes when there is too much.
//
// Thread: one; it waits for the disk. Lifetime: its incoming folder goes with it.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "transport/base/files/tree_manifest.h"
#include "transport/base/result.h"
#include "transport/base/sha256.h"
#include "transport/base/unique_fd.h"
#include "worker/core/environment.h"

namespace monarch {

// How the disk refused something: kBusy where it is full, kUnsupported where it may not be written to. Others as
// errno_error has them.
Error disk_error(const std::string& what, int error);

class BlobCache {
 public:
  static constexpr std::uint64_t kBytes = 8ULL << 30U;  // more than that is kept only for the last hour
  static constexpr std::int64_t kRecentSeconds = 3'600;

  // kInvalid: a folder of it is not ours alone.
  static Result<std::unique_ptr<BlobCache>> open(const Environment& environment);
  BlobCache(const BlobCache&) = delete;
  BlobCache& operator=(const BlobCache&) = delete;
  ~BlobCache();

  // Whether it is there, by its name and size; it counts as used now. Who reads it holds it against its hash.
  bool has(const TreeBlob& blob) const;
  // kNotFound: it is not there, or not any more.
  Result<UniqueFd> read(const TreeBlob& blob) const;
  // It turned out to be damaged: it has to come again.
  void forget(const TreeBlob& blob) const;

  // Takes blobs one after the other: begin, bytes, finish. kInvalid: what came has another hash.
  Status begin();
  Status add(std::string_view bytes);
  Status finish(const TreeBlob& blob);
  // All that were finished are there from now on.
  Status keep();

  // Removes what processes of this host brought and never finished because they were killed: nobody holds it any more.
  // Makes nothing.
  static void sweep(const Environment& environment);

  // Removes what was not used longest, until `bytes` are left; nothing that was used in the last hour. Answers how many
  // went.
  std::size_t trim(std::uint64_t bytes, std::int64_t now) const;

 private:
  BlobCache(UniqueFd folder, std::string path) : folder_(std::move(folder)), path_(std::move(path)) {}

  Status make_incoming();

  UniqueFd folder_;
  std::string path_;
  std::string incoming_name_;  // empty: nothing came yet
  UniqueFd incoming_;
  UniqueFd file_;
  Sha256 hash_;
  std::vector<std::string> finished_;
};

}  // namespace monarch
