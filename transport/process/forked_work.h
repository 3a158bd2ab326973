#pragma once

// Work in a copy of this process, for what may hang where no deadline reaches (a dead file system, a device that does
// not answer) or goes on beside its caller. Whoever dies, the copy does not outlive the thread that made it.
//
// Thread: the only one of its process, since it forks without executing.

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"

namespace monarch {

// A copy that runs until it is destroyed: it is killed then. It has this process's standard error and `kept`, and
// nothing else open.
class ForkedWork {
 public:
  static Result<ForkedWork> start(int kept, const std::function<void()>& work);
  ForkedWork(ForkedWork&& other) noexcept = default;
  ForkedWork& operator=(ForkedWork&&) = delete;
  ForkedWork(const ForkedWork&) = delete;
  ForkedWork& operator=(const ForkedWork&) = delete;
  ~ForkedWork();

  // Readable when it has ended.
  int descriptor() const { return pidfd_.get(); }

 private:
  ForkedWork(pid_t pid, UniqueFd pidfd) : pid_(pid), pidfd_(std::move(pidfd)) {}
  pid_t pid_;
  UniqueFd pidfd_;
};

// What the work answers; nothing if it did not within the time, or died, or answered more than `limit` bytes.
std::optional<std::string> answer_within(Duration deadline, std::size_t limit,
                                         const std::function<std::string()>& work);

}  // namespace monarch
