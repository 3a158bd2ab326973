#pragma once

// LogFile: one stream of one incarnation of a rank, from its pipe into a file. It never blocks but on the disk and
// never fails: what the disk does not take is handed to the caller, counted, and named by a line in the file once it
// takes bytes again. A file server that knows the file no more is asked for it again by name. Bytes go from pipe to
// file inside the kernel (splice(2)), so that a daemon killed at any instant loses and repeats none: its successor goes
// on at the file's end.
//
// Offsets count the bytes of the stream that the disk took, from its first one, over all rotations. With a limit, a
// full `NAME` becomes `NAME.1` (one is kept) and a new `NAME` is begun; `NAME.start` then says where `NAME` begins:
//
//   no such file     NAME begins at offset 0
//   "1000"           NAME begins at 1000, and NAME.1 ends there
//   "0 1000"         a rotation is under way: NAME, if it is there and not empty, is still the one that begins at 0;
//                    otherwise the next NAME begins at 1000
//
// A reader maps an offset with that; what begins before NAME.1 is lost by rotation.
//
// The supervisor's copy of a host's file is written by put(), of bytes that came over the network, with the host's
// offsets.
//
// WARNING: not O_APPEND, which splice(2) refuses with EINVAL: the position is ours. There is one writer, since a keeper
// starts a daemon only when the one before is dead.
//
// Thread: the log thread's. Lifetime: its source's.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

// Its process, or the machine, has as many as it may.
bool is_short_of_descriptors(const Status& status);

class LogFile {
 public:
  struct Options {
    std::string directory;        // <log directory>/<mesh>; made on demand, 0700
    std::string name;             // "3.1.out"
    std::uint64_t max_bytes = 0;  // before it is rotated; 0: never
  };

  // What one take() did with the pipe.
  enum class Outcome : std::uint8_t {
    kWritten,  // `bytes` went into the file, at `offset` of the stream
    kLost,     // the disk did not take them: they are in `lost`, and would be at `offset`
    kEmpty,    // nothing is there now
    kEnded,    // nothing will ever be there
    kWaits,    // this process has no descriptor for the file just now: they stay in the pipe
  };
  struct Taken {
    Outcome outcome = Outcome::kEmpty;
    std::uint64_t offset = 0;
    std::size_t bytes = 0;
    std::string lost = {};  // also beside kWritten: what came behind
  };

  explicit LogFile(Options options) : options_(std::move(options)) {}
  LogFile(const LogFile&) = delete;
  LogFile& operator=(const LogFile&) = delete;

  // Opens or makes the file and finds its end. take() does it too where it was not done or failed.
  Status open();
  // Moves at most `limit` bytes.
  Taken take(int pipe, std::size_t limit);
  // The same, and kWaits instead of kLost where a descriptor is all that is missing: is_short_of_descriptors().
  Taken take_or_wait(int pipe, std::size_t limit);
  // Appends `bytes`; how many of them the disk took. What it did not is the caller's still, and is not counted as lost.
  std::size_t put(std::string_view bytes);
  // So many more, which put() did not take, are nobody's.
  void lose(std::uint64_t bytes);
  // What was there is given up, and the next byte is the one at `offset`.
  Status begin_at(std::uint64_t offset);
  // Nothing more comes: gives its descriptors back. What is read back is then opened each time.
  void close();
  // Reads back what take() wrote; fewer bytes or none after an error of the disk.
  std::size_t read_back(std::uint64_t offset, char* to, std::size_t bytes) const;

  std::uint64_t start_offset() const { return start_; }
  std::uint64_t end_offset() const { return start_ + size_; }
  std::uint64_t lost_bytes() const { return lost_bytes_; }
  // Whether the last attempt to write failed, and how.
  bool failing() const { return failing_; }
  const std::string& failure() const { return failure_; }

 private:
  Status find_start();
  Status write_start(const std::string& content);
  Status rotate();
  Status continue_rotation();
  Status make_ready();
  Status name_loss();
  Taken move(int pipe, std::size_t limit);
  Taken copy(int pipe, std::size_t limit);
  Taken divert(int pipe, std::size_t limit, const Error& why);
  Error refused(int error);
  void failed(const Error& why);
  Taken written(std::size_t bytes);

  Options options_;
  UniqueFd directory_;
  UniqueFd file_;
  std::uint64_t start_ = 0;  // offset of the file's first byte
  std::uint64_t size_ = 0;   // of the file
  std::uint64_t next_start_ = 0;
  bool rotating_ = false;  // NAME.start has two numbers
  bool splices_ = true;    // not every file system can
  bool failing_ = false;
  std::string failure_;
  std::uint64_t lost_bytes_ = 0;
  std::uint64_t unnamed_loss_ = 0;  // not yet named in the file
};

}  // namespace monarch
