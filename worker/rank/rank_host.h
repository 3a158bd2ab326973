#pragma once

// RankHost: the table of functions that a plugin calls (monarch/plugin_v1.h), and what stands behind it: the calls that
// this process makes, and the answers to those that it was given.
//
// Thread: any. Lifetime: longer than that of all plugin code that calls it.

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <monarch/plugin_v1.h>

#include "transport/messages/roster.h"
#include "worker/rank/calls.h"
#include "worker/rank/deliveries.h"
#include "worker/rank/rank_manifest.h"

namespace monarch {

class RankHost {
 public:
  RankHost(const RankPlace& place, bool watches, Calls::CutOff cut_off);
  RankHost(const RankHost&) = delete;
  RankHost& operator=(const RankHost&) = delete;

  const monarch_host_v1& table() const { return table_; }
  Deliveries& deliveries() { return deliveries_; }
  // Of all doors of this process.
  const std::shared_ptr<DoorMemory>& memory() const { return memory_; }
  // Nothing is called any more: what is under way ends.
  void end_calls() { calls_.stop(); }
  // kBusy: no thread for that is to be had. kGone: this process is about to end.
  Status wait_for_post();

 private:
  // The dims of a mesh as C reads them. They stay where they are.
  struct Dims {
    std::vector<std::string> names;
    std::vector<const char*> name_pointers;
    std::vector<std::uint32_t> sizes;
  };

  static RankHost& of(const monarch_host_v1* host) { return *static_cast<RankHost*>(host->runtime); }
  static const void* extension(const monarch_host_v1* host, const char* name);
  // The ring of actors that this wait would close; nothing: the thread may wait.
  std::string begin_wait(std::uint64_t call);
  bool describe(const std::string& mesh, monarch_place_v1& place);

  monarch_host_v1 table_{};
  const std::shared_ptr<DoorMemory> memory_ = std::make_shared<DoorMemory>();  // owners: the doors, and plugins' memory
  Deliveries deliveries_;
  Calls calls_;
  std::mutex mutex_;
  std::map<std::string, Dims> dims_;
};

}  // namespace monarch
