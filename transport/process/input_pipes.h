#pragma once

// InputPipes: the pipes that are the standard input of ranks. What a pipe has no room for waits here, one Input's bytes
// at most: more comes once InputTaken has said that it is in. A rank that reads no longer is given nothing more, and
// that is told as if all had been taken.
//
// Thread: the keeper's. Lifetime: within the loop's.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/rank.h"

namespace monarch {

class InputPipes {
 public:
  InputPipes(EventLoop& loop, std::function<void(const InputTaken&)> tell) : loop_(loop), tell_(std::move(tell)) {}
  InputPipes(const InputPipes&) = delete;
  InputPipes& operator=(const InputPipes&) = delete;
  ~InputPipes();

  // The end that it reads.
  Result<UniqueFd> open(const Incarnation& key);
  // Of one rank of the order. Where it has no pipe that is told as taken.
  void give(const Incarnation& key, const Input& order);
  void close(const Incarnation& key);

 private:
  struct Pipe {
    UniqueFd writer;  // invalid: it takes no more
    std::string waiting;
    std::optional<std::uint64_t> next;  // nothing: it has been given nothing yet, and begins wherever that does
    bool end = false;                   // comes after what waits
    WatchId watch = 0;
  };
  void write(const Incarnation& key, Pipe& pipe);
  void shut(Pipe& pipe);

  EventLoop& loop_;
  std::function<void(const InputTaken&)> tell_;
  std::map<Incarnation, Pipe> pipes_;
};

}  // namespace monarch
