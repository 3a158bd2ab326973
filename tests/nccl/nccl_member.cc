// A process that is a member of a group of NCCL's, for tests that end one of them: nccl_group_kills_test.cc.
//
//   nccl_member load [FILE]           which libnccl.so.2 is taken; FILE is loaded before by somebody else
//   nccl_member alone                 makes an id, and a group of one with it
//   nccl_member calls RANK SIZE       reads an id, joins, and all-reduces until somebody is lost
//   nccl_member between RANK SIZE     the same, but calls only once somebody is lost
//
// A byte on standard input, behind the id, says that a member is lost. It says "joined", "ended MILLISECONDS TEXT" and
// "over ABORTED BEGUN", one after the other, and what it should not see as "wrong TEXT".

#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/nccl/nccl_world.h"
#include "transport/base/clock.h"
#include "transport/base/take_number.h"
#include "transport/tensor/nccl/load.h"

namespace {

using namespace monarch;
using namespace monarch::tensor;

constexpr Duration kNobodyWaitsSoLong = Duration::seconds(60);
constexpr std::uint64_t kStream = 5;

void say(const std::string& line) { std::cout << line << std::endl; }

int fail(const Error& error) {
  say(text(error_code_name(error.code), ": ", error.message));
  return 0;
}

int load(const char* before) {
  if (before != nullptr && ::dlopen(before, RTLD_NOW | RTLD_LOCAL) == nullptr) return 2;
  const auto nccl = load_nccl(std::getenv(kNcclVariable));
  if (!nccl.ok()) return fail(nccl.error());
  say(text("NCCL ", (*nccl)->version()));
  return 0;
}

NcclMeans means_of(SharedNccl nccl, std::shared_ptr<fake_nccl::TestTie> tie, int device) {
  return {.nccl = std::move(nccl),
          .cuda = std::make_shared<fake_nccl::FakeDriver>(device),
          .tie = std::move(tie),
          .say = [](const std::string& line) { say(text("wrong ", line)); }};
}

int alone() {
  const auto nccl = load_nccl(std::getenv(kNcclVariable));
  if (!nccl.ok()) return fail(nccl.error());
  const auto id = (*nccl)->make_id();
  if (!id.ok()) return fail(id.error());
  say(text("NCCL ", (*nccl)->version(), ": an id of ", id->size(), " bytes"));
  const auto made = NcclGroup::open(means_of(*nccl, std::make_shared<fake_nccl::TestTie>(), 0),
                                    {.group = "one", .place = {*id, 0, 1}, .device = 0}, Duration::seconds(20));
  if (!made.ok()) return fail(made.error());
  say("joined");
  return 0;
}

class Member {
 public:
  Member(SharedNccl nccl, std::uint32_t rank, std::uint32_t size) : nccl_(std::move(nccl)), rank_(rank), size_(size) {}

  void run(const std::string& id, bool between) {
    std::thread listener([this] { listen(); });
    listener.detach();  // it ends with the process
    auto made = NcclGroup::open(means_of(nccl_, tie_, static_cast<int>(rank_)),
                                {.group = "sync", .place = {id, rank_, size_}, .device = static_cast<int>(rank_)},
                                kNobodyWaitsSoLong);
    Status status;
    if (!made.ok()) status = made.error();
    if (status.ok()) say("joined");
    while (between && status.ok() && lost_at_ == 0) (void)::poll(nullptr, 0, 1);
    while (status.ok()) status = all_reduce(**made);
    ended(status.error());
    if (made.ok()) {
      const Status again = all_reduce(**made);
      if (again.ok() || again.error().code != ErrorCode::kGone) say("wrong it goes on");
      const Status waited = (*made)->wait(kStream, Duration::zero());
      if (waited.ok() || waited.error().code != ErrorCode::kGone) say("wrong it is waited for");
      std::move(made).value().reset();
    }
    say(text("over ", fake_nccl::find<fake_nccl::Count>(fake_nccl::kAborted)(), ' ',
             fake_nccl::find<fake_nccl::Count>(fake_nccl::kBegun)()));
  }

 private:
  Status all_reduce(NcclGroup& group) {
    std::vector<float> from(1'000, static_cast<float>(rank_));
    std::vector<float> to(from.size());
    MONARCH_TRY(group.run({.call = NcclCall::kAllReduce,
                           .from = from.data(),
                           .to = to.data(),
                           .count = from.size(),
                           .dtype = kFloat32,
                           .stream = kStream},
                          kNobodyWaitsSoLong));
    MONARCH_TRY(group.wait(kStream, kNobodyWaitsSoLong));
    const auto all = static_cast<float>(size_ * (size_ - 1) / 2);
    for (const float one : to) {
      if (one != all) say("wrong sum");
    }
    return {};
  }

  void listen() {
    char word = 0;
    if (::read(STDIN_FILENO, &word, 1) != 1) return;
    lost_at_ = boot_now().since_boot().count_nanoseconds();
    tie_->lose("generator/2 has ended: killed by signal 9");
  }

  void ended(const Error& error) {
    const std::int64_t now = boot_now().since_boot().count_nanoseconds();
    const std::int64_t lost = lost_at_;
    say(text("ended ", lost == 0 ? -1 : (now - lost) / 1'000'000, ' ', error_code_name(error.code), ": ",
             error.message));
  }

  const SharedNccl nccl_;
  const std::uint32_t rank_;
  const std::uint32_t size_;
  const std::shared_ptr<fake_nccl::TestTie> tie_ = std::make_shared<fake_nccl::TestTie>();  // owners: the group too
  std::atomic<std::int64_t> lost_at_{0};
};

int member(std::string_view rank, std::string_view size, bool between) {
  std::uint32_t number = 0;
  std::uint32_t all = 0;
  std::string id(kNcclIdBytes, '\0');
  if (!take_number(rank, number) || !take_number(size, all)) return 2;
  if (::read(STDIN_FILENO, id.data(), id.size()) != static_cast<ssize_t>(id.size())) return 2;
  const auto nccl = load_nccl(std::getenv(kNcclVariable));
  if (!nccl.ok()) return fail(nccl.error());
  Member(*nccl, number, all).run(id, between);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc < 2 ? "" : argv[1];
  int status = 2;
  if (what == "load") status = load(argc > 2 ? argv[2] : nullptr);
  if (what == "alone") status = alone();
  if ((what == "calls" || what == "between") && argc == 4) status = member(argv[2], argv[3], what == "between");
  // Threads of NCCL's and the listener's are as they are.
  (void)std::fflush(nullptr);
  ::_exit(status);
}
