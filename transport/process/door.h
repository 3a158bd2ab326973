#pragma once

// Door: a TCP port that answers one word with another, in a process of its own, to prove that a machine can be reached
// there, and that it is the right one. Nothing else is ever said or read there.
//
// Thread: the only one of its process (it forks). Lifetime: the port is open as long as the object lives.

#include <cstdint>
#include <memory>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/messages/check.h"
#include "transport/process/forked_work.h"

namespace monarch {

class Door {
 public:
  // At the first free port of first to last; 0: any. kBusy: none is free.
  static Result<std::unique_ptr<Door>> open(const DoorWords& words, std::uint16_t first, std::uint16_t last);
  std::uint16_t port() const { return port_; }

 private:
  Door(std::uint16_t port, ForkedWork answerer) : port_(port), answerer_(std::move(answerer)) {}
  std::uint16_t port_;
  ForkedWork answerer_;
};

// All at once; answers in the order of the calls.
std::vector<DoorReached> knock(const std::vector<DoorCall>& calls, const DoorWords& words, Duration patience);

// The numeric address of this machine from which it would reach another; empty: there is no way there.
std::string address_towards(const DoorCall& call);

}  // namespace monarch
