#pragma once

// Where a command leaves reports at its end: one file, or a folder of artifacts. What they lie in is opened when the
// command begins, and all is made below that descriptor, new, and never through a link: who puts something else in a
// folder's place meanwhile gets nothing of it.
//
// Thread: the command's; it waits for the disk.

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

// One file. What is there of its name is replaced as a whole.
class ReportFile {
 public:
  // Whether one could be written there now; its folder has to be there.
  static Result<std::shared_ptr<const ReportFile>> open(const std::string& path);
  const std::string& path() const { return path_; }

 private:
  friend class ReportDraft;
  ReportFile(std::string path, std::string name, UniqueFd folder)
      : path_(std::move(path)), name_(std::move(name)), folder_(std::move(folder)) {}

  std::string path_;
  std::string name_;  // in its folder
  UniqueFd folder_;
};

// A file beside it that takes its name in the end. Without commit() it goes with this object: half a report is none.
class ReportDraft {
 public:
  static Result<std::unique_ptr<ReportDraft>> create(std::shared_ptr<const ReportFile> report);
  ReportDraft(const ReportDraft&) = delete;
  ReportDraft& operator=(const ReportDraft&) = delete;
  ~ReportDraft();

  int fd() const { return file_.get(); }
  Status commit();

 private:
  ReportDraft(std::shared_ptr<const ReportFile> report, std::string name, UniqueFd file)
      : report_(std::move(report)), name_(std::move(name)), file_(std::move(file)) {}

  std::shared_ptr<const ReportFile> report_;
  std::string name_;  // empty once it has the other
  UniqueFd file_;
};

Status write_report(std::shared_ptr<const ReportFile> report, std::string_view content);

// A folder that was new or empty, and that others may not write to: the user's own group may.
class ArtifactFolder {
 public:
  // Made where it is missing, with those above it. kInvalid: it is not such a folder.
  static Result<std::shared_ptr<const ArtifactFolder>> open(const std::string& path);
  const std::string& path() const { return path_; }

  // `name` is a path below it whose folders are made on the way, none of them a link; no such file is there.
  Result<UniqueFd> make_file(const std::string& name) const;
  Status make_folder(const std::string& name) const;

 private:
  ArtifactFolder(std::string path, UniqueFd folder) : path_(std::move(path)), folder_(std::move(folder)) {}
  std::string path_;
  UniqueFd folder_;
};

}  // namespace monarch
