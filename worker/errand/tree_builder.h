#pragma once

// build_tree(): the workspace of a job on this host, made of blobs that are in the cache, each checked by its hash as
// it lies in the tree: a disk, or whoever else writes there, may have changed what was whole when it came. It is a
// copy, or shares its bytes with the cache where the file system can (reflink); never hard links: a rank that writes
// into its tree would change what other jobs start with. It appears all at once; if it is there already, from an
// earlier start of the same job, it stays as its ranks left it.
//
// Thread: one; it waits for the disk.

#include <functional>
#include <string>

#include "transport/base/files/tree_manifest.h"
#include "transport/base/result.h"
#include "worker/errand/blob_cache.h"

namespace monarch {

// In a worker's state directory.
inline constexpr char kTreeName[] = "workspace";
inline constexpr char kRanksName[] = "ranks";  // what ranks are made of: monarch-rank, libraries, copies of plugins

struct TreeOrder {
  const TreeManifest& tree;
  std::string hash;                       // of its manifest
  std::string state_directory;            // there, and ours
  std::function<void()> on_turn = [] {};  // now and then
};

// Whether the tree of that manifest is there.
bool has_tree(const std::string& state_directory, const std::string& hash);

// kNotFound: a blob is gone from the cache, or was damaged there, and the cache has forgotten it; no tree is there.
Status build_tree(const TreeOrder& order, const BlobCache& cache);

// With whatever was left on the way to one, and with what ranks were made of.
Status remove_trees(const std::string& state_directory);

}  // namespace monarch
