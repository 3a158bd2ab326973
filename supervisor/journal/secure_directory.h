#pragma once

// Directories that are ours alone. Each is opened once, without following a link, and checked by its descriptor (C39):
// it must be a directory, owned by us, and not writable by others (C12, X17). What is made is 0700 for directories and
// 0600 for files, whatever the umask (C11). Messages name the path.
//
// Thread: any; touches the file system.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/journal/journal_files.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class SecureDirectory {
 public:
  // The last component is checked; those before it are the user's and may be links. kNotFound if it is not there.
  static Result<SecureDirectory> open(const std::string& path);
  // Makes it, and its parents, where missing.
  static Result<SecureDirectory> open_or_create(const std::string& path);

  int fd() const { return fd_.get(); }
  const std::string& path() const { return path_; }
  Result<UniqueFd> duplicate() const;

  // `name` is one component. kNotFound if it is not there.
  Result<SecureDirectory> child(const std::string& name) const;
  Result<SecureDirectory> child_or_create(const std::string& name) const;
  // kBusy if something of that name exists.
  Result<SecureDirectory> create_child(const std::string& name) const;

  // A regular file of ours, made if `flags` has O_CREAT; O_NOFOLLOW and O_CLOEXEC are added.
  Result<UniqueFd> open_file(const std::string& name, int flags) const;
  // kInvalid if it is longer than `limit`.
  Result<std::string> read_file(const std::string& name, std::size_t limit) const;
  // Replaces the file as a whole.
  Status write_file(const std::string& name, std::string_view bytes, Durability durability = Durability::kNow) const;
  // At aside_of(name), until a round makes it durable under its name (sync_round.h).
  Status write_aside(const std::string& name, std::string_view bytes) const;
  // Makes durable what was written to them, and their names.
  Status sync_files(const std::vector<std::string>& names) const;

 private:
  SecureDirectory(UniqueFd fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  static Result<SecureDirectory> open_checked(int parent, const std::string& name, const std::string& path);
  std::string path_of(const std::string& name) const { return path_ + "/" + name; }

  UniqueFd fd_;
  std::string path_;
};

}  // namespace monarch
