#pragma once

// SharedCount: a number that a child of ours writes and this process reads.
//
// Thread: any.

#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <new>

#include "transport/base/result.h"

namespace monarch {

class SharedCount {
 public:
  static Result<std::unique_ptr<SharedCount>> create() {
    void* const page =
        ::mmap(nullptr, sizeof(std::atomic<std::uint64_t>), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return errno_error("mmap", errno);
    return std::unique_ptr<SharedCount>(new SharedCount(new (page) std::atomic<std::uint64_t>(0)));
  }
  ~SharedCount() { (void)::munmap(count_, sizeof *count_); }
  SharedCount(const SharedCount&) = delete;
  SharedCount& operator=(const SharedCount&) = delete;

  void add(std::uint64_t more) { count_->fetch_add(more, std::memory_order_relaxed); }
  void take(std::uint64_t less) { count_->fetch_sub(less, std::memory_order_relaxed); }
  std::uint64_t now() const { return count_->load(std::memory_order_relaxed); }

 private:
  explicit SharedCount(std::atomic<std::uint64_t>* count) : count_(count) {}
  std::atomic<std::uint64_t>* count_;
};

}  // namespace monarch
