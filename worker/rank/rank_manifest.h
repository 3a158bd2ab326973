#pragma once

// RankManifest: what monarch-rank is to be, as MONARCH_ACTORS says it: the supervisor makes it from `actors` or
// `controller` of a spec. And its place in the job, as the other variables of a rank say it.
//
//   {"dims": {"host": 2, "gpu": 4}, "actors": {"greeter": {"plugin": …, "sha256": …, "class": …, "args": {…}}}}
//   {"dims": {"one": 1}, "controller": {"plugin": …, "sha256": …, "entry": …, "args": {…}}}
//
// Thread: pure functions.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/result.h"

namespace monarch {

struct RankManifest {
  // An actor or a controller.
  struct Part {
    std::string name;    // an actor's
    std::string plugin;  // a path; a relative one starts from the host's copy of the workspace
    std::string sha256;  // of that file, in hexadecimal digits; empty: any
    std::string entry;   // its class or function
    std::string args;    // a MessagePack map
  };
  std::vector<std::pair<std::string, std::uint32_t>> dims;
  std::vector<Part> actors;
  std::optional<Part> controller;  // instead of actors
};

// kInvalid: it is none.
Result<RankManifest> parse_rank_manifest(std::string_view json);

struct RankPlace {
  std::string mesh;
  std::uint32_t rank = 0;
  std::uint64_t generation = 0;
  std::string host;
  std::string post;           // the path of the door
  std::string sockets;        // how the paths of its own begin; empty: it has none
  std::string restart_cause;  // why the generation before has ended; may be empty
  std::string name() const;   // "trainer/3"
};

// `variable`: its value, or nullptr. kInvalid: one is missing, or no number.
Result<RankPlace> read_place(const std::function<const char*(const char* name)>& variable);

}  // namespace monarch
