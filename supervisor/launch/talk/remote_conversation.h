#pragma once

// RemoteConversation: the talk with the script of remote_script.h that puts a worker on a host, or ends it there, or
// lets it look at the host, or starts a monarch there: bytes come in, what is to be written comes out, and in the end
// one answer. Whoever owns the connection carries the bytes, keeps the deadline, and fills in what only he knows of a
// failure (how long it took, how to see it again).
//
// Everything that comes is of a host that may be broken or hostile: it is bounded, and decoded as a stranger's.
//
// Thread: values; no I/O, no clock.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "supervisor/core/state/launch_failure.h"
#include "supervisor/launch/talk/remote_script.h"
#include "transport/base/program_greeting.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"

namespace monarch {

enum class RemotePurpose : std::uint8_t { kStart, kEnd, kCheck, kWorkspace, kProgram };

struct RemoteOrder {
  RemotePurpose purpose = RemotePurpose::kStart;
  RemoteMark mark;
  RemoteFile file;                   // what is shipped; its bytes are the driver's
  std::string machine;               // what it was built for, as `uname -m` says it
  std::string installed;             // not empty: the worker on the host; nothing is shipped
  std::string_view worker_key = {};  // of the spec, that can name one; empty: none can
  std::string bootstrap;             // kStart: the frame
  std::string_view manifest = {};    // kWorkspace: of the tree; the driver's, as its blobs are
  std::size_t blobs = 0;             // kWorkspace: how many it has
  std::string word = {};             // kProgram: the subcommand; `file` is a bundle
  bool lies_there = false;           // kProgram: the host had it, and nobody here has its bytes
  bool speaks = false;               // kCheck: it is what is spoken to, with no script before it
};

// All of this job on this host has ended.
struct RemoteEnded {
  std::uint64_t processes = 0;  // that had to be killed
  bool orderly() const { return processes == 0; }
  std::string how() const;  // for people
};

// A check that was told of nothing more has left.
struct RemoteLeft {};

// The job's tree is on this host.
struct RemoteWorkspace {
  std::uint64_t bytes = 0;  // that it had to be sent
};

// It runs and has greeted: what comes from now on is its own, and so are the bytes that have come already
// (take_heard()).
struct RemoteProgram {
  std::string path;  // of monarch on the host
};

using RemoteAnswer =
    std::variant<BootstrapReply, RemoteEnded, RemoteLeft, RemoteWorkspace, RemoteProgram, LaunchFailure>;

// To be written to the script's standard input, in this order.
struct RemoteTurn {
  std::string bytes;
  bool file = false;                    // then all bytes of the file
  std::vector<std::size_t> blobs = {};  // then those of these blobs, one after the other
};

class RemoteConversation {
 public:
  static constexpr std::size_t kNoiseBytes = 64U
                                             << 10U;  // of the shell's rc files, before the marker; more is a failure
  static constexpr std::size_t kWordsBytes = 4U << 10U;  // kept for the answer; what came later is dropped
  static constexpr std::size_t kLineBytes = 4U << 10U;   // of an answer of the script's
  static constexpr std::size_t kReplyBytes = 64U << 10U;
  static constexpr std::size_t kHeardBytes = 2U << 20U;  // of a check, not taken yet

  // The words of `order` are is_remote_word() and its path has no newline: checked where the spec is.
  explicit RemoteConversation(RemoteOrder order)
      : order_(std::move(order)), state_(order_.speaks ? State::kTalk : State::kMarker), path_(order_.installed) {}

  // What is to be written now; taken once.
  RemoteTurn take_turn();

  void on_output(std::string_view bytes);  // of its standard output
  void on_words(std::string_view bytes);   // of its standard error
  // Both have ended. The exit status (128+n for a signal), if the connection lived long enough to tell it.
  void on_end(std::optional<int> exit_status);

  // kCheck: what is said and heard now is the check's own. kProgram: what was heard behind the greeting is the
  // program's.
  bool talking() const { return state_ == State::kTalk; }
  void say(std::string_view bytes) { turn_.bytes += bytes; }
  std::string take_heard() { return std::exchange(bytes_, {}); }

  // Set once, never changed after: nothing more is to be written, the connection can be closed.
  const std::optional<RemoteAnswer>& answer() const { return answer_; }

  // What a deadline that has passed now is to be answered with: whom was waited for. `late`: as of FairTimer.
  LaunchFailure timed_out(std::string_view late = {}) const;
  // From where the host was reached, where that is known only there, as a stranger says it; empty: it does not say.
  // Nothing: not yet.
  const std::optional<std::string>& place() const { return place_; }
  // kStart, where the frame says from where: before the worker has been executed.
  void give_bootstrap(std::string frame) { order_.bootstrap = std::move(frame); }
  // "start", "copy", "workspace", "end" or "check", for failures that the driver sees by itself.
  std::string phase() const;
  // Lines of the protocol, so far: what else comes is nothing that gets on.
  std::uint64_t understood() const { return understood_; }
  // kWorkspace: bytes of it that the host said have come, of a stranger's word.
  std::uint64_t came() const { return came_; }
  // What the host said beside the protocol, from its first word.
  const std::string& words() const { return words_; }

 private:
  enum class State : std::uint8_t { kMarker, kPlace, kStored, kReply, kEnded, kTalk, kNeeds, kBuilt, kGreeting };

  void take_lines();
  void on_marker(std::string_view line);
  void on_line(std::string_view line);
  void on_failed(std::string_view rest);
  void on_ended(std::string_view line);
  void on_executed();
  void on_need(std::string_view line);
  void on_built(std::string_view line);
  void try_reply(bool ended);
  void ask();
  void fail(LaunchFailureKind kind, std::string message);
  std::string awaited() const;
  std::string said() const;
  void note(std::string_view words);
  LaunchFailure failure(LaunchFailureKind kind, std::string message) const;
  std::string noise_failure() const;
  std::string_view file_name() const;
  void ended_unheard(int exit_status);
  std::string advice(std::string_view before, std::string_view behind) const;

  RemoteOrder order_;
  State state_;
  bool copied_ = false;  // it was asked for once: twice is the host's fault
  std::size_t noise_ = 0;
  std::string path_;  // of the worker on the host
  std::optional<std::string> place_;
  std::vector<std::size_t> needed_;  // of the blobs
  bool asked_again_ = false;         // for some of them
  std::uint64_t came_ = 0;
  std::uint64_t understood_ = 0;
  std::string bytes_;  // that came and are not understood yet
  std::string words_;
  RemoteTurn turn_;
  std::optional<RemoteAnswer> answer_;
};

}  // namespace monarch
