#pragma once

// LaunchLocal: what a spec says of virtual hosts of this machine.
//
// Thread: a value.

#include <cstdint>
#include <optional>

#include "supervisor/core/spec/launch_facts.h"

namespace monarch {

struct LaunchLocal {
  std::optional<std::uint32_t> hosts;  // the pool; nothing: need + spares
  std::uint32_t spares = 0;
  PrepareSpec prepare = {};
  bool operator==(const LaunchLocal&) const = default;
};

inline LaunchFacts facts_of(const LaunchLocal& local) {
  LaunchFacts facts;
  facts.name = "local";
  facts.pool = local.hosts;
  facts.spares = local.spares;
  facts.prepare = local.prepare;
  return facts;
}

}  // namespace monarch
