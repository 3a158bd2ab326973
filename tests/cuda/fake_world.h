#pragma once

// What the fake driver is made of: memory, streams, events, and the rules that a real one does not tell when they are
// broken. The functions are in fake_libcuda.cc, and a test's own in fake_calls.cc.
//
// - Memory of a GPU is a memfd, mapped where the processor may not touch it: a copy from there that is the processor's
//   ends as it does on a machine with a GPU. The driver has a second mapping. Managed memory has one for both.
// - A stream is a thread with a queue. What is next begins late: 0 to `late_us` microseconds, by the seed.
// - Registered memory is read and written then. Other memory of the host is at once, as the driver may do it, or then,
//   too (`pageable_late`), as it also may.
// - While a stream is captured, what a thread may not call then unless its mode is relaxed breaks the capture.
// - Memory that is freed, or unregistered, while a copy of it is queued, or unregistered when it is unmapped already,
//   ends the process with a line.
//
// Thread: any; `mutex` is around what it stands before. Lifetime: the process's.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "transport/tensor/cuda/cuda_own.h"

namespace fake_cuda {

using monarch::tensor::own_cuda::Address;
using monarch::tensor::own_cuda::Code;
using monarch::tensor::own_cuda::Context;
using monarch::tensor::own_cuda::Device;
using monarch::tensor::own_cuda::Stream;

inline constexpr int kDevices = 2;
inline constexpr std::uint64_t kMaxPitch = 0x7fff'ffff;
inline constexpr std::uint64_t kContexts = 0x1000;  // that of GPU n: this, and n

// Those of this thread, the last one is current.
extern thread_local std::vector<Context> contexts;
extern thread_local int capture_mode;
inline Device current_device() {
  return static_cast<Device>(reinterpret_cast<std::uint64_t>(contexts.back()) - kContexts);
}

[[noreturn]] void broken(const char* rule);
// As the work of a GPU takes its time.
void take(unsigned us);

struct Memory {
  Address start = 0;
  std::size_t bytes = 0;
  char* shadow = nullptr;
  int fd = -1;
  Device device = 0;
  bool managed = false;
  int queued = 0;  // copies

  char* at(Address address) const { return shadow + (address - start); }
};

struct Pinned {
  std::size_t bytes = 0;
  int queued = 0;
};

class FakeStream {
 public:
  FakeStream(Device on, unsigned seed);
  FakeStream(const FakeStream&) = delete;
  FakeStream& operator=(const FakeStream&) = delete;
  // Waits until nothing is queued.
  ~FakeStream();

  void enqueue(std::function<void()> run);
  void drain();
  void reseed(unsigned seed);

  const Device device;
  std::atomic<bool> captured = false;

 private:
  // The thread's, too, which is nobody's: a process that ends waits for none.
  struct Shared {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> queue;
    bool busy = false;
    bool end = false;
    std::mt19937 random;
  };
  static void serve(const std::shared_ptr<Shared>& shared);

  std::shared_ptr<Shared> shared_;
};

struct FakeEvent {
  explicit FakeEvent(Device on) : device(on) {}
  const Device device;
  std::atomic<std::uint64_t> recorded = 0;  // how often
  std::atomic<std::uint64_t> done = 0;      // which of these is done
};

// Rows between memory of the host and of a GPU.
struct Rows {
  bool to_host = false;
  char* host = nullptr;
  Address device = 0;
  std::size_t width = 0;
  std::size_t height = 1;
  std::size_t host_pitch = 0;
  std::size_t device_pitch = 0;
};

struct Counts {
  std::atomic<std::uint64_t> copies = 0;      // that are done
  std::atomic<std::uint64_t> bytes = 0;       // of these
  std::atomic<std::uint64_t> registered = 0;  // bytes, ever
  std::atomic<std::uint64_t> broken = 0;      // captures
};

class World {
 public:
  static World& it();

  // name:code:nth, separated by commas: that call answers so. The name is a function's, or "copy": then the copy fails
  // in its stream, and everything that follows does.
  void fail(const std::string& script);
  // What befalls this call of the function, or of "copy".
  Code scripted(const std::string& name);
  // Nothing fails any more.
  void heal();
  void be_late(unsigned us, unsigned with_seed);

  Code allocate(Address& at, std::size_t bytes, Device device, bool managed);
  Code release(Address at);
  Code register_host(char* start, std::size_t bytes);
  Code unregister_host(char* start);
  // Of a call that a thread makes whose context is one of `device`. 0 and 1 are the default stream, 2 is the thread's.
  std::shared_ptr<FakeStream> stream(Stream handle, Device device);
  Stream make_stream(Device device);
  Code end_stream(Stream handle);
  Code copy(const Rows& rows, FakeStream& stream);
  // kMemoryOf..., or 0; mutex is held.
  Memory* memory_at(Address at, std::size_t bytes);
  bool is_pinned(Address at);
  std::uint64_t pinned_bytes();

  std::mutex mutex;
  std::atomic<bool> begun = false;
  std::atomic<Code> sticky = 0;
  std::atomic<unsigned> late_us = 0;
  std::atomic<bool> pageable_late = false;
  std::atomic<int> captures = 0;  // under way
  int device_of_memory = -1;      // -1: the context's
  std::map<Device, int> retained;
  std::map<std::uint64_t, std::shared_ptr<FakeEvent>> events;  // by handle
  Counts counts;

 private:
  World();
  enum class Place : std::uint8_t { kPageable, kPinned, kAcross };
  Place place_of(std::uint64_t host, std::size_t bytes, std::uint64_t& pin);
  void move(const Rows& rows, const Memory& memory, const std::vector<char>* staged);

  unsigned seed_ = 1;
  std::uint64_t next_handle_ = 0x5000;
  std::map<std::uint64_t, Memory> memory_;  // by start
  std::map<std::uint64_t, Pinned> pinned_;  // by start
  // By device, handle, and number of the thread, where it is the thread's own.
  std::map<std::tuple<Device, std::uint64_t, unsigned>, std::shared_ptr<FakeStream>> streams_;
  std::map<std::string, std::map<int, Code>> script_;  // by name and calls to come
};

}  // namespace fake_cuda
