#pragma once

// ReportFolder: where the viewer of somebody on another machine leaves its reports, to be sent there piece by piece: a
// folder of our own beside the jobs, since logs may be larger than a /tmp in memory. It goes with this object.
//
// Thread: the loop's; it waits for the disk.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/away/viewer_frames.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class ReportFolder {
 public:
  static Result<std::unique_ptr<ReportFolder>> create(const std::string& name);
  ReportFolder(const ReportFolder&) = delete;
  ReportFolder& operator=(const ReportFolder&) = delete;
  ~ReportFolder();

  std::string junit() const { return path_ + "/junit.xml"; }
  std::string artifacts() const { return path_ + "/artifacts"; }

  // kFile or kFileBytes, of all regular files that are there when it is first asked; nothing: that was all.
  std::optional<ViewerFrame> next();

 private:
  ReportFolder(std::string path, std::string parent, std::string name)
      : path_(std::move(path)), parent_(std::move(parent)), name_(std::move(name)) {}
  void look();
  bool open_next();

  std::string path_;
  std::string parent_;
  std::string name_;
  std::optional<std::vector<std::string>> names_;  // below path_, the last is next
  UniqueFd file_;
  std::uint64_t left_ = 0;
};

}  // namespace monarch
