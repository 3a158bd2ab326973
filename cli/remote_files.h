#pragma once

// RemoteFiles: files that the other half of a viewer sends at the end, written where the person asked for them: one report file, replaced as
// a whole, and files in a folder that was empty. What comes is a stranger's: a name that was not asked for, a file that is larger than it was
// said to be or than the disk has room for, is refused by name; nothing is written through a link, and nothing outside.
//
// Thread: the viewer's; it waits for the disk. Memory: one piece.

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/viewer_frames.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class RemoteFiles {
 public:
  // Either may be empty: then none is expected. The folder is there.
  RemoteFiles(std::string junit, std::string artifacts) : junit_(std::move(junit)), artifacts_(std::move(artifacts)) {}
  RemoteFiles(const RemoteFiles&) = delete;
  RemoteFiles& operator=(const RemoteFiles&) = delete;
  ~RemoteFiles();

  static constexpr std::uint64_t kMostFiles = 1'000'000;

  Status begin(const ViewerFile& file);
  Status append(std::string_view bytes);
  // No more files come: the last one is whole.
  Status finish();

 private:
  Status open_report();
  Status open_artifact(const std::string& path);
  Status close_one();
  std::string report_name() const;

  std::string junit_;
  std::string artifacts_;
  std::string name_;   // of the one that is being written; empty: none is
  UniqueFd folder_;    // of a report
  std::string fresh_;  // of a report: its name there until it is whole
  std::uint64_t left_ = 0;
  std::uint64_t files_ = 0;
  UniqueFd file_;
};

}  // namespace monarch
