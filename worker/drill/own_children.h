#pragma once

// OwnChildren: processes of ours that a strike consists of. They begin once all of them are there, and end with end(),
// with this object, or with the process that started them, however that ends.
//
// Thread: the main one of a process that has no other: they are forked.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class OwnChildren {
 public:
  OwnChildren() = default;
  OwnChildren(const OwnChildren&) = delete;
  OwnChildren& operator=(const OwnChildren&) = delete;
  ~OwnChildren() { end(); }

  // All of them, or none. Each does `work`, and ends when it comes back.
  Status start(std::uint32_t count, const std::function<void()>& work);
  void end();

  std::vector<pid_t> pids() const;
  bool all_live() const;

 private:
  std::vector<std::pair<pid_t, UniqueFd>> children_;
};

// Work that wants all of a processor.
[[noreturn]] void spin();

}  // namespace monarch
