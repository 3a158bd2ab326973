#pragma once

// SocketFile: the file of a unix socket of ours: mode 0600, in a folder of ours, and gone with the object if it is
// still this one. Folders of sockets are emptied by others, by a log-out or a cleaner of /tmp: whoever listens looks
// again every kLookPeriod, and makes what is missing anew.
//
// Thread: any, one at a time; touches the file system.

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>

#include "transport/base/result.h"
#include "transport/base/time.h"

namespace monarch {

class SocketFile {
 public:
  static constexpr Duration kLookPeriod = Duration::milliseconds(500);
  // The same moment for all of a process, so that it wakes up once for them.
  static Instant next_look(Instant now);

  // Who makes its folders where they are missing. They are others' where they may be removed before this ends.
  enum class Folders : std::uint8_t { kOurs, kOthers };

  explicit SocketFile(std::string path, Folders folders = Folders::kOurs) : path_(std::move(path)), folders_(folders) {}
  SocketFile(const SocketFile&) = delete;
  SocketFile& operator=(const SocketFile&) = delete;
  ~SocketFile() { remove(); }

  const std::string& path() const { return path_; }
  // Folders of ours on the way (`monarch…`, `w-…`) are made where they are missing, all others must be there.
  Status bind(int socket);
  // It was bound, and nothing is at its path.
  bool is_missing() const;
  void remove();

 private:
  std::string path_;
  Folders folders_ = Folders::kOurs;
  dev_t device_ = 0;  // to know it again
  ino_t inode_ = 0;   // 0: not bound
};

}  // namespace monarch
