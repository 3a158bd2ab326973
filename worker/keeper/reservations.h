#pragma once

// Reservations: the ports and GPUs of gangs, each for one generation. Ports are bound by this process, those of a
// spec's choice and GPUs are also locked against other jobs. Whoever cannot have something is told who has it.
//
// Thread: the keeper's. Lifetime: what is held is let go with it.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/messages/rank.h"
#include "transport/wire/bound_port.h"
#include "worker/keeper/host_locks.h"

namespace monarch {

struct ReservationsOptions {
  std::string host_name;
  std::string job;                            // its id
  std::vector<std::string> lock_directories;  // the first is for its own, see host_locks.h
  std::string root;                           // before /proc, where the numbers of GPUs are read for a message
};

class Reservations {
 public:
  struct Key {
    MeshId mesh;
    GangId gang;
    Generation generation;
    auto operator<=>(const Key&) const = default;
  };

  explicit Reservations(ReservationsOptions options)
      : options_(std::move(options)), locks_(options_.lock_directories, options_.job) {}

  // All of it or nothing. The ports: `count` of them, then those of `fixed`. Asked again, it answers the same, whatever
  // is asked for.
  Result<std::vector<std::uint16_t>> hold(const Reserve& order);
  // The sockets that hold these ports of it, for a child to inherit.
  std::vector<int> sockets(const Key& key, const std::vector<std::uint16_t>& ports) const;
  // Closes them: who inherited them holds them alone.
  void hand_over(const Key& key, const std::vector<std::uint16_t>& ports);
  void release(const Key& key);

 private:
  struct Held {
    std::vector<BoundPort> ports;
    std::vector<std::string> locks;
  };
  Status take(const Reserve& order, Held& held);
  Status take_any(const Reserve& order, Held& held);
  bool holds(std::uint16_t number) const;
  Status take_port(std::uint16_t number, Held& held);
  Status take_gpu(const std::string& uuid, Held& held);
  Status lock(const std::string& thing, const std::string& words, LockSharing sharing, Held& held);
  void unlock(const Held& held);

  ReservationsOptions options_;
  HostLocks locks_;
  std::map<Key, Held> held_;
  std::uint32_t looked_at_ = 0;  // of a range of ports, so far
};

}  // namespace monarch
