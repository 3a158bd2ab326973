#pragma once

// Groups of NCCL's whose members are threads of the test, on the fake libnccl.so.2, which is found by its name.
//
// Thread: the test's, which makes and joins those of the members.

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/nccl/nccl_world.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"
#include "transport/tensor/nccl/load.h"

namespace monarch::tensor {

using fake_nccl::FakeDriver;
using fake_nccl::TestTie;

inline constexpr Duration kPatience = Duration::seconds(20);
inline constexpr Dtype kInt32{0, 32, 1};
inline constexpr Dtype kInt8Pair{0, 8, 2};

inline SharedNccl nccl() {
  static const SharedNccl loaded = [] {
    auto found = load_nccl(nullptr);
    MONARCH_ASSERT_BECAUSE(found.ok() && fake_nccl::find<fake_nccl::Count>(fake_nccl::kBegun) != nullptr,
                           "LD_LIBRARY_PATH names the folder of the fake libnccl.so.2");
    return std::move(found).value();
  }();
  return loaded;
}

inline int count_of(const char* what) {
  (void)nccl();  // it is loaded then
  return fake_nccl::find<fake_nccl::Count>(what)();
}
inline int aborted() { return count_of(fake_nccl::kAborted); }
inline int finalized() { return count_of(fake_nccl::kFinalized); }
inline int begun() { return count_of(fake_nccl::kBegun); }

// One on which nothing was ever enqueued: the fake counts for as long as the process runs.
inline std::uint64_t new_stream() {
  static std::uint64_t last = 1'000;
  return ++last;
}

// A variable of the environment for as long as a test.
class Set {
 public:
  Set(const char* name, const char* value) : name_(name) { ::setenv(name, value, 1); }
  ~Set() { ::unsetenv(name_); }
  Set(const Set&) = delete;
  Set& operator=(const Set&) = delete;

 private:
  const char* const name_;
};

struct Member {
  std::unique_ptr<NcclGroup> group;
  Error refused;  // where there is none
  std::shared_ptr<FakeDriver> driver;
  std::shared_ptr<TestTie> tie = std::make_shared<TestTie>();
  std::uint32_t rank = 0;
};

struct Made {
  std::vector<Member> members;
  std::vector<std::string> lines;  // that they said
  std::mutex mutex;
};

// Each in a thread of its own, one on each GPU.
inline void each(Made& made, const std::function<void(Member& member)>& run) {
  std::vector<std::thread> threads;
  for (Member& member : made.members) threads.emplace_back([&run, &member] { run(member); });
  for (std::thread& thread : threads) thread.join();
}

inline std::unique_ptr<Made> make(std::uint32_t size, Duration timeout = kPatience,
                                  const std::vector<int>& devices = {},
                                  Duration abort_patience = Duration::seconds(10)) {
  auto made = std::make_unique<Made>();
  made->members.resize(size);
  for (std::uint32_t rank = 0; rank < size; ++rank) made->members[rank].rank = rank;
  const std::string id = *nccl()->make_id();
  each(*made, [&](Member& member) {
    const int device = devices.empty() ? static_cast<int>(member.rank) : devices[member.rank];
    member.driver = std::make_shared<FakeDriver>(device);
    const auto say = [&](const std::string& line) {
      const std::lock_guard lock(made->mutex);
      made->lines.push_back(line);
    };
    auto opened = NcclGroup::open(
        {.nccl = nccl(), .cuda = member.driver, .tie = member.tie, .say = say, .abort_patience = abort_patience},
        {.group = "sync", .place = {id, member.rank, size}, .device = device}, timeout);
    if (opened.ok()) {
      member.group = std::move(opened).value();
    } else {
      member.refused = opened.error();
    }
  });
  return made;
}

inline std::string words_of(const Status& status) {
  return status.ok() ? "ok" : text(error_code_name(status.error().code), ": ", status.error().message);
}

// Run and waited for, on a stream of the member's own.
inline std::string words_of(Member& member, const NcclWork& work) {
  NcclWork on_stream = work;
  on_stream.stream = 100 + member.rank;
  const Status status = member.group->run(on_stream, kPatience);
  return words_of(status.ok() ? member.group->wait(on_stream.stream, kPatience) : status);
}

}  // namespace monarch::tensor
