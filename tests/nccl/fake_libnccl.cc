// NCCL without a GPU, as far as a group needs it: libnccl.so.2 over TCP between processes and threads of one machine,
// for memory of the host, or of the fake driver (tests/cuda) where that is loaded: work is in the order of its streams
// then. Members are connected each with each; what is reduced goes over member 0.
//
// It is as unkind as NCCL may be. No call blocks: init is under way until all are there, and work is enqueued only once
// the asynchronous error was asked for a few times. **The death of a peer is not noticed**: what needs him is under way
// until ncclCommAbort. A call on a communicator that was aborted, a second abort, work while other work is not enqueued
// yet, and a call without a current context (once a test sets them) end the process with a line.
//
// What it does by the environment, for tests:
//   FAKE_NCCL_VERSION=21304    what ncclGetVersion says
//   FAKE_NCCL_HANG=abort       ncclCommAbort never returns
//   FAKE_NCCL_DEATH=told       the death of a peer is ncclRemoteError

#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/nccl/fake_comm.h"

namespace {

using namespace monarch::tensor::own_nccl;
using monarch::fake_nccl::broken;
using monarch::fake_nccl::bytes_of;

std::string_view variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::atomic<int> begun{0};
std::atomic<int> finalized{0};
std::atomic<int> aborted{0};
std::atomic<bool> needs_context{false};
thread_local int context = -1;
thread_local std::string last_words;

void check_context() {
  if (needs_context && context < 0) broken("a call without a current context");
}

// How much was enqueued on each stream, or has ended.
class Tally {
 public:
  void add(Stream stream) {
    const std::lock_guard lock(mutex_);
    ++of_[reinterpret_cast<std::uintptr_t>(stream)];
  }
  std::uint64_t of(std::uint64_t stream) {
    const std::lock_guard lock(mutex_);
    return of_[stream];
  }

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::uint64_t> of_;
};

// Threads of communicators outlive what is static.
Tally& enqueued = *new Tally;
Tally& ended = *new Tally;

// Communicators that were aborted, too, are there for as long as the process, so that a call after that is told.
void keep(Comm comm) {
  static std::mutex mutex;
  static std::vector<Comm>& all = *new std::vector<Comm>;
  const std::lock_guard lock(mutex);
  all.push_back(comm);
}

// The fake driver, where it is loaded.
struct Gpu {
  int (*launch)(Stream stream, void (*call)(void*), void* with) = nullptr;
  int (*peek)(void* to, std::uint64_t from, std::size_t bytes) = nullptr;
  int (*poke)(std::uint64_t to, const void* from, std::size_t bytes) = nullptr;

  static Gpu find() {
    Gpu found;
    void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (library == nullptr) return found;
    found.launch = reinterpret_cast<decltype(launch)>(::dlsym(library, "cuLaunchHostFunc"));
    found.peek = reinterpret_cast<decltype(peek)>(::dlsym(library, "fakePeek"));
    found.poke = reinterpret_cast<decltype(poke)>(::dlsym(library, "fakePoke"));
    if (found.launch == nullptr || found.peek == nullptr || found.poke == nullptr) broken("a driver that is no fake");
    return found;
  }
};

const Gpu& gpu() {
  static const Gpu found = Gpu::find();  // when NCCL is first used
  return found;
}

std::vector<char> read(const void* from, std::size_t bytes) {
  std::vector<char> out(bytes);
  const bool is_gpus =
      gpu().peek != nullptr && gpu().peek(out.data(), reinterpret_cast<std::uintptr_t>(from), bytes) == 0;
  if (!is_gpus && bytes > 0) std::memcpy(out.data(), from, bytes);
  return out;
}

void write(void* to, const char* from, std::size_t bytes) {
  const bool is_gpus = gpu().poke != nullptr && gpu().poke(reinterpret_cast<std::uintptr_t>(to), from, bytes) == 0;
  if (!is_gpus && bytes > 0) std::memcpy(to, from, bytes);
}

bool enqueue(Stream stream, std::function<void()> run) {
  enqueued.add(stream);
  if (gpu().launch == nullptr) return false;
  const auto call = [](void* with) {
    const std::unique_ptr<std::function<void()>> mine(static_cast<std::function<void()>*>(with));
    (*mine)();
  };
  auto* const kept = new std::function<void()>(std::move(run));
  if (gpu().launch(stream, call, kept) != 0) broken("a stream that the driver does not know");
  return true;
}

void check(Comm comm) {
  check_context();
  if (comm->gone) broken("a call on a communicator that was aborted");
}

Code ask(Comm comm, Stream stream, int dtype, CommTag::Work work) {
  check(comm);
  if (bytes_of(dtype) == 0) return kInvalidArgument;
  return comm->ask(stream, std::move(work));
}

}  // namespace

extern "C" {

int fakeNcclBegun() { return begun; }
int fakeNcclFinalized() { return finalized; }
int fakeNcclAborted() { return aborted; }
void fakeNcclSetContext(int device) {
  needs_context = true;
  context = device;
}
std::uint64_t fakeNcclEnqueued(std::uint64_t stream) { return enqueued.of(stream); }
std::uint64_t fakeNcclEnded(std::uint64_t stream) { return ended.of(stream); }

Code ncclGetVersion(int* version) {
  const std::string_view said = variable("FAKE_NCCL_VERSION");
  *version = said.empty() ? 22809 : std::atoi(said.data());
  return kSuccess;
}

const char* ncclGetErrorString(Code code) {
  switch (code) {
    case kSuccess: return "no error";
    case kInvalidArgument: return "invalid argument (run with NCCL_DEBUG=WARN for details)";
    case kInvalidUsage: return "invalid usage (run with NCCL_DEBUG=WARN for details)";
    case kRemoteError: return "remote process exited or there was a network error";
    case kInProgress: return "NCCL operation in progress";
    default: return "unknown result code";
  }
}

const char* ncclGetLastError(Comm comm) {
  if (comm == nullptr) return "";
  check(comm);
  const std::lock_guard lock(comm->mutex);
  last_words = comm->words;
  return last_words.c_str();
}

Code ncclGetUniqueId(Id* id) {
  *id = monarch::fake_nccl::serve_members();
  return kSuccess;
}

Code ncclCommInitRankConfig(Comm* comm, int size, Id id, int rank, Config* config) {
  check_context();
  *comm = nullptr;
  if (config->magic != kConfigMagic || config->size < offsetof(Config, padding) || config->blocking != 0) {
    return kInvalidArgument;
  }
  auto* const made = new CommTag;
  made->id = id;
  made->rank = rank;
  made->size = size;
  made->device = context;
  made->tells_deaths = variable("FAKE_NCCL_DEATH") == "told";
  made->enqueue = enqueue;
  made->ended = [](Stream stream) { ended.add(stream); };
  made->random.seed(static_cast<unsigned>(rank + 1) * 40'503U + static_cast<unsigned char>(id.bytes[12]));
  if (!made->start()) {
    delete made;
    return kSystemError;
  }
  ++begun;
  keep(made);
  *comm = made;
  return kInProgress;
}

Code ncclCommGetAsyncError(Comm comm, Code* code) {
  check(comm);
  *code = comm->state();
  return kSuccess;
}

Code ncclCommFinalize(Comm comm) {
  check(comm);
  return comm->ask(std::nullopt, [] {
    ++finalized;
    return true;
  });
}

Code ncclCommAbort(Comm comm) {
  check_context();
  if (comm->gone.exchange(true)) broken("a second abort");
  ++aborted;
  if (variable("FAKE_NCCL_HANG") == "abort") {
    for (;;) (void)::pause();
  }
  comm->stop_and_join();
  return kSuccess;  // what is left of it says who calls again
}

Code ncclAllReduce(const void* from, void* to, std::size_t count, int dtype, int op, Comm comm, Stream stream) {
  return ask(comm, stream, dtype, [=] {
    std::vector<char> all = read(from, count * bytes_of(dtype));
    if (!comm->reduced(count, dtype, op, all)) return false;
    write(to, all.data(), all.size());
    return true;
  });
}

Code ncclBroadcast(const void* from, void* to, std::size_t count, int dtype, int root, Comm comm, Stream stream) {
  return ask(comm, stream, dtype, [=] {
    const std::size_t bytes = count * bytes_of(dtype);
    std::vector<char> all = comm->rank == root ? read(from, bytes) : std::vector<char>(bytes);
    if (!comm->gathered(all, [](std::vector<char>&) {})) return false;
    write(to, all.data() + bytes * static_cast<std::size_t>(root), bytes);
    return true;
  });
}

Code ncclAllGather(const void* from, void* to, std::size_t count, int dtype, Comm comm, Stream stream) {
  return ask(comm, stream, dtype, [=] {
    std::vector<char> all = read(from, count * bytes_of(dtype));
    if (!comm->gathered(all, [](std::vector<char>&) {})) return false;
    write(to, all.data(), all.size());
    return true;
  });
}

Code ncclReduceScatter(const void* from, void* to, std::size_t count, int dtype, int op, Comm comm, Stream stream) {
  return ask(comm, stream, dtype, [=] {
    const std::size_t bytes = count * bytes_of(dtype);
    std::vector<char> all = read(from, bytes * static_cast<std::size_t>(comm->size));
    if (!comm->reduced(count * static_cast<std::size_t>(comm->size), dtype, op, all)) return false;
    write(to, all.data() + bytes * static_cast<std::size_t>(comm->rank), bytes);
    return true;
  });
}

Code ncclSend(const void* from, std::size_t count, int dtype, int peer, Comm comm, Stream stream) {
  return ask(comm, stream, dtype, [=] {
    const std::vector<char> all = read(from, count * bytes_of(dtype));
    return comm->write(peer, all.data(), all.size());
  });
}

Code ncclRecv(void* to, std::size_t count, int dtype, int peer, Comm comm, Stream stream) {
  return ask(comm, stream, dtype, [=] {
    std::vector<char> all(count * bytes_of(dtype));
    if (!comm->read(peer, all.data(), all.size())) return false;
    write(to, all.data(), all.size());
    return true;
  });
}

}  // extern "C"
