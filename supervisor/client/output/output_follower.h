#pragma once

// OutputFollower: the output of a job's ranks, whole, from two sources: pieces that the supervisor streams (some may be
// missing, when somebody was too slow) and the files that hold all of it. A piece that follows on what is known is
// passed on at once; anything else is read from the file. What a file does not hold (it was rotated away) is counted,
// never passed over in silence.
//
// It reads files in steps of a bounded size, so its owner can stop when its own reader is slow.
//
// Thread: the viewer's loop; it reads regular files there, which a viewer may wait for.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/client/output/log_times_reader.h"
#include "supervisor/client/output/output_start.h"
#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/messages/output.h"

namespace monarch {

struct StreamId {
  RankId rank;
  std::uint64_t generation = 0;  // the counter
  OutputStream stream = OutputStream::kStdout;
  auto operator<=>(const StreamId&) const = default;
};

class OutputSink {
 public:
  virtual ~OutputSink() = default;
  // Bytes of one stream, in order and without a gap. `written`: about when; nothing: now, or nobody asked.
  virtual void on_output(const StreamId& stream, std::string_view bytes, std::optional<WallTime> written) = 0;
  // These bytes of the stream exist nowhere any more.
  virtual void on_lost(const StreamId& stream, std::uint64_t bytes) = 0;
  // Whether bytes of this stream are taken now. While not, they wait in their file, and other streams go on.
  virtual bool takes(const StreamId& stream) const {
    (void)stream;
    return true;
  }
};

struct OutputFollowerOptions {
  std::string log_directory;                         // <mesh>/<rank>.<generation>.{out,err} are below it
  std::vector<std::string> mesh_names;               // by MeshId
  std::function<bool(const StreamId&)> wanted = {};  // empty: all
  bool with_times = false;                           // of what is read from files
};

class OutputFollower {
 public:
  OutputFollower(OutputFollowerOptions options, OutputSink& sink);

  // What is in the files now counts as seen, back to the start of an unfinished last line: for a viewer that joins
  // late.
  void skip_what_is_there();
  // What is in the files now and is not meant counts as seen.
  void start_at(const OutputStart& start);

  // A streamed piece.
  void on_piece(const StreamId& stream, std::uint64_t offset, std::string_view bytes);

  // What no file took when that ended at `offset`: passed on in its place, of each stream the newest kOutputChunkBytes.
  void on_unkept(const StreamId& stream, std::uint64_t offset, std::string_view bytes);

  // Looks which files there are and how long they have become; read_on() then reads what is new.
  void look_at_files();

  // Reads one step of what is missing. False: nothing is missing that a file could give now.
  bool read_on();
  // Streams that wait for bytes that are not in their file yet. Reading is tried again when the owner calls read_on()
  // later; give_up() counts those bytes as lost.
  bool waits() const;
  // Streams that wait because the sink does not take them now.
  bool held() const;
  void give_up();

  static constexpr std::size_t kStepBytes = 256U << 10U;

 private:
  struct Stream {
    std::uint64_t next = 0;   // passed on up to here
    std::uint64_t known = 0;  // bytes that are known to exist
    std::string unkept;       // waits until what was before it is passed on
    std::uint64_t unkept_at = 0;
  };
  enum class Step : std::uint8_t { kRead, kNothingThere };

  Stream* find(const StreamId& id);
  void pass_unkept_on(const StreamId& id, Stream& stream);
  Step read_step(const StreamId& id, Stream& stream);
  std::optional<WallTime> time_of(const StreamId& id, std::uint64_t offset, std::uint64_t& end);
  std::string path_of(const StreamId& id) const;
  template <class Visit>
  void each_file(Visit visit) const;

  OutputFollowerOptions options_;
  OutputSink& sink_;
  std::map<StreamId, Stream> streams_;
  std::optional<StreamId> current_;  // read up to current_end_ before another one has its turn
  std::uint64_t current_end_ = 0;
  std::optional<StreamId> times_of_;
  LogTimesReader times_;
};

// "3.1.out": rank 3, generation 1, stdout. Nothing for other names.
struct OutputFileName {
  Rank rank;
  std::uint64_t generation = 0;
  OutputStream stream = OutputStream::kStdout;
};
std::optional<OutputFileName> parse_output_file_name(std::string_view name);
std::string output_file_name(const OutputFileName& name);

}  // namespace monarch
