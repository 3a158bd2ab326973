#pragma once

// ViewerDoor: the way to the machine where a job lives. What is behind it is `monarch over-ssh` there; how it is
// reached is the door's own.
//
// Thread: the loop's.

#include <functional>
#include <string>

#include "transport/base/unique_fd.h"

namespace monarch {

// Why there is no connection, in lines for people, and what a command exits with that cannot do without.
struct DoorFailure {
  std::string message;
  std::string help;
  int exit_code = 0;
  bool worth_retrying = false;
};

class ViewerDoor {
 public:
  virtual ~ViewerDoor() = default;
  // One of the two is called, once, by the loop. What was open before is closed.
  struct Handlers {
    std::function<void(UniqueFd stream)> on_open;  // both ways, after the program's greeting
    std::function<void(DoorFailure)> on_failed;
  };
  virtual void open(Handlers handlers) = 0;
  virtual void close() = 0;
  // What became of the last connection, if the door knows: for a message; may be empty.
  virtual std::string last_words() const = 0;
};

}  // namespace monarch
