#pragma once

// JournalFiles: the few operations on a directory that the journal needs, so that tests can fail each of them. The
// posix one works relative to a directory descriptor that somebody has checked, and never follows a link.
//
// Thread: one at a time. Lifetime: outlives every writer and reader made on it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

// 0 if it worked, else the errno: the writer's next step depends on which.
using Errno = int;

class JournalFile {
 public:
  virtual ~JournalFile() = default;
  // All of it or an error; after an error any part of it may be in the file.
  virtual Errno write(std::string_view bytes) = 0;
  virtual Errno sync() = 0;  // data, and what is needed to find it again
  virtual bool deleted() = 0;
};

class JournalFiles {
 public:
  virtual ~JournalFiles() = default;
  // A new file, mode 0600; EEXIST if there is one.
  virtual Errno create(const std::string& name, std::unique_ptr<JournalFile>& file) = 0;
  // One that is there, to be synced.
  virtual Errno open(const std::string& name, std::unique_ptr<JournalFile>& file) = 0;
  virtual Errno rename(const std::string& from, const std::string& to) = 0;
  virtual Errno remove(const std::string& name) = 0;
  virtual Errno sync_directory() = 0;
  // sync() of each, side by side: one wait for the disk. The answers have the order of the files.
  virtual std::vector<Errno> sync_all(const std::vector<JournalFile*>& files) = 0;
  virtual bool deleted() = 0;  // the directory itself has been removed (S07)

  virtual Result<std::vector<std::string>> list() = 0;
  // At most `limit` bytes from `offset`; kNotFound if there is no such file.
  virtual Result<std::string> read(const std::string& name, std::uint64_t offset, std::size_t limit) = 0;
};

std::unique_ptr<JournalFiles> posix_journal_files(UniqueFd directory);

// Whether a loss of power may take back what was written. Each wait for the disk costs milliseconds, so that files
// which are needed together become durable together (sync_round.h, SecureDirectory::sync_files), and one that can be
// made again does not wait at all.
enum class Durability : std::uint8_t { kNow, kLater };

// The bytes of `name` until they are durable, which then get the name.
std::string aside_of(const std::string& name);
// Writes them there. What an earlier crash has left is replaced.
Errno write_aside(JournalFiles& files, const std::string& name, std::string_view bytes);

// Replaces `name` as a whole or not at all: a temporary file, sync, rename, sync of the directory. One component only.
Errno write_file_atomically(JournalFiles& files, const std::string& name, std::string_view bytes,
                            Durability durability = Durability::kNow);

}  // namespace monarch
