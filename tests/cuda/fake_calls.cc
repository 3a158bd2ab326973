// What a test alone does with the fake driver, and no real one has.

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>

#include "tests/cuda/fake_world.h"

using namespace monarch::tensor::own_cuda;
using fake_cuda::contexts;
using fake_cuda::current_device;
using fake_cuda::FakeStream;
using fake_cuda::Memory;
using fake_cuda::World;

namespace {

// A test's own calls are made without a context, too.
std::shared_ptr<FakeStream> stream_of_test(Stream handle) {
  return World::it().stream(handle, contexts.empty() ? std::max(World::it().device_of_memory, 0) : current_device());
}

}  // namespace

extern "C" {

// Of the GPU of the thread's context.
Code fakeStreamMake(Stream* stream) {
  *stream = World::it().make_stream(contexts.empty() ? std::max(World::it().device_of_memory, 0) : current_device());
  return kSuccess;
}

Code fakeStreamEnd(Stream stream) { return World::it().end_stream(stream); }

// The stream is being captured into a graph from now on, or no more.
Code fakeCapture(Stream handle, int on) {
  const auto stream = stream_of_test(handle);
  if (!stream) return kInvalidHandle;
  if (stream->captured.exchange(on != 0) != (on != 0)) World::it().captures += on != 0 ? 1 : -1;
  return kSuccess;
}

// As a kernel that writes.
Code fakeFill(Stream handle, Address at, int byte, std::size_t bytes) {
  const auto stream = stream_of_test(handle);
  if (!stream) return kInvalidHandle;
  const std::lock_guard lock(World::it().mutex);
  Memory* const memory = World::it().memory_at(at, bytes);
  if (memory == nullptr) return kInvalidValue;
  ++memory->queued;
  stream->enqueue([memory, at, byte, bytes] {
    std::memset(memory->at(at), byte, bytes);
    const std::lock_guard done(World::it().mutex);
    --memory->queued;
  });
  return kSuccess;
}

// As a kernel that takes so long.
Code fakeSpin(Stream handle, unsigned us) {
  const auto stream = stream_of_test(handle);
  if (!stream) return kInvalidHandle;
  stream->enqueue([us] { fake_cuda::take(us); });
  return kSuccess;
}

Code fakeDrain(Stream handle) {
  const auto stream = stream_of_test(handle);
  if (!stream) return kInvalidHandle;
  stream->drain();
  return World::it().sticky;
}

// At once, whatever is queued.
Code fakePeek(void* to, Address from, std::size_t bytes) {
  const std::lock_guard lock(World::it().mutex);
  const Memory* const memory = World::it().memory_at(from, bytes);
  if (memory == nullptr) return kInvalidValue;
  std::memcpy(to, memory->at(from), bytes);
  return kSuccess;
}

Code fakePoke(Address to, const void* from, std::size_t bytes) {
  const std::lock_guard lock(World::it().mutex);
  const Memory* const memory = World::it().memory_at(to, bytes);
  if (memory == nullptr) return kInvalidValue;
  std::memcpy(memory->at(to), from, bytes);
  return kSuccess;
}

// As FAKE_CUDA_LATE_US and FAKE_CUDA_SEED, from now on.
void fakeLate(unsigned us, unsigned seed) { World::it().be_late(us, seed); }
// As FAKE_CUDA_FAIL, beside what is to fail already.
void fakeFail(const char* script) { World::it().fail(script); }
// Nothing is to fail any more, and what has failed for good is whole again.
void fakeHeal(void) { World::it().heal(); }
// As FAKE_CUDA_PAGEABLE.
void fakePageableLate(int late) { World::it().pageable_late = late != 0; }

// 0: copies that are done. 1: their bytes. 2: bytes that were registered. 3: bytes that are. 4: events that there are.
// 5: contexts of the calling thread. 6: how often a primary context is retained. 7: captures that were broken.
std::uint64_t fakeCount(int which) {
  World& world = World::it();
  if (which == 3) return world.pinned_bytes();
  if (which == 5) return contexts.size();
  const std::lock_guard lock(world.mutex);
  switch (which) {
    case 0: return world.counts.copies;
    case 1: return world.counts.bytes;
    case 2: return world.counts.registered;
    case 4: return world.events.size();
    case 6: {
      int retained = 0;
      for (const auto& one : world.retained) retained += one.second;
      return static_cast<std::uint64_t>(retained);
    }
    case 7: return world.counts.broken;
    default: fake_cuda::broken("fakeCount: there is no such count");
  }
}

}  // extern "C"
