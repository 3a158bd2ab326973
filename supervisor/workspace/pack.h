#pragma once

// WorkspacePack: a workspace as it was when its job started, kept in the job's folder: the manifest of its tree, and
// its blobs one after the other in one file. Every host of the job gets this one, also one that takes another's place a
// day later, and also after another supervisor came; what is edited meanwhile is the next job's. It goes when the job
// has ended.
//
// Thread: any; it does not change after it was made.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "supervisor/core/spec/job_spec.h"
#include "transport/base/files/tree_manifest.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

inline constexpr char kPackManifestFile[] = "workspace.manifest";
inline constexpr char kPackBlobsFile[] = "workspace.blobs";

class WorkspacePack {
 public:
  // Reads all of the workspace, and waits for the disk meanwhile. `job_folder` is where the pack is kept. A file that
  // changes while it is read is read again, and is an error if it goes on changing. It ends with kGone soon after
  // `cancel` has become readable; -1: never.
  static Result<std::shared_ptr<const WorkspacePack>> make(int job_folder, const WorkspaceSpec& workspace,
                                                           int cancel = -1);
  // kNotFound: none was made yet, or not to its end. Any other error: there was one, which hosts may have, and it is no
  // more.
  static Result<std::shared_ptr<const WorkspacePack>> open(int job_folder);
  static void remove(int job_folder);
  WorkspacePack(const WorkspacePack&) = delete;
  WorkspacePack& operator=(const WorkspacePack&) = delete;

  const std::string& manifest() const { return manifest_; }  // its text
  const std::vector<TreeBlob>& blobs() const { return blobs_; }
  std::uint64_t files() const { return files_; }
  std::uint64_t bytes() const { return bytes_; }  // of all files
  const std::vector<std::string>& left_out() const { return left_out_; }

  // At an offset as the blobs have it; as much as there is, at most `most`.
  Result<std::string> read(std::uint64_t offset, std::uint64_t most) const;

 private:
  WorkspacePack() = default;
  static Result<std::shared_ptr<const WorkspacePack>> opened(int job_folder, std::vector<std::string> left_out);

  std::string manifest_;
  std::vector<TreeBlob> blobs_;
  std::uint64_t files_ = 0;
  std::uint64_t bytes_ = 0;
  std::vector<std::string> left_out_;
  UniqueFd file_;
};

}  // namespace monarch
