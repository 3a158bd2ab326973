#include "tests/cuda/fake_world.h"

#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <sstream>
#include <string_view>
#include <thread>
#include <utility>

namespace fake_cuda {

using namespace monarch::tensor::own_cuda;

namespace {

constexpr std::size_t kPage = 4'096;

unsigned number_of(const char* variable, unsigned otherwise) {
  const char* const value = std::getenv(variable);
  return value == nullptr ? otherwise : static_cast<unsigned>(std::strtoul(value, nullptr, 10));
}

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

unsigned number_of_thread() {
  static std::atomic<unsigned> next{1};
  thread_local const unsigned number = next++;
  return number;
}

// What is mapped there: whether all of it may be written, and whether it is shared.
struct Mapping {
  bool writable = false;
  bool shared = true;
};

Mapping mapping_of(std::uint64_t start, std::size_t bytes) {
  Mapping found;
  std::uint64_t seen = start;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line) && seen < start + bytes;) {
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    const char* const end = line.data() + line.size();
    const char* const dash = std::from_chars(line.data(), end, from, 16).ptr;
    const char* const space = std::from_chars(dash + 1, end, to, 16).ptr;
    if (seen < from || seen >= to) continue;
    if (std::string_view(space, 3) != " rw") return {};
    found.shared = found.shared && space[4] == 's';
    seen = to;
  }
  found.writable = seen >= start + bytes;
  return found;
}

}  // namespace

thread_local std::vector<Context> contexts;
thread_local int capture_mode = 0;  // global

void broken(const char* rule) {
  (void)std::fprintf(stderr, "fake libcuda: %s\n", rule);
  std::abort();
}

void take(unsigned us) {
  if (us == 0) return;
  timespec time{.tv_sec = us / 1'000'000, .tv_nsec = long{us % 1'000'000} * 1'000};
  (void)::ppoll(nullptr, 0, &time, nullptr);  // a signal: it was faster
}

FakeStream::FakeStream(Device on, unsigned seed) : device(on), shared_(std::make_shared<Shared>()) {
  shared_->random.seed(seed);
  std::thread([shared = shared_] { serve(shared); }).detach();
}

FakeStream::~FakeStream() {
  drain();
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->end = true;
  }
  shared_->changed.notify_all();
}

void FakeStream::serve(const std::shared_ptr<Shared>& shared) {
  for (;;) {
    std::function<void()> next;
    unsigned late = World::it().late_us;
    {
      std::unique_lock lock(shared->mutex);
      shared->changed.wait(lock, [&] { return shared->end || !shared->queue.empty(); });
      if (shared->queue.empty()) return;
      next = std::move(shared->queue.front());
      shared->queue.pop_front();
      shared->busy = true;
      late = World::it().late_us;
      if (late > 0) late = static_cast<unsigned>(shared->random() % (late + 1));
    }
    take(late);
    next();
    {
      const std::lock_guard lock(shared->mutex);
      shared->busy = false;
    }
    shared->changed.notify_all();
  }
}

void FakeStream::enqueue(std::function<void()> run) {
  {
    const std::lock_guard lock(shared_->mutex);
    shared_->queue.push_back(std::move(run));
  }
  shared_->changed.notify_all();
}

void FakeStream::drain() {
  std::unique_lock lock(shared_->mutex);
  shared_->changed.wait(lock, [this] { return shared_->queue.empty() && !shared_->busy; });
}

void FakeStream::reseed(unsigned seed) {
  const std::lock_guard lock(shared_->mutex);
  shared_->random.seed(seed);
}

World& World::it() {
  static World& world = *new World;  // streams outlive main()
  return world;
}

World::World() : late_us(number_of("FAKE_CUDA_LATE_US", 0)), seed_(number_of("FAKE_CUDA_SEED", 1)) {
  const char* const pageable = std::getenv("FAKE_CUDA_PAGEABLE");
  pageable_late = pageable != nullptr && std::string_view(pageable) == "late";
  if (std::getenv("FAKE_CUDA_DEVICE") != nullptr) device_of_memory = static_cast<int>(number_of("FAKE_CUDA_DEVICE", 0));
  if (const char* const script = std::getenv("FAKE_CUDA_FAIL")) fail(script);
}

void World::fail(const std::string& script) {
  const std::lock_guard lock(mutex);
  std::istringstream all(script);
  for (std::string one; std::getline(all, one, ',');) {
    const std::size_t first = one.find(':');
    const std::size_t second = one.rfind(':');
    if (first == std::string::npos || second == first) broken("FAKE_CUDA_FAIL is name:code:nth,...");
    script_[one.substr(0, first)][std::atoi(one.c_str() + second + 1)] = std::atoi(one.c_str() + first + 1);
  }
}

Code World::scripted(const std::string& name) {
  const std::lock_guard lock(mutex);
  const auto found = script_.find(name);
  if (found == script_.end()) return kSuccess;
  Code code = kSuccess;
  std::map<int, Code> later;
  for (const auto& [calls, its] : found->second) {
    if (calls <= 1) code = its;
    if (calls > 1) later[calls - 1] = its;
  }
  if (later.empty()) {
    script_.erase(found);
  } else {
    found->second = std::move(later);
  }
  return code;
}

void World::heal() {
  const std::lock_guard lock(mutex);
  script_.clear();
  sticky = kSuccess;
}

void World::be_late(unsigned us, unsigned with_seed) {
  const std::lock_guard lock(mutex);
  late_us = us;
  seed_ = with_seed;
  unsigned number = 0;
  for (const auto& one : streams_) one.second->reseed(seed_ * 7'919 + number++);
}

Code World::allocate(Address& at, std::size_t bytes, Device device, bool managed) {
  const std::size_t size = whole_pages(bytes);
  if (bytes == 0) return kInvalidValue;
  const int fd = ::memfd_create("fake-gpu", MFD_CLOEXEC);
  if (fd < 0 || ::ftruncate(fd, static_cast<off_t>(size)) != 0) return kOutOfMemory;
  void* const shadow = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  void* const seen = managed ? shadow : ::mmap(nullptr, size, PROT_NONE, MAP_SHARED, fd, 0);
  if (shadow == MAP_FAILED || seen == MAP_FAILED) return kOutOfMemory;
  const std::lock_guard lock(mutex);
  at = reinterpret_cast<Address>(seen);
  if (device_of_memory >= 0) device = device_of_memory;
  memory_[at] = Memory{at, bytes, static_cast<char*>(shadow), fd, device, managed, 0};
  return kSuccess;
}

Code World::release(Address at) {
  const std::lock_guard lock(mutex);
  const auto found = memory_.find(at);
  if (found == memory_.end()) return kInvalidValue;
  const Memory& memory = found->second;
  if (memory.queued > 0) broken("memory of a GPU was freed while a copy of it is queued");
  const std::size_t size = whole_pages(memory.bytes);
  if (!memory.managed) (void)::munmap(reinterpret_cast<void*>(at), size);
  (void)::munmap(memory.shadow, size);
  (void)::close(memory.fd);
  memory_.erase(found);
  return kSuccess;
}

Code World::register_host(char* start, std::size_t bytes) {
  const auto from = reinterpret_cast<std::uint64_t>(start);
  if (bytes == 0) return kInvalidValue;
  // The driver pins it for writing, so what is mapped read-only is refused. A private mapping is copied by that.
  const Mapping mapping = mapping_of(from, bytes);
  if (!mapping.writable) return kInvalidValue;
  if (!mapping.shared) {
    for (std::size_t at = 0; at < bytes; at += kPage) std::atomic_ref(start[at]).fetch_or(0);
  }
  const std::lock_guard lock(mutex);
  for (const auto& [at, one] : pinned_) {
    if (from < at + one.bytes && at < from + bytes) return kAlreadyRegistered;
  }
  pinned_[from] = Pinned{bytes, 0};
  counts.registered += bytes;
  return kSuccess;
}

Code World::unregister_host(char* start) {
  const std::lock_guard lock(mutex);
  const auto found = pinned_.find(reinterpret_cast<std::uint64_t>(start));
  if (found == pinned_.end()) return kNotRegistered;
  if (found->second.queued > 0) broken("memory of the host was unregistered while a copy of it is queued");
  if (::msync(start, found->second.bytes, MS_ASYNC) != 0)
    broken("memory of the host was unmapped before it was unregistered");
  pinned_.erase(found);
  return kSuccess;
}

std::shared_ptr<FakeStream> World::stream(Stream handle, Device device) {
  const auto number = reinterpret_cast<std::uint64_t>(handle);
  const std::lock_guard lock(mutex);
  if (number > 2) {
    const auto made = std::find_if(streams_.begin(), streams_.end(),
                                   [&](const auto& one) { return std::get<1>(one.first) == number; });
    return made == streams_.end() ? nullptr : made->second;
  }
  const unsigned thread = number == 2 ? number_of_thread() : 0;
  auto& found = streams_[{device, number == 2 ? 2 : 0, thread}];
  if (!found) found = std::make_shared<FakeStream>(device, seed_ * 7'919 + static_cast<unsigned>(streams_.size()));
  return found;
}

Stream World::make_stream(Device device) {
  const std::lock_guard lock(mutex);
  next_handle_ += 16;
  streams_[{device, next_handle_, 0}] =
      std::make_shared<FakeStream>(device, seed_ * 7'919 + static_cast<unsigned>(streams_.size()));
  return reinterpret_cast<Stream>(next_handle_);
}

Code World::end_stream(Stream handle) {
  std::shared_ptr<FakeStream> ended;  // it waits for its thread, which may want the mutex
  const std::lock_guard lock(mutex);
  const auto number = reinterpret_cast<std::uint64_t>(handle);
  for (auto one = streams_.begin(); one != streams_.end(); ++one) {
    if (number <= 2 || std::get<1>(one->first) != number) continue;
    ended = std::move(one->second);
    streams_.erase(one);
    return kSuccess;
  }
  return kInvalidHandle;
}

Memory* World::memory_at(Address at, std::size_t bytes) {
  auto found = memory_.upper_bound(at);
  if (found == memory_.begin()) return nullptr;
  Memory& memory = (--found)->second;
  return at + bytes <= memory.start + memory.bytes ? &memory : nullptr;
}

World::Place World::place_of(std::uint64_t host, std::size_t bytes, std::uint64_t& pin) {
  auto next = pinned_.upper_bound(host);
  const bool reaches_another = next != pinned_.end() && next->first < host + bytes;
  if (next == pinned_.begin()) return reaches_another ? Place::kAcross : Place::kPageable;
  const auto& [start, piece] = *--next;
  if (host >= start + piece.bytes) return reaches_another ? Place::kAcross : Place::kPageable;
  pin = start;
  return host + bytes <= start + piece.bytes ? Place::kPinned : Place::kAcross;
}

bool World::is_pinned(Address at) {
  std::uint64_t pin = 0;
  return place_of(at, 1, pin) == Place::kPinned;
}

std::uint64_t World::pinned_bytes() {
  const std::lock_guard lock(mutex);
  std::uint64_t bytes = 0;
  for (const auto& one : pinned_) bytes += one.second.bytes;
  return bytes;
}

void World::move(const Rows& rows, const Memory& memory, const std::vector<char>* staged) {
  for (std::size_t row = 0; row < rows.height; ++row) {
    char* const device = memory.at(rows.device + row * rows.device_pitch);
    char* const host = rows.host + row * rows.host_pitch;
    if (rows.to_host) {
      std::memcpy(host, device, rows.width);
    } else {
      std::memcpy(device, staged == nullptr ? host : staged->data() + row * rows.width, rows.width);
    }
    counts.bytes += rows.width;
  }
}

Code World::copy(const Rows& rows, FakeStream& stream) {
  if (rows.width == 0 || rows.height == 0) return kSuccess;
  const auto host = reinterpret_cast<std::uint64_t>(rows.host);
  std::uint64_t pin = 0;
  Memory* memory = nullptr;
  Place place = Place::kPageable;
  {
    const std::lock_guard lock(mutex);
    memory = memory_at(rows.device, (rows.height - 1) * rows.device_pitch + rows.width);
    place = place_of(host, (rows.height - 1) * rows.host_pitch + rows.width, pin);
    if (memory == nullptr || place == Place::kAcross) return kInvalidValue;
    ++memory->queued;
    if (place == Place::kPinned) ++pinned_[pin].queued;
  }
  const Code failure = scripted("copy");
  const bool at_once = place == Place::kPageable && !pageable_late;
  std::shared_ptr<std::vector<char>> staged;
  if (at_once && !rows.to_host) {
    staged = std::make_shared<std::vector<char>>();
    for (std::size_t row = 0; row < rows.height; ++row) {
      const char* const from = rows.host + row * rows.host_pitch;
      staged->insert(staged->end(), from, from + rows.width);
    }
  }
  stream.enqueue([this, rows, memory, place, pin, failure, staged] {
    if (failure != kSuccess) sticky = failure;
    if (sticky == kSuccess) move(rows, *memory, staged.get());
    ++counts.copies;
    const std::lock_guard lock(mutex);
    --memory->queued;
    if (place == Place::kPinned) --pinned_[pin].queued;
  });
  if (at_once && rows.to_host) {
    stream.drain();
    return sticky;
  }
  return kSuccess;
}

}  // namespace fake_cuda
