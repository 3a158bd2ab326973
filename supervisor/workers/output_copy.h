#pragma once

// OutputCopy: the supervisor's copy of what ranks write on hosts that share no disk with it, in the same files and with
// the same offsets as on those hosts. A piece that does not follow on what is there is asked for again from where the
// copy ends, and so is what a beat says is written and has not come for a while; what a host has rotated away before it
// was copied is named in the log, and the copy goes on behind it.
//
// Thread: the output relay's, which waits for the disk; nothing that decides does. Lifetime: the relay's.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/time.h"
#include "transport/messages/output.h"
#include "transport/output/log_file.h"
#include "transport/output/log_times.h"

namespace monarch {

struct OutputCopyOptions {
  std::string log_directory;
  std::vector<std::string> mesh_names;  // by MeshId
  std::uint64_t max_bytes = 0;          // of each stream's file, as on the hosts
  std::size_t most_open = 64;  // ranks whose files are open at a time: of others they are opened when something comes
};

// How much a rank has written, by its host's word.
struct OutputWritten {
  Incarnation process;
  std::uint64_t stdout_bytes = 0;
  std::uint64_t stderr_bytes = 0;
  std::uint32_t error_bytes = 0;
  bool complete = false;
};

class OutputCopy {
 public:
  struct Handlers {
    std::function<void(const Incarnation&, const OutputFrom&)> ask;
    std::function<void(const Incarnation&)>
        on_copied;  // all of it, or what is not can never be; may come more than once
    // Whenever it begins, with the file and the reason, and, empty, once the disk takes all again.
    std::function<void(const std::string& why)> on_failure;
  };
  static constexpr std::size_t kDescriptorsEach = 4;                  // of a rank whose files are open
  static constexpr Duration kPatience = Duration::milliseconds(500);  // before something is asked for (again)
  static constexpr std::size_t kErrorFileBytes = 64U << 10U;          // more of one is not taken

  OutputCopy(OutputCopyOptions options, Handlers handlers);

  // A piece of a rank that was checked to run on the host that says it.
  void on_piece(const Incarnation& process, const Output& piece, Instant now);
  void on_gone(const Incarnation& process, const OutputGone& gone, Instant now);
  void on_written(const OutputWritten& written, Instant now);
  // What has not come for kPatience is asked for again.
  void on_time(Instant now);
  // When on_time() is due; never(): nothing is missing.
  Instant next_due() const;

 private:
  struct Stream {
    std::unique_ptr<LogFile> file;
    std::unique_ptr<LogTimes> times;
    std::uint64_t known = 0;  // bytes that are known to exist
    Instant quiet_since;      // nothing of it has come, or was asked for, since then
    bool failing = false;     // it was said
    std::uint64_t end() const { return file->end_offset(); }
  };
  using Key = std::pair<RankId, std::uint64_t>;  // with the generation's counter
  struct RankCopy {
    Generation generation;
    std::uint64_t used = 0;         // among open_; 0: its files are closed
    std::array<Stream, 2> streams;  // stdout, stderr
    std::string error;
    std::uint32_t error_known = 0;
    Instant error_quiet_since;
    bool complete = false;  // the host says so
    bool done = false;      // told as copied; its files are closed
  };

  RankCopy* rank_of(const Incarnation& process);
  void use(const Key& key, RankCopy& rank);
  void close_files(RankCopy& rank);
  void take(RankId id, RankCopy& rank, OutputStream which, const Output& piece, Instant now);
  static void take_error(RankCopy& rank, const Output& piece, Instant now);
  Status write_error_file(RankId id, const RankCopy& rank) const;
  void check(RankId id, RankCopy& rank);
  void tell_failure() const;
  std::string stem(RankId id, Generation generation) const;

  OutputCopyOptions options_;
  Handlers handlers_;
  std::map<Key, RankCopy> ranks_;
  std::map<std::uint64_t, Key> open_;  // the one that was used last comes last
  std::uint64_t uses_ = 0;
};

}  // namespace monarch
