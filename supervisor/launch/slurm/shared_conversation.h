#pragma once

// SharedConversation: the talks with the workers of several nodes over the one input and output of their step: its
// lines are told apart by node (step_lines.h) and given to the RemoteConversation of each; what all are asked is said
// once. Nobody is told to start before all have shown themselves, for srun ends all of a step that it could not begin
// on one of its nodes. Then each is a node of its own:
//
//   all show themselves → all are asked whether they have the worker's file → it is sent for one that lacks it, which
//   may be for all of them, and then for all that still do → each executes it, says so, and is given its Bootstrap →
//   each answers
//
// What comes is of nodes that may be broken: it is bounded, and what is of no use keeps nobody waiting.
// WARNING: one that is hostile can speak for another node of the step, and so begin a worker in its name; a step of its
// own cannot.
//
// Thread: values; no I/O, no clock.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "supervisor/launch/talk/remote_conversation.h"
#include "transport/base/step_lines.h"

namespace monarch {

// Of one node. It is there, and sees srun's machine at this address (empty: it does not say): its Bootstrap is wanted.
struct SharedPlaced {
  std::string address;
};
// The last word of it in this step. A worker of a step that has answered goes on in it.
struct SharedAnswer {
  RemoteAnswer answer;
  bool may_run = false;  // it was told to start, if the answer is a failure
};
// It has no part in the step, and no worker begins there by it.
struct SharedLeft {
  bool again = false;  // for want of others: it had shown itself
};
struct SharedNews {
  std::size_t node = 0;  // of those that the conversation began with
  std::variant<SharedPlaced, SharedAnswer, SharedLeft> word;
};

// To be written: the bytes, then all bytes of the file.
struct SharedTurn {
  std::string bytes;
  bool file = false;
};

class SharedConversation {
 public:
  static constexpr std::size_t kLineBytes = 4U << 10U;  // of a line of anybody; more is dropped

  // Orders to start, of one file and job, with names that differ.
  explicit SharedConversation(std::vector<RemoteOrder> orders);

  // What is to be written now, in this order; taken once.
  std::vector<SharedTurn> take_turns();
  // What is new; taken once.
  std::vector<SharedNews> take_news();

  void on_output(std::string_view bytes);
  void give_bootstrap(std::size_t node, std::string frame);
  // Nothing is started there any more, and nothing is told of it.
  void withdraw(std::size_t node);
  // Nobody has said anything for too long. Who was waited for has no part in it any more; before all have shown
  // themselves nobody has.
  void on_silence(std::string_view late = {});  // as of FairTimer
  // It has ended, with what srun said last.
  void on_end(std::string_view words);

  bool any_shown() const { return shown_ > 0; }
  // Another number once anybody has said what was awaited.
  std::uint64_t progress() const { return progress_; }
  // Of whom something is awaited, for people.
  std::string awaited() const;
  // Whether all that have a part in it have the file.
  bool starts() const { return stage_ == Stage::kStart; }
  // Whoever it began with has had its last word.
  bool over() const { return open_ == 0; }

 private:
  enum class Stage : std::uint8_t { kShow, kAsk, kStart };
  enum class State : std::uint8_t {
    kAwaited,  // has to answer what all were asked
    kSaid,
    kExecuted,  // the worker, which has not asked for its Bootstrap
    kTold,      // has its Bootstrap
    kOver,
  };
  struct Node {
    std::string name;
    RemoteConversation conversation;
    StepBytes reply;
    State state = State::kAwaited;
    bool shown = false;
    bool has = false;  // the worker's file
  };

  void on_line(std::string_view line);
  void on_word(std::size_t node, std::string_view rest);
  void show(std::size_t node, std::string_view rest);
  void on_started(std::size_t node, std::string_view rest);
  void on_reply(std::size_t node, std::string_view rest);
  void hear(std::size_t node, std::string_view bytes);
  void answer(std::size_t node, RemoteAnswer answer);
  void leave(std::size_t node, std::string_view late = {});
  void leave_all();
  void advance();
  void ask_all();
  void start_all();
  bool awaits() const;
  void say(const std::string& bytes) { turns_.push_back({.bytes = bytes}); }

  RemoteFile file_;
  std::string job_uuid_;
  std::vector<Node> nodes_;
  Stage stage_ = Stage::kShow;
  int fills_ = 0;  // how often the file was sent
  std::size_t shown_ = 0;
  std::uint64_t progress_ = 0;
  std::size_t open_ = 0;
  std::string bytes_;      // of a line that has not ended yet
  bool dropping_ = false;  // the rest of one that is too long
  std::vector<SharedTurn> turns_;
  std::vector<SharedNews> news_;
};

}  // namespace monarch
