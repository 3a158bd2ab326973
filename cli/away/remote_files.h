#pragma once

// RemoteFiles: files that the other half of a viewer sends at the end, written where the person asked for them: one
// report file, replaced as a whole, and files in a folder that was empty. What comes is a stranger's: a name that was
// not asked for, a file that is larger than it was said to be or than the disk has room for, is refused by name;
// nothing is written through a link, and nothing outside.
//
// Thread: the viewer's; it waits for the disk. Memory: one piece.

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "cli/away/viewer_frames.h"
#include "cli/follow/report_places.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class RemoteFiles {
 public:
  // Either may be null: then none is expected.
  RemoteFiles(std::shared_ptr<const ReportFile> junit, std::shared_ptr<const ArtifactFolder> artifacts)
      : junit_(std::move(junit)), artifacts_(std::move(artifacts)) {}
  RemoteFiles(const RemoteFiles&) = delete;
  RemoteFiles& operator=(const RemoteFiles&) = delete;

  static constexpr std::uint64_t kMostFiles = 1'000'000;

  Status begin(const ViewerFile& file);
  Status append(std::string_view bytes);
  // No more files come: the last one is whole.
  Status finish();

 private:
  Status close_one();
  int fd() const { return draft_ ? draft_->fd() : file_.get(); }

  std::shared_ptr<const ReportFile> junit_;
  std::shared_ptr<const ArtifactFolder> artifacts_;
  std::string name_;  // of the one that is being written; empty: none is
  std::unique_ptr<ReportDraft> draft_;
  UniqueFd file_;
  std::uint64_t left_ = 0;
  std::uint64_t files_ = 0;
};

}  // namespace monarch
