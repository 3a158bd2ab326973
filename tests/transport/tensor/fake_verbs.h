#pragma once

// FakeFabric: network cards of one process, and what is between them, with no card: READs are done when their asker
// looks, in order, and fail as the real ones do. It holds who uses it to the rules of verbs: no more under way than the
// queue was made for, nothing before it is connected, no memory let go of that something is under way to, no queue that
// ends with something under way.
//
// Thread: any.

#include <gtest/gtest.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/text.h"
#include "transport/base/unique_fd.h"
#include "transport/tensor/verbs/verbs.h"

namespace monarch::tensor {

class FakeFabric : public std::enable_shared_from_this<FakeFabric> {
 public:
  struct Memory {
    char* start = nullptr;
    std::uint64_t bytes = 0;
    VerbsAccess access = VerbsAccess::kFilledHere;
  };
  struct Queue {
    std::size_t reads = 0;
    bool connected = false;
    bool failed = false;
    QueuePath path;
    std::deque<VerbsRead> under_way;
    std::uint32_t address = 0;  // of its device
  };

  // What it does to who uses it; each may be changed at any time.
  std::atomic<int> reads_left{-1};                      // then every READ fails; < 0: none does
  std::atomic<bool> holds{false};                       // nothing is done, and nothing fails
  std::atomic<std::uint64_t> memory_limit{UINT64_MAX};  // of what may be known for others to READ
  std::atomic<std::uint64_t> destination_limit{UINT64_MAX};
  std::atomic<std::uint64_t> reads_done{0};
  std::atomic<std::uint64_t> largest{0};  // READs under way at a time

  // Its network address is 127.0.0.1; `name` as of a card.
  SharedVerbsDevice make_device(const std::string& name = "fake0");
  // Each queue of that owner is lost.
  void lose_queues() {
    const std::lock_guard lock(mutex_);
    for (auto& [number, queue] : queues_) {
      if (queue.reads == 0) queue.failed = true;
    }
  }
  std::size_t queues() {
    const std::lock_guard lock(mutex_);
    return queues_.size();
  }

 private:
  friend class FakeMemory;
  friend class FakeQueue;
  friend class FakeDevice;

  // What of a read is wrong; empty: nothing.
  std::string check(const Queue& queue, const VerbsRead& read);
  std::vector<VerbsCompletion> work(std::uint32_t number, std::size_t most);

  std::mutex mutex_;
  std::uint32_t next_ = 17;
  std::map<std::uint32_t, Memory> memory_;
  std::map<std::uint32_t, Queue> queues_;
};

// What a card reads is what memory has in that moment, which nobody has arranged with who writes it.
__attribute__((no_sanitize("thread"))) inline void copy_as_a_card(char* into, const char* from, std::uint32_t bytes) {
  const volatile char* source = from;
  std::uint32_t done = 0;
  for (; bytes - done >= 8 && reinterpret_cast<std::uintptr_t>(source + done) % 8 == 0; done += 8) {
    const std::uint64_t word = *reinterpret_cast<const volatile std::uint64_t*>(source + done);
    __builtin_memcpy(into + done, &word, sizeof word);
  }
  for (; done < bytes; ++done) into[done] = source[done];
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

class FakeMemory final : public VerbsMemory {
 public:
  FakeMemory(std::shared_ptr<FakeFabric> fabric, std::uint32_t key) : fabric_(std::move(fabric)), key_(key) {}
  ~FakeMemory() override {
    const std::lock_guard lock(fabric_->mutex_);
    for (const auto& [number, queue] : fabric_->queues_) {
      for (const VerbsRead& read : queue.under_way) {
        EXPECT_NE(read.local_key, key_) << "memory was let go of that a READ is under way to";
      }
    }
    fabric_->memory_.erase(key_);
  }
  std::uint32_t local_key() const override { return key_; }
  std::uint32_t remote_key() const override { return key_; }

 private:
  const std::shared_ptr<FakeFabric> fabric_;
  const std::uint32_t key_;
};

class FakeQueue final : public VerbsQueue {
 public:
  FakeQueue(std::shared_ptr<FakeFabric> fabric, std::uint32_t number)
      : fabric_(std::move(fabric)), number_(number), event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
  ~FakeQueue() override {
    const std::lock_guard lock(fabric_->mutex_);
    EXPECT_TRUE(fabric_->queues_.at(number_).under_way.empty()) << "a queue ended with READs under way";
    fabric_->queues_.erase(number_);
  }

  std::uint32_t number() const override { return number_; }
  Status connect(const QueuePath& path) override {
    const std::lock_guard lock(fabric_->mutex_);
    FakeFabric::Queue& queue = fabric_->queues_.at(number_);
    EXPECT_FALSE(queue.connected) << "a queue was connected twice";
    EXPECT_EQ(path.own.queue, number_);
    queue.connected = true;
    queue.path = path;
    return {};
  }
  Status post(const VerbsRead& read) override {
    const std::lock_guard lock(fabric_->mutex_);
    FakeFabric::Queue& queue = fabric_->queues_.at(number_);
    EXPECT_TRUE(queue.connected) << "a READ before the queue was connected";
    if (queue.under_way.size() >= queue.reads) return Error{ErrorCode::kBusy, "more READs than the queue was made for"};
    const auto local = fabric_->memory_.find(read.local_key);
    const bool fits = local != fabric_->memory_.end() && local->second.access == VerbsAccess::kFilledHere &&
                      read.into >= local->second.start &&
                      read.into + read.bytes <= local->second.start + local->second.bytes;
    EXPECT_TRUE(fits) << "a READ into memory that the device does not know";
    queue.under_way.push_back(read);
    fabric_->largest = std::max<std::uint64_t>(fabric_->largest, queue.under_way.size());
    return {};
  }
  Result<std::vector<VerbsCompletion>> take(std::size_t most) override { return fabric_->work(number_, most); }
  Status arm() override {
    const std::lock_guard lock(fabric_->mutex_);
    const FakeFabric::Queue& queue = fabric_->queues_.at(number_);
    const bool more = !queue.under_way.empty() && (!fabric_->holds || queue.failed);
    const std::uint64_t one = 1;
    if (more && ::write(event_.get(), &one, sizeof one) != sizeof one) return Error{ErrorCode::kInternal, "eventfd"};
    return {};
  }
  bool was_woken() override {
    std::uint64_t count = 0;
    return ::read(event_.get(), &count, sizeof count) == 8;
  }
  int descriptor() const override { return event_.get(); }
  void set_error() override {
    const std::lock_guard lock(fabric_->mutex_);
    fabric_->queues_.at(number_).failed = true;
  }

 private:
  const std::shared_ptr<FakeFabric> fabric_;
  const std::uint32_t number_;
  const UniqueFd event_;
};

class FakeDevice final : public VerbsDevice {
 public:
  FakeDevice(std::shared_ptr<FakeFabric> fabric, const std::string& name) : fabric_(std::move(fabric)) {
    PortFacts port{.number = 1, .active = true, .ethernet = true, .lid = 0, .mtu = 3, .gids = {}};
    port.gids.push_back({0, GidKind::kRoceV1, {0xfe, 0x80}, true});
    port.gids.push_back({1, GidKind::kRoceV2, {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 127, 0, 0, 1}, true});
    facts_ = {.name = name, .node = {}, .reads_out = 16, .reads_in = 4, .ports = {port}};
  }

  const DeviceFacts& facts() const override { return facts_; }
  Result<PortFacts> port() const override { return facts_.ports.front(); }
  Result<std::unique_ptr<VerbsMemory>> know(char* start, std::uint64_t bytes, VerbsAccess access) override {
    const std::lock_guard lock(fabric_->mutex_);
    const bool others = access == VerbsAccess::kReadByOthers;
    if (bytes > (others ? fabric_->memory_limit : fabric_->destination_limit)) {
      return Error{ErrorCode::kBusy, text(amount_text(bytes), " of memory cannot be locked")};
    }
    const std::uint32_t key = fabric_->next_++;
    fabric_->memory_[key] = {start, bytes, access};
    return std::unique_ptr<VerbsMemory>(std::make_unique<FakeMemory>(fabric_, key));
  }
  Result<std::unique_ptr<VerbsQueue>> make_queue(std::size_t reads) override {
    const std::lock_guard lock(fabric_->mutex_);
    const std::uint32_t number = fabric_->next_++;
    fabric_->queues_[number].reads = reads;
    return std::unique_ptr<VerbsQueue>(std::make_unique<FakeQueue>(fabric_, number));
  }

 private:
  const std::shared_ptr<FakeFabric> fabric_;
  DeviceFacts facts_;
};

class FakeLibrary final : public VerbsLibrary {
 public:
  FakeLibrary(std::shared_ptr<FakeFabric> fabric, std::vector<DeviceFacts> devices)
      : fabric_(std::move(fabric)), devices_(std::move(devices)) {}
  Result<std::vector<DeviceFacts>> devices() override { return devices_; }
  Result<std::unique_ptr<VerbsDevice>> open(const DeviceFacts& device, std::uint8_t /*port*/) override {
    return std::unique_ptr<VerbsDevice>(std::make_unique<FakeDevice>(fabric_, device.name));
  }

 private:
  const std::shared_ptr<FakeFabric> fabric_;
  const std::vector<DeviceFacts> devices_;
};

inline SharedVerbsDevice FakeFabric::make_device(const std::string& name) {
  return std::make_shared<FakeDevice>(shared_from_this(), name);
}

inline std::string FakeFabric::check(const Queue& queue, const VerbsRead& read) {
  if (reads_left == 0) return "scripted";
  const auto peer = queues_.find(queue.path.peer.queue);
  const bool meets = peer != queues_.end() && peer->second.connected && !peer->second.failed &&
                     peer->second.path.peer.queue == queue.path.own.queue &&
                     peer->second.path.peer.packet == queue.path.own.packet;
  if (!meets) return "transport retry counter exceeded";
  const auto remote = memory_.find(read.remote_key);
  const bool may = remote != memory_.end() && remote->second.access == VerbsAccess::kReadByOthers &&
                   read.from + read.bytes <= remote->second.bytes;
  return may ? std::string() : "remote access error";
}

inline std::vector<VerbsCompletion> FakeFabric::work(std::uint32_t number, std::size_t most) {
  constexpr std::size_t kAtOnce = 5;  // no divisor of what is told
  const std::lock_guard lock(mutex_);
  Queue& queue = queues_.at(number);
  std::vector<VerbsCompletion> out;
  if (holds && !queue.failed) return out;
  for (std::size_t i = 0; i < kAtOnce && out.size() < most && !queue.under_way.empty(); ++i) {
    const VerbsRead read = queue.under_way.front();
    std::string error = queue.failed ? "work request flushed" : check(queue, read);
    queue.under_way.pop_front();
    if (error.empty()) {
      copy_as_a_card(read.into, memory_.at(read.remote_key).start + read.from, read.bytes);
      ++reads_done;
      if (reads_left > 0) --reads_left;
    } else {
      queue.failed = true;
    }
    if (read.told || !error.empty()) out.push_back({read.id, std::move(error)});
  }
  return out;
}

}  // namespace monarch::tensor
