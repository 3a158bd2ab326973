// A rank of a job that is a member of a group of NCCL's (nccl_test.py), as a user writes it: monarch/nccl_group.hpp,
// the driver's own functions for its memory, and no more. Usage: nccl_rank WHAT [ARGUMENT...]
//
//   through VICTIM         all-reduces until that member (MESH/RANK) ends itself in the middle; then with its next life
//   once                   all kinds of work, each byte of which is looked at, and an end in order
//   open [NAME] [DEVICE]   makes a group, and says what becomes of that

#include <dlfcn.h>
#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <monarch/nccl_group.hpp>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

const std::string& me() {
  static const std::string name = variable("MONARCH_MESH") + "/" + variable("MONARCH_RANK");
  return name;
}

void say(const std::string& words) { std::cout << words + "\n" << std::flush; }

// Memory of GPU 0, and a stream there, by the driver.
class Gpu {
 public:
  Gpu() {
    call<int(unsigned)>("cuInit")(0U);
    void* context = nullptr;
    check(call<int(void**, int)>("cuDevicePrimaryCtxRetain")(&context, 0));
    check(call<int(void*)>("cuCtxPushCurrent_v2")(context));
    void* stream = nullptr;
    check(call<int(void**, unsigned)>("cuStreamCreate")(&stream, 0U));
    stream_ = reinterpret_cast<std::uintptr_t>(stream);
  }

  std::uint64_t stream() const { return stream_; }
  std::int32_t* memory(std::size_t elements) {
    std::uint64_t at = 0;
    check(call<int(std::uint64_t*, std::size_t)>("cuMemAlloc_v2")(&at, elements * sizeof(std::int32_t)));
    return reinterpret_cast<std::int32_t*>(at);
  }
  // Behind what is enqueued; `from` stays until the stream has come to it.
  void put(std::int32_t* to, const std::vector<std::int32_t>& from) {
    check(call<int(std::uint64_t, const void*, std::size_t, void*)>("cuMemcpyHtoDAsync_v2")(
        reinterpret_cast<std::uintptr_t>(to), from.data(), from.size() * sizeof from[0],
        reinterpret_cast<void*>(stream_)));
  }
  void get(std::vector<std::int32_t>& to, const std::int32_t* from) {
    check(call<int(void*, std::uint64_t, std::size_t, void*)>("cuMemcpyDtoHAsync_v2")(
        to.data(), reinterpret_cast<std::uintptr_t>(from), to.size() * sizeof to[0], reinterpret_cast<void*>(stream_)));
  }

 private:
  template <class Function>
  static Function* call(const char* name) {
    static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    void* const found = library == nullptr ? nullptr : ::dlsym(library, name);
    if (found == nullptr) std::_Exit(3);
    return reinterpret_cast<Function*>(found);
  }
  static void check(int code) {
    if (code != 0) std::_Exit(4);
  }

  std::uint64_t stream_ = 0;
};

const std::vector<monarch::GroupRanks>& members() {
  static const std::vector<monarch::GroupRanks> all{{"trainer", {0}}, {"generator"}};
  return all;
}

monarch::NcclGroup open(monarch::TensorSession& session) {
  return {session, "sync", members(), {.device = 0, .timeout = milliseconds(30'000)}};
}

// Each member gives its own rank, and gets the sum.
bool sums(Gpu& gpu, monarch::NcclGroup& group, std::int32_t* memory) {
  std::vector<std::int32_t> values(1'000, static_cast<std::int32_t>(group.rank()));
  gpu.put(memory, values);
  group.all_reduce(memory, memory, values.size(), {.stream = gpu.stream()});
  std::vector<std::int32_t> got(values.size());
  gpu.get(got, memory);
  group.wait(gpu.stream(), milliseconds(30'000));
  const auto size = static_cast<std::int32_t>(group.size());
  return got == std::vector<std::int32_t>(values.size(), size * (size - 1) / 2);
}

void through(const std::string& victim) {
  monarch::TensorSession session;
  Gpu gpu;
  std::int32_t* const memory = gpu.memory(1'000);
  const bool is_first_life = variable("MONARCH_GENERATION") == "1";
  if (is_first_life) {
    monarch::NcclGroup group = open(session);
    const Clock::time_point begun = Clock::now();
    try {
      for (int turn = 0;; ++turn) {
        if (!sums(gpu, group, memory)) say(me() + " has a wrong sum");
        if (me() == victim && turn == 5) (void)::kill(::getpid(), SIGKILL);
        if (Clock::now() - begun > std::chrono::seconds(30)) return say(me() + " heard of nothing");
      }
    } catch (const monarch::TensorError& error) {
      say(me() + " lost: " + std::to_string(error.code) + " " + error.what());
    }
    try {
      (void)sums(gpu, group, memory);
    } catch (const monarch::TensorError& error) {
      say(me() + " again: " + std::to_string(error.code));
    }
  }
  monarch::NcclGroup group = open(session);
  for (int turn = 0; turn < 5; ++turn) {
    if (!sums(gpu, group, memory)) say(me() + " has a wrong sum");
  }
  group.close();
  say(me() + " met " + std::to_string(group.rank()) + " of " + std::to_string(group.size()));
}

void once() {
  monarch::TensorSession session;
  Gpu gpu;
  monarch::NcclGroup group = open(session);
  const auto rank = static_cast<std::int32_t>(group.rank());
  const auto size = static_cast<std::int32_t>(group.size());
  const auto stream = gpu.stream();
  std::vector<std::int32_t> values(64 * group.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = rank + static_cast<std::int32_t>(i);
  std::int32_t* const from = gpu.memory(values.size());
  std::int32_t* const to = gpu.memory(values.size());
  std::vector<std::int32_t> got(values.size());
  const auto wait = [&] {
    gpu.get(got, to);
    group.wait(stream, milliseconds(30'000));
  };
  gpu.put(from, values);
  group.broadcast(from, to, values.size(), 1, {.stream = stream});
  wait();
  say("broadcast " + std::to_string(got[0]) + " " + std::to_string(got[63]));
  group.all_gather(from, to, 64, {.stream = stream});
  wait();
  say("gathered " + std::to_string(got[0]) + " " + std::to_string(got[64]) + " " + std::to_string(got.back()));
  group.reduce_scatter(from, to, 64, {.stream = stream, .op = monarch::NcclReduce::kMax});
  wait();
  say("scattered " + std::to_string(got[0] - 64 * rank - size));
  if (rank == 0) group.send(from, 64, 1, {.stream = stream});
  if (rank == 1) group.recv(to, 64, 0, {.stream = stream});
  wait();
  if (rank == 1) say("received " + std::to_string(got[0]) + " " + std::to_string(got[63]));
  group.close();
}

void only_open(const std::string& name, int device) {
  monarch::TensorSession session;
  const monarch::NcclGroup group(session, name, members(), {.device = device, .timeout = milliseconds(5'000)});
  say(me() + " has a group");
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc < 2 ? "" : argv[1];
  try {
    if (what == "through") through(argc < 3 ? "" : argv[2]);
    if (what == "once") once();
    if (what == "open") only_open(argc < 3 ? "sync" : argv[2], argc < 4 ? 0 : std::atoi(argv[3]));
  } catch (const monarch::TensorError& error) {
    say(me() + " fails: " + std::to_string(error.code) + " " + error.what());
  }
  return 0;
}
