#pragma once

// Step page: a page of memory in which a process counts the steps of its loop, and which another reads. So whoever
// waits for an answer tells what is busy from what makes no progress, though neither of them says anything.
//
// Thread: any.

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "transport/base/result.h"
#include "transport/base/unique_fd.h"
#include "transport/wire/mapped_memory.h"

namespace monarch {

struct StepPage {
  std::shared_ptr<std::atomic<std::uint64_t>> count;  // owner: the loop (EventLoop::count_steps_in)
  UniqueFd reader;                                    // for the other process
};
Result<StepPage> make_step_page();

// Thread: any. Lifetime: a value; what it reads stays where the process that counts has ended.
class SeenSteps {
 public:
  // kInvalid unless `fd` is a page that nobody can shrink.
  static Result<SeenSteps> map(int fd);
  std::uint64_t read() const;

 private:
  explicit SeenSteps(std::shared_ptr<const MappedMemory> page) : page_(std::move(page)) {}
  std::shared_ptr<const MappedMemory> page_;  // owners: copies of this
};

}  // namespace monarch
