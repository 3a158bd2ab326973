#pragma once

// RankProcess: what a process of monarch-rank is, once for all: its place, what it is to be, and the plugins that it
// has loaded, which it never lets go. PlaceTexts is a place as C reads it.
//
// Thread: the process's first; PlaceTexts is a value.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <monarch/plugin_v1.h>

#include "transport/base/result.h"
#include "transport/base/text.h"
#include "worker/rank/plugin.h"
#include "worker/rank/rank_manifest.h"

namespace monarch {

struct RankProcess {
  RankPlace place;
  RankManifest manifest;
  std::string tree;    // where a relative plugin lies; empty: in the working directory
  std::string copies;  // where copies of plugins lie, for all ranks of this host
  std::map<std::string, std::unique_ptr<Plugin>> plugins;

  Result<const Plugin*> plugin_of(const RankManifest::Part& part) {
    const bool below = part.plugin.front() != '/' && !tree.empty();
    const std::string path = below ? text(tree, '/', part.plugin) : part.plugin;
    auto& plugin = plugins[path];
    if (plugin == nullptr) {
      MONARCH_ASSIGN(plugin, Plugin::open(path, part.sha256, copies));
    }
    return static_cast<const Plugin*>(plugin.get());
  }
};

class PlaceTexts {
 public:
  // `args`: a MessagePack map.
  PlaceTexts(const RankProcess& process, std::string actor, std::string args)
      : process_(process), actor_(std::move(actor)), args_(std::move(args)) {
    for (const auto& [name, size] : process.manifest.dims) {
      names_.push_back(name.c_str());
      sizes_.push_back(size);
    }
  }
  monarch_place_v1 place() const {
    return {.struct_size = sizeof(monarch_place_v1),
            .rank = process_.place.rank,
            .generation = process_.place.generation,
            .mesh = process_.place.mesh.c_str(),
            .actor = actor_.c_str(),
            .host = process_.place.host.c_str(),
            .why_restarted = process_.place.restart_cause.c_str(),
            .dim_count = static_cast<std::uint32_t>(sizes_.size()),
            .reserved = 0,
            .dim_names = names_.data(),
            .dim_sizes = sizes_.data(),
            .args = {args_.data(), args_.size()}};
  }

 private:
  const RankProcess& process_;
  std::string actor_;
  std::string args_;
  std::vector<const char*> names_;
  std::vector<std::uint32_t> sizes_;
};

}  // namespace monarch
