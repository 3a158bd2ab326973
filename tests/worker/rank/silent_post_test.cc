// A post that welcomes who comes to its door and says nothing more, as one that is stopped or stuck.

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <future>
#include <string>
#include <utility>
#include <vector>

#include "tests/worker/rank/silent_door.h"
#include "worker/rank/calls.h"

namespace monarch {
namespace {

constexpr std::chrono::seconds kPatience{20};

class SilentPost : public SilentDoor {
 protected:
  // Those of this process that are connected to a socket of that path.
  static std::vector<int> descriptors_to(const std::string& path) {
    std::vector<int> found;
    for (int fd = 3; fd < 1'024; ++fd) {
      sockaddr_un address{};
      socklen_t size = sizeof address;
      if (::getpeername(fd, reinterpret_cast<sockaddr*>(&address), &size) != 0) continue;
      if (address.sun_family == AF_UNIX && path == address.sun_path) found.push_back(fd);
    }
    return found;
  }

  struct Ended {
    std::promise<std::pair<std::uint32_t, std::string>> promise;
    std::future<std::pair<std::uint32_t, std::string>> future = promise.get_future();
  };
  static monarch_call_v1 call_of(std::int64_t deadline_ns, const std::string& arguments, Ended* ended) {
    static const monarch_ranks_v1 ranks{.first = 1, .count = 1, .step = 1};
    monarch_call_v1 call{};
    call.struct_size = sizeof call;
    call.mesh = "work";
    call.actor = "a";
    call.endpoint = "f";
    call.signature = "*";
    call.ranks = &ranks;
    call.ranks_count = 1;
    call.arguments = {arguments.data(), arguments.size()};
    call.deadline_ns = deadline_ns;
    call.user = ended;
    call.on_answer = [](void* user, const monarch_answer_v1* answer) {
      if (answer != nullptr && user != nullptr) {
        static_cast<Ended*>(user)->promise.set_value({answer->kind, answer->text});
      }
    };
    return call;
  }
};

TEST_F(SilentPost, CostsNoCallItsDeadline) {
  Calls calls(door(), {});
  Ended never;
  Ended later;
  Ended sooner;
  (void)calls.call(call_of(0, "", &never));
  (void)calls.call(call_of(200'000'000, "", &later));
  (void)calls.call(call_of(50'000'000, "", &sooner));
  for (Ended* const one : {&sooner, &later}) {
    ASSERT_EQ(one->future.wait_for(kPatience), std::future_status::ready);
    const auto [kind, words] = one->future.get();
    EXPECT_EQ(kind, static_cast<std::uint32_t>(MONARCH_DEADLINE));
    EXPECT_EQ(words, std::string("its deadline has passed, after ") + (one == &sooner ? "50ms" : "200ms") +
                         ", and the post of this host says nothing");
  }
  EXPECT_NE(never.future.wait_for(std::chrono::seconds(0)), std::future_status::ready);
  calls.stop();
  EXPECT_EQ(never.future.get().first, static_cast<std::uint32_t>(MONARCH_GONE));
}

// Who waits for it to read has a deadline, too.
TEST_F(SilentPost, HoldsUpACallerNoLongerThanItsDeadline) {
  Calls calls(door(), {});
  const std::string arguments(40'000, 'x');
  auto caller = std::async(std::launch::async, [&] {
    for (;;) {
      Ended ended;
      (void)calls.call(call_of(100'000'000, arguments, &ended));
      const auto [kind, words] = ended.future.get();
      if (words == "it was not sent: the post of this host does not read") return kind;
    }
  });
  EXPECT_EQ(caller.wait_for(kPatience), std::future_status::ready);
  calls.stop();
  EXPECT_EQ(caller.get(), static_cast<std::uint32_t>(MONARCH_DEADLINE));
}

// As a library does that closes all descriptors that it does not know.
TEST_F(SilentPost, IsNoReasonToLiveOnWhereDescriptorsWereClosed) {
  for (const bool all : {true, false}) {
    std::promise<void> came;
    std::promise<std::string> cut_off;
    auto why = cut_off.get_future();
    auto started = DoorThread::start(door(), {},
                                     {.came = [&](const DoorThread::Connection&) { came.set_value(); },
                                      .heard = [](const DoorThread::Connection&, DoorClient::Heard&) {},
                                      .ended = [](const DoorThread::Connection&, const std::string&) {},
                                      .cut_off = [&](const std::string& words) { cut_off.set_value(words); }});
    ASSERT_TRUE(started.ok());
    ASSERT_EQ(came.get_future().wait_for(kPatience), std::future_status::ready);
    const std::vector<int> ours = descriptors_to(door());
    ASSERT_EQ(ours.size(), 1U);
    // Its number may be another's by then.
    if (all) {
      ASSERT_EQ(::close(ours[0]), 0);
    } else {
      ASSERT_EQ(::dup2(STDERR_FILENO, ours[0]), ours[0]);
    }
    EXPECT_EQ(why.wait_for(kPatience), std::future_status::ready);
    (*started)->stop();
    EXPECT_EQ(why.get(),
              "somebody in this process has closed descriptors that are not his, and no call reaches it any more");
  }
}

}  // namespace
}  // namespace monarch
