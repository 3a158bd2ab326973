#pragma once

// What passes between a viewer here and the `monarch over-ssh` that runs it on another machine: frames of a kind, a
// length and a payload, either way over a stream of bytes. Whoever is at the other end may be anybody: a length is
// judged before anything is kept, a kind that is not known and a payload that cannot be read end the talk.
//
//   kind (1 byte)  length (8 bytes, the highest first)  payload
//
// In each direction some kinds are counted. The other side says how many it has taken: so both know what to send again
// after the connection was lost and made anew, and nobody keeps more than what is on its way.
//
// Thread: values and pure functions.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "supervisor/client/job_glance.h"
#include "transport/base/result.h"

namespace monarch {

enum class ViewerFrameKind : std::uint8_t {
  // From the viewer's machine.
  kOrder = 1,   // first, and once: ViewerOrder
  kSignal = 2,  // counted: a number, for the viewer there
  kWindow = 3,  // counted: columns of stdout's and stderr's terminals
  kClosed = 4,  // counted: 1 or 2, a stream that nobody reads any more
  kTaken = 5,   // how many of the counted frames from there were taken
  kPing = 6,
  // From the job's machine.
  kWelcome = 16,    // first: ViewerWelcome
  kRefused = 17,    // first: why not, in words
  kOut = 18,        // counted: bytes of stdout
  kErr = 19,        // counted: bytes of stderr
  kFile = 20,       // counted: ViewerFile; its bytes follow
  kFileBytes = 21,  // counted
  kEnd = 22,        // counted, and last: ViewerEnd
  kPong = 23,
};

// Those that are numbered and sent again.
bool is_counted(ViewerFrameKind kind);

inline constexpr std::size_t kViewerPayloadBytes = 256U << 10U;  // a longer one is refused unread
inline constexpr std::size_t kViewerHeaderBytes = 9;
inline constexpr std::uint64_t kViewerLingersMost = 120;

struct ViewerFrame {
  ViewerFrameKind kind = ViewerFrameKind::kPing;
  std::string payload;
  bool operator==(const ViewerFrame&) const = default;
};

// `payload` is at most kViewerPayloadBytes.
std::string encode_frame(ViewerFrameKind kind, std::string_view payload = {});

// Bytes in, frames out. Who feeds it takes all frames before it feeds more: then it holds one frame and what was fed,
// no more.
class ViewerFrameReader {
 public:
  void feed(std::string_view bytes) { bytes_.append(bytes); }
  // Nothing: the next one is not whole yet. kInvalid: what came is none of ours, and nothing is read after it.
  Result<std::optional<ViewerFrame>> next();
  bool empty() const { return bytes_.size() == begin_; }

 private:
  std::string bytes_;
  std::size_t begin_ = 0;  // of what has not been taken
};

// What is to run there. `words` are a command line of monarch's.
struct ViewerOrder {
  std::vector<std::string> words;
  std::string job;                                             // its id, which is said of at the end
  std::vector<std::pair<std::string, std::string>> variables;  // by which colours and folding are chosen
  std::string terminal;                                        // as in MONARCH_TERMINAL
  bool junit = false;                                          // files that are to be sent at the end
  bool artifacts = false;
  // Seconds for which the viewer waits for a new connection; it is cut to kViewerLingersMost.
  std::uint64_t lingers = 0;
  // Instead of all that: the viewer of this token goes on here, after so many frames.
  std::string token;
  std::uint64_t taken = 0;
  bool operator==(const ViewerOrder&) const = default;
};
std::string encode_order(const ViewerOrder& order);
Result<ViewerOrder> decode_order(std::string_view payload);

struct ViewerWelcome {
  std::string token;         // by which it is found again
  std::uint64_t heard = 0;   // counted frames that came
  std::string version = {};  // of monarch there
  bool operator==(const ViewerWelcome&) const = default;
};
std::string encode_welcome(const ViewerWelcome& welcome);
Result<ViewerWelcome> decode_welcome(std::string_view payload);

inline constexpr std::string_view kReportFileName = "junit.xml";
inline constexpr std::string_view kArtifactsFolder = "artifacts/";
// `name` is kReportFileName, or kArtifactsFolder and at most four more parts, none of which is a dot, two, or begins
// with one.
struct ViewerFile {
  std::string name;
  std::uint64_t size = 0;
  bool operator==(const ViewerFile&) const = default;
};
std::string encode_file(const ViewerFile& file);
Result<ViewerFile> decode_file(std::string_view payload);

struct ViewerEnd {
  int exit_code = 0;
  int signal = 0;  // that ended the viewer there; 0: none
  JobGlance job;
  bool operator==(const ViewerEnd&) const = default;
};
std::string encode_end(const ViewerEnd& end);
Result<ViewerEnd> decode_end(std::string_view payload);

// Of kSignal, kWindow, kClosed and kTaken.
std::string encode_numbers(std::initializer_list<std::uint64_t> numbers);
// kInvalid unless it is exactly so many.
Result<std::vector<std::uint64_t>> decode_numbers(std::string_view payload, std::size_t count);

}  // namespace monarch
