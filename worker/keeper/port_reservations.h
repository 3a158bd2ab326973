#pragma once

// PortReservations: TCP ports that are bound and not listened on, so that nobody is given them, while a socket with
// SO_REUSEADDR can still bind and listen on them (as torch's store does).
//
// Thread: the keeper's.

#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class PortReservations {
 public:
  struct Key {
    MeshId mesh;
    GangId gang;
    Generation generation;
    auto operator<=>(const Key&) const = default;
  };

  // Asked again, it answers the same ports, whatever the count.
  Result<std::vector<std::uint16_t>> reserve(const Key& key, std::uint32_t count);
  void release(const Key& key) { held_.erase(key); }

 private:
  struct Port {
    UniqueFd socket;
    std::uint16_t number = 0;
  };
  static Result<Port> bind_one();

  std::map<Key, std::vector<Port>> held_;
};

}  // namespace monarch
