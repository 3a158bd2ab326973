#pragma once

// RemoteConversation: the talk with the script of remote_script.h that puts a worker on a host, or ends it there: bytes come in, what
// is to be written comes out, and in the end one answer. Whoever owns the connection carries the bytes, keeps the deadline, and fills
// in what only he knows of a failure (how long it took, how to see it again).
//
// Everything that comes is of a host that may be broken or hostile: it is bounded, and decoded as a stranger's.
//
// Thread: values; no I/O, no clock.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>

#include "supervisor/core/launch_failure.h"
#include "supervisor/launch/ssh/remote_script.h"
#include "transport/base/control_messages.h"

namespace monarch {

enum class RemotePurpose : std::uint8_t { kStart, kEnd };

struct RemoteOrder {
  RemotePurpose purpose = RemotePurpose::kStart;
  RemoteMark mark;
  RemoteFile file;        // what is shipped; its bytes are the driver's
  std::string machine;    // what it was built for, as `uname -m` says it
  std::string installed;  // not empty: the worker on the host; nothing is shipped
  std::string bootstrap;  // kStart: the frame
};

// All of this job on this host has ended.
struct RemoteEnded {
  std::uint64_t processes = 0;  // that had to be killed
};

using RemoteAnswer = std::variant<BootstrapReply, RemoteEnded, LaunchFailure>;

// To be written to the script's standard input, in this order.
struct RemoteTurn {
  std::string bytes;
  bool file = false;  // then all bytes of the file
};

class RemoteConversation {
 public:
  static constexpr std::size_t kNoiseBytes = 64U
                                             << 10U;  // of the shell's rc files, before the marker; more is a failure
  static constexpr std::size_t kWordsBytes = 4U << 10U;  // kept for the answer; what came later is dropped
  static constexpr std::size_t kLineBytes = 4U << 10U;   // of an answer of the script's
  static constexpr std::size_t kReplyBytes = 64U << 10U;

  // The words of `order` are is_remote_word() and its path has no newline: checked where the spec is.
  explicit RemoteConversation(RemoteOrder order) : order_(std::move(order)) {}

  // What is to be written now; taken once.
  RemoteTurn take_turn();

  void on_output(std::string_view bytes);  // of its standard output
  void on_words(std::string_view bytes);   // of its standard error
  // Both have ended. The exit status (128+n for a signal), if the connection lived long enough to tell it.
  void on_end(std::optional<int> exit_status);

  // Set once, never changed after: nothing more is to be written, the connection can be closed.
  const std::optional<RemoteAnswer>& answer() const { return answer_; }

  // What a deadline that has passed now is to be answered with: whom was waited for.
  LaunchFailure timed_out() const;
  // "start" or "copy" or "end", for failures that the driver sees by itself.
  std::string phase() const;
  // What the host said beside the protocol, from its first word.
  const std::string& words() const { return words_; }

 private:
  enum class State : std::uint8_t { kMarker, kPlace, kStored, kReply, kEnded };

  void take_lines();
  void on_marker(std::string_view line);
  void on_line(std::string_view line);
  void on_failed(std::string_view rest);
  void on_ended(std::string_view line);
  void try_reply(bool ended);
  void ask();
  void fail(LaunchFailureKind kind, std::string message);
  void note(std::string_view words);
  LaunchFailure failure(LaunchFailureKind kind, std::string message) const;
  std::string noise_failure() const;

  RemoteOrder order_;
  State state_ = State::kMarker;
  bool copied_ = false;  // it was asked for once: twice is the host's fault
  std::size_t noise_ = 0;
  std::string path_;   // of the worker on the host
  std::string bytes_;  // that came and are not understood yet
  std::string words_;
  RemoteTurn turn_;
  std::optional<RemoteAnswer> answer_;
};

}  // namespace monarch
