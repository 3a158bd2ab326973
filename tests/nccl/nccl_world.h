#pragma once

// What a group of NCCL's needs beside the fake libnccl.so.2: a driver whose streams are those of the fake, with memory
// of the host for that of GPUs, and a tie that a test pulls.
//
// Thread: any.

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tests/nccl/fake_counts.h"
#include "transport/base/text.h"
#include "transport/tensor/cuda/driver.h"
#include "transport/tensor/nccl/group_tie.h"
#include "transport/tensor/nccl/nccl_group.h"

namespace monarch::fake_nccl {

class FakeScope final : public tensor::CudaScope {
 public:
  explicit FakeScope(int device) : set_(find<SetContext>(kSetContext)) {
    if (set_ != nullptr) set_(device);
  }
  ~FakeScope() override {
    if (set_ != nullptr) set_(-1);
  }

 private:
  const SetContext set_;
};

class FakeEvent final : public tensor::CudaEvent {
 public:
  explicit FakeEvent(std::uint64_t stream)
      : stream_(stream), until_(find<OfStream>(kEnqueued)(stream)), ended_(find<OfStream>(kEnded)) {}
  Result<bool> is_done() override {
    if (stream_ == kFailedStream) return Error{ErrorCode::kDevice, "GPU 0: CUDA_ERROR_ILLEGAL_ADDRESS"};
    return ended_(stream_) >= until_;
  }

  static constexpr std::uint64_t kFailedStream = 77;

 private:
  const std::uint64_t stream_;
  const std::uint64_t until_;
  const OfStream ended_;
};

// One GPU of a machine of eight. All memory is its own, but for what it is told.
class FakeDriver final : public tensor::Cuda {
 public:
  explicit FakeDriver(int device) : device_(device) {}

  std::string device_name(int device) override { return text("GPU ", device, " (fake)"); }
  Result<int> device_of(const char* at) override {
    if (at == nullptr) return Error{ErrorCode::kInvalid, "the driver knows no memory at 0"};
    return at == others_ ? device_ + 1 : device_;
  }
  Status check(const tensor::CudaStream& stream) override {
    if (stream.handle != kCaptured) return {};
    return Error{ErrorCode::kInvalid, "the stream is captured into a graph"};
  }
  Result<std::unique_ptr<tensor::CudaPin>> pin(char* /*start*/, std::uint64_t /*bytes*/) override {
    return Error{ErrorCode::kUnsupported, "it pins nothing"};
  }
  Status to_host(const tensor::CudaCopy& /*copy*/, const tensor::CudaStream& /*stream*/) override { return {}; }
  Status to_device(const tensor::CudaCopy& /*copy*/, const tensor::CudaStream& /*stream*/) override { return {}; }
  Result<std::unique_ptr<tensor::CudaEvent>> record(const tensor::CudaStream& stream) override {
    return std::unique_ptr<tensor::CudaEvent>(std::make_unique<FakeEvent>(stream.handle));
  }
  Result<std::unique_ptr<tensor::CudaScope>> enter(int device) override {
    {
      std::unique_lock lock(mutex_);
      if (holds_next_) {
        holds_next_ = false;
        held_ = true;
        changed_.notify_all();
        changed_.wait(lock, [&] { return !held_; });
      }
    }
    if (device >= 8) return Error{ErrorCode::kInvalid, text("there is no GPU ", device, ": CUDA_ERROR_INVALID_DEVICE")};
    return std::unique_ptr<tensor::CudaScope>(std::make_unique<FakeScope>(device));
  }

  static constexpr std::uint64_t kCaptured = 78;
  void give_to_another(const void* memory) { others_ = static_cast<const char*>(memory); }
  // Who enters next stays there, before his call, until he is let go.
  void hold_next() {
    const std::lock_guard lock(mutex_);
    holds_next_ = true;
  }
  void wait_until_held() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return held_; });
  }
  void let_go() {
    const std::lock_guard lock(mutex_);
    held_ = false;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool holds_next_ = false;
  bool held_ = false;
  const int device_;
  const char* others_ = nullptr;
};

class TestTie final : public tensor::GroupTie {
 public:
  std::optional<std::string> lost() override {
    const std::lock_guard lock(mutex_);
    return lost_;
  }
  void wait(const std::function<bool()>& stop) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return lost_ || stop(); });
  }
  void wake() override {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  Status finish(Instant /*until*/) override {
    const std::lock_guard lock(mutex_);
    return finished_;
  }
  void leave(const std::string& why) override {
    const std::lock_guard lock(mutex_);
    left_.push_back(why);
  }

  void lose(const std::string& cause) {
    const std::lock_guard lock(mutex_);
    lost_ = cause;
    changed_.notify_all();
  }
  void fail_to_finish(const Error& error) {
    const std::lock_guard lock(mutex_);
    finished_ = error;
  }
  std::vector<std::string> left() {
    const std::lock_guard lock(mutex_);
    return left_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::optional<std::string> lost_;
  std::vector<std::string> left_;
  Status finished_;
};

}  // namespace monarch::fake_nccl
