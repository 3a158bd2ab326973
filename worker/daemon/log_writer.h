#pragma once

// LogWriter: takes what the ranks of this host write from their pipes into files, and offers it to the supervisor. A
// rank waits for its host's disk alone: a full disk, an absent or slow supervisor and the other ranks cost bytes that
// are counted, never time. What a full disk does not take is offered all the same, of each stream the newest
// kOutputChunkBytes. Each ready pipe gets one piece a turn, so no rank starves another.
//
// What the supervisor does not take at once is offered again from the file, up to kBacklogBytes for each stream; what
// is older is skipped and counted, and the reader finds it in the file. Where the supervisor keeps a copy, nothing is
// skipped but what the file has rotated away, a stream is said again from where it asks, and a rank's error file is
// said as well.
//
// It does not decide when a rank has ended: its owner says so, from the keeper's word. When a rank wrote why it fails
// it does tell: its error file's time, or that of a traceback on stderr behind which it wrote little more.
//
// Thread: the log thread's. Lifetime: within the loop's and the sink's.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/limits.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/scope.h"
#include "transport/output/log_file.h"
#include "transport/output/log_times.h"
#include "worker/core/daemon_core.h"

namespace monarch::daemon {

// Where output goes besides the file: best effort.
class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // Whether there is anybody to offer anything to. Cheap: it is asked before the bytes are read back.
  virtual bool wanted() const = 0;
  // False: it could not be taken now; sink_ready() tells when to offer again. It never waits.
  virtual bool offer(const Incarnation& incarnation, Output&& output) = 0;
  // What no file took. False: as offer().
  virtual bool offer_unkept(const Incarnation& incarnation, Output&& output) = 0;
  // What the file has no more, where a copy is kept. False: as offer().
  virtual bool gone(const Incarnation& incarnation, const OutputGone& gone) = 0;
};

// The pipes of one incarnation, as the keeper handed them out.
struct LogSource {
  Incarnation incarnation;
  std::string mesh_name;
  std::uint64_t max_bytes = 0;  // of each stream's file
  UniqueFd stdout_pipe;
  UniqueFd stderr_pipe;
  std::optional<Incarnation> standby = {};  // whose pipes they were: what is in them already is still its
};

struct OutputTotals {
  std::uint64_t not_streamed_bytes = 0;  // skipped; they lie in the files
  std::uint64_t lost_bytes = 0;          // the disk did not take them
  std::string failure = {};              // of the last write of some stream; empty: the disk takes all
  auto operator<=>(const OutputTotals&) const = default;
};

class LogWriter {
 public:
  struct Handlers {
    // How far a rank's output lies in its files: at once when it is complete, else at most every kTellPeriod. False: it
    // could not be taken, and is told again.
    std::function<bool(const OutputTold&, const OutputTotals&)> on_progress;
  };
  static constexpr Duration kTellPeriod = Duration::milliseconds(500);
  // What a stream may lag behind its file before the lag is skipped.
  static constexpr std::uint64_t kBacklogBytes = 4U << 20U;
  // An ended rank's pipe that somebody else still holds open is given up after this, once it is empty.
  static constexpr Duration kEndGrace = Duration::seconds(2);

  // A rank whose file has no descriptor is not read meanwhile, and after this what it writes is lost. What is in a pipe
  // that cannot wait, of an ended rank or of a standby that goes on as a rank, is kept here as long.
  static constexpr Duration kDescriptorPatience = Duration::seconds(5);

  // What a rank writes later than this after a traceback says that it lives on.
  static constexpr Duration kTeardown = Duration::seconds(1);
  // Tracebacks that follow each other within this are of one failure.
  static constexpr Duration kOneFailure = Duration::seconds(10);

  // More of an error file is not kept.
  static constexpr std::size_t kErrorFileBytes = 64U << 10U;

  struct Options {
    std::string log_directory;
    bool copied = false;  // the supervisor keeps a copy
  };

  LogWriter(EventLoop& loop, Options options, OutputSink& sink, Handlers handlers);
  ~LogWriter();
  LogWriter(const LogWriter&) = delete;
  LogWriter& operator=(const LogWriter&) = delete;

  // kInvalid for a mesh name that is not one; kBusy for an incarnation that it has already.
  Status add(LogSource source);
  // The rank's tree is empty: its streams have ended or will within kEndGrace.
  void rank_ended(const Incarnation& incarnation);
  void forget(const Incarnation& incarnation);

  // The sink may take something again.
  void sink_ready();
  // Of a copy: what follows on this was missed. Of what is not known here nothing is said.
  void say_again(const Incarnation& incarnation, const OutputFrom& from);

 private:
  struct Stream {
    Stream(const LogFile::Options& file_options, UniqueFd pipe_end, OutputStream which_one)
        : file(file_options),
          times(file_options.directory + "/" + file_options.name),
          pipe(std::move(pipe_end)),
          which(which_one) {}
    // Not all of it is in the file, or is lost.
    bool is_open() const { return pipe.valid() || !held.empty(); }
    LogFile file;
    LogTimes times;
    UniqueFd pipe;
    std::string held;  // what was in the pipe when that was closed, while no descriptor is left for the file
    OutputStream which;
    WatchId watch = 0;
    TimerId look_again = 0;
    Instant short_since = Instant::never();  // of a descriptor for its file
    std::uint64_t streamed = 0;              // offset up to which it was taken by the sink, or skipped
    std::uint64_t lost_before = 0;
    bool failing_before = false;
    std::string unkept;           // what no file took, and nobody was sent
    std::uint64_t unkept_at = 0;  // where the file ended then
  };
  struct Source {
    Incarnation incarnation;
    std::vector<std::unique_ptr<Stream>> streams;
    std::string error_path;
    std::string error;  // the error file, once the rank has ended
    std::size_t error_streamed = 0;
    bool ended = false;
    bool told_complete = false;
    bool dirty = true;
    TimerId grace = 0;
    Instant added_at;
    Instant error_file_at = Instant::never();
    Instant traceback_at = Instant::never();
    Instant last_output_at;
    std::string stderr_end;  // where a traceback's first line may have begun
  };

  Status start_stream(Source& source, Stream& stream);
  Status watch(Source& source, Stream& stream);
  void unwatch(Stream& stream);
  bool has_patience(const Stream& stream) const;
  LogFile::Taken take(Stream& stream);
  void read_later(Source& source, Stream& stream);
  void on_ready(Source& source, Stream& stream);
  void account(Stream& stream);
  void hold(Stream& stream, std::string_view lost);
  bool stream_piece(const Source& source, Stream& stream);
  bool stream_unkept(const Source& source, Stream& stream);
  bool stream_error_file(Source& source);
  bool skip_to(const Source& source, Stream& stream, std::uint64_t offset);
  bool complete(const Source& source) const;
  void look_for_traceback(Source& source, const Stream& stream, const LogFile::Taken& taken);
  void look_at_error_file(Source& source);
  static Instant evidence_of(const Source& source);
  void catch_up();
  void end_stream(Source& source, Stream& stream);
  void give_up(const Incarnation& incarnation);
  void hand_over(const Incarnation& standby);
  void drain(Stream& stream);
  void write_held(Source& source, Stream& stream);
  void changed(Source& source);
  void tell_all();
  bool tell(Source& source);

  EventLoop& loop_;
  Options options_;
  OutputSink& sink_;
  Handlers handlers_;
  std::map<Incarnation, std::unique_ptr<Source>> sources_;
  OutputTotals totals_;
  TimerId tell_timer_ = 0;
  bool tell_armed_ = false;
  bool catching_up_ = false;
  Scope scope_;
};

}  // namespace monarch::daemon
