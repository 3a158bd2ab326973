// Two posts of one job with real sockets between them; who plays their daemons, a caller and a rank is the test.

#include "worker/post/post.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/transport/base/lower_limit.h"
#include "tests/worker/post/post_talk.h"
#include "transport/base/clock.h"
#include "transport/messages/post.h"
#include "transport/wire/mapped_memory.h"
#include "transport/wire/memory_pool.h"
#include "transport/wire/sealed_memory.h"

namespace monarch::post {
namespace {

std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

TEST_F(PostTest, CarriesACallToAnotherHostAndItsAnswerBack) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const UniqueFd caller = come(hosts_[0], "control", 0, false);
  const UniqueFd rank = come(hosts_[1], "work", 1, true);
  say(caller, call_of(7, 1, here("question")));
  const auto given = hear<PostDeliver>(rank);
  ASSERT_TRUE(given.has_value());
  EXPECT_EQ(given->first.target, (CallTarget{"a", "f", "x"}));
  EXPECT_EQ(given->first.caller, (CallerName{.mesh = "control", .rank = {MeshId(1), Rank(0)}, .generation = 1}));
  EXPECT_EQ(given->first.body.here.data, "question");
  PostReply reply;
  reply.delivery = given->first.delivery;
  reply.outcome.body = here("answer");
  say(rank, reply);
  const auto answer = hear<PostAnswer>(caller);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->first.id, 7U);
  EXPECT_EQ(answer->first.rank, 1U);
  EXPECT_EQ(answer->first.outcome.kind, OutcomeKind::kValue);
  EXPECT_EQ(answer->first.outcome.body.here.data, "answer");
  const auto over = hear<PostOver>(caller);
  ASSERT_TRUE(over.has_value());
  EXPECT_EQ(over->first, (PostOver{.id = 7, .refused = {}}));
}

// Of zeroes and a last byte: most of it has no page.
UniqueFd sparse_memory(std::uint64_t bytes) {
  UniqueFd memory(::memfd_create("sparse", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  EXPECT_EQ(::pwrite(memory.get(), "!", 1, static_cast<off_t>(bytes - 1)), 1);
  EXPECT_TRUE(seal_memory(memory.get()).ok());
  return memory;
}

TEST_F(PostTest, CarriesAGibibyteOnAHostThereAndBackAndLessElsewhere) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const UniqueFd caller = come(hosts_[0], "control", 0, false, kPostDoorVersion);
  const UniqueFd rank = come(hosts_[0], "work", 0, true, kPostDoorVersion);
  const CallBody body{.bytes = kBodyBytes, .way = BodyWay::kBeside, .here = {}, .at = {}};
  std::vector<UniqueFd> beside;
  beside.push_back(sparse_memory(kBodyBytes));
  say(caller, call_of(1, 0, body), std::move(beside));
  const auto given = hear<PostDeliver>(rank);
  ASSERT_TRUE(given.has_value());
  ASSERT_EQ(given->second.size(), 1U);
  EXPECT_TRUE(given->first.here);
  char last = 0;
  EXPECT_EQ(::pread(given->second[0].get(), &last, 1, static_cast<off_t>(kBodyBytes - 1)), 1);
  EXPECT_EQ(last, '!');
  PostReply reply;
  reply.delivery = given->first.delivery;
  reply.outcome.body = body;
  beside.clear();
  beside.push_back(sparse_memory(kBodyBytes));
  say(rank, reply, std::move(beside));
  const auto answer = hear<PostAnswer>(caller);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->second.size(), 1U);
  EXPECT_EQ(answer->first.outcome.body.bytes, kBodyBytes);
  EXPECT_TRUE(answer->first.here);
  EXPECT_TRUE(hear<PostOver>(caller).has_value());
  beside.clear();
  beside.push_back(sparse_memory(kFarBodyBytes + 1));
  CallBody larger = body;
  larger.bytes = kFarBodyBytes + 1;
  say(caller, call_of(2, 1, larger), std::move(beside));
  const auto refused = hear<PostAnswers>(caller);
  ASSERT_TRUE(refused.has_value());
  EXPECT_EQ(refused->first.answers.at(0).outcome.text,
            "its arguments are 64MiB: a call carries 1GiB at most, 64MiB to another host");
}

TEST_F(PostTest, GivesALargeBodyOnAsADescriptorHereAndAsBytesElsewhere) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const UniqueFd caller = come(hosts_[0], "control", 0, false);
  std::array<UniqueFd, 2> ranks{come(hosts_[0], "work", 0, true), come(hosts_[1], "work", 1, true)};
  std::string content(3U << 20U, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 >> 4U);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    auto memory = make_sealed_memory("body", content);
    ASSERT_TRUE(memory.ok());
    std::vector<UniqueFd> beside;
    beside.push_back(std::move(*memory));
    CallBody body;
    body.bytes = content.size();
    body.way = BodyWay::kBeside;
    say(caller, call_of(rank + 1, rank, body), std::move(beside));
    auto given = hear<PostDeliver>(ranks[rank]);
    ASSERT_TRUE(given.has_value());
    EXPECT_EQ(given->first.body.way, BodyWay::kBeside);
    ASSERT_EQ(given->second.size(), 1U);
    EXPECT_EQ(read(given->second[0], content.size()), content);
    // Back as it came.
    PostReply reply;
    reply.delivery = given->first.delivery;
    reply.outcome.body = body;
    say(ranks[rank], reply, std::move(given->second));
    const auto answer = hear<PostAnswer>(caller);
    ASSERT_TRUE(answer.has_value());
    ASSERT_EQ(answer->second.size(), 1U);
    EXPECT_EQ(read(answer->second[0], content.size()), content);
    ASSERT_TRUE(hear<PostOver>(caller).has_value());
  }
}

// Bodies that wait behind one that does not come any more: its sender has ended, again and again.
TEST_F(PostTest, KeepsNothingThatWaitedForABodyOfAHostThatWasLost) {
  ASSERT_FALSE(HasFatalFailure());
  constexpr std::size_t kRounds = 6;
  constexpr std::size_t kBehind = 20;
  const std::size_t before = open_descriptors();
  const Instant deadline = boot_now() + Duration::seconds(60);
  const auto memory_of = [](std::size_t bytes) {
    std::vector<UniqueFd> memory;
    memory.push_back(*make_sealed_memory("body", std::string(bytes, 'x')));
    return memory;
  };
  const auto body_of = [](std::size_t bytes) {
    CallBody body;
    body.bytes = bytes;
    body.way = BodyWay::kBeside;
    return body;
  };
  for (std::size_t round = 1; round <= kRounds; ++round) {
    tell_roster(round);
    const UniqueFd caller = come(hosts_[0], "control", 0, false);
    const UniqueFd rank = come(hosts_[1], "work", 1, true);
    // The connection for bodies is there once one has come.
    say(caller, call_of(1, 1, body_of(kBodyAsideBytes)), memory_of(kBodyAsideBytes));
    ASSERT_TRUE(hear<PostDeliver>(rank).has_value());
    const std::size_t at_rest = open_descriptors();
    for (std::uint64_t id = 2; id < 2 + kBehind; ++id) {
      const std::size_t bytes = id == 2 ? 32U << 20U : 100'000;
      say(caller, call_of(id, 1, body_of(bytes)), memory_of(bytes));
    }
    // Each is open on both hosts, or the first has come meanwhile.
    pollfd came{rank.get(), POLLIN, 0};
    while (open_descriptors() < at_rest + 2 * kBehind - 2 && ::poll(&came, 1, 0) == 0 && boot_now() < deadline) {
      std::this_thread::yield();
    }
    stop(0);
    start(0);
    ASSERT_FALSE(HasFatalFailure());
  }
  // Blocks of its pool are kept.
  const std::size_t most = before + MemoryPool::kBlocks + kBehind;
  while (open_descriptors() > most && boot_now() < deadline) std::this_thread::yield();
  EXPECT_LE(open_descriptors(), most);
}

// So few descriptors that no more than a part of the bodies could have one.
class ShortPostTest : public PostTest {
 protected:
  static constexpr rlim_t kDescriptors = 512;
  static constexpr std::size_t kCalls = 1'024;

  void SetUp() override {
    few_.emplace(RLIMIT_NOFILE, kDescriptors);
    PostTest::SetUp();
  }
  void TearDown() override {
    PostTest::TearDown();
    few_.reset();
  }

  // Waits where the post does not read.
  template <class Message>
  static void say_with(const UniqueFd& socket, Message& message, CallBody& body, const std::string& content) {
    auto memory = make_sealed_memory("body", content);
    ASSERT_TRUE(memory.ok()) << memory.error().message;
    std::vector<UniqueFd> beside;
    beside.push_back(std::move(*memory));
    body.bytes = content.size();
    body.way = BodyWay::kBeside;
    const auto packed = pack_message(frame_of(message), std::move(beside), limits::kSeqpacketInlineBytes);
    ASSERT_TRUE(packed.ok());
    for (;;) {
      const SendOutcome sent = send_message(socket.get(), *packed);
      if (sent == SendOutcome::kSent) return;
      ASSERT_TRUE(sent == SendOutcome::kFull || sent == SendOutcome::kStarved);
      pollfd room{socket.get(), POLLOUT, 0};
      (void)::poll(&room, 1, 10);
    }
  }

  static std::string content_of(std::uint64_t call) {
    std::string content(60'000, 'x');
    const std::string number = std::to_string(call);
    content.replace(0, number.size(), number);
    return content;
  }

  // Each with a body that goes as a descriptor; the rank reads none before all are there.
  void call_and_answer(const UniqueFd& caller, const UniqueFd& rank, std::uint32_t number) {
    for (std::uint64_t id = 1; id <= kCalls; ++id) {
      PostCall call = call_of(id, number, {});
      ASSERT_NO_FATAL_FAILURE(say_with(caller, call, call.body, content_of(id)));
    }
    for (std::uint64_t id = 1; id <= kCalls; ++id) {
      auto given = hear<PostDeliver>(rank);
      ASSERT_TRUE(given.has_value()) << id;
      ASSERT_EQ(given->second.size(), 1U);
      ASSERT_TRUE(read(given->second[0], 60'000) == content_of(id)) << id;
      PostReply reply;
      reply.delivery = given->first.delivery;
      ASSERT_NO_FATAL_FAILURE(say_with(rank, reply, reply.outcome.body, content_of(id)));
    }
    for (std::uint64_t id = 1; id <= kCalls; ++id) {
      const auto answer = hear<PostAnswer>(caller);
      ASSERT_TRUE(answer.has_value()) << id;
      ASSERT_EQ(answer->first.id, id);
      ASSERT_EQ(answer->first.outcome.kind, OutcomeKind::kValue) << answer->first.outcome.text;
      ASSERT_EQ(answer->second.size(), 1U);
      ASSERT_TRUE(read(answer->second[0], 60'000) == content_of(id)) << id;
      ASSERT_TRUE(hear<PostOver>(caller).has_value());
    }
  }

 private:
  std::optional<LowerLimit> few_;
};

TEST_F(ShortPostTest, CarriesMoreBodiesThanItHasDescriptorsOnItsHost) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const UniqueFd caller = come(hosts_[0], "control", 0, false);
  const UniqueFd rank = come(hosts_[0], "work", 0, true);
  call_and_answer(caller, rank, 0);
}

TEST_F(ShortPostTest, CarriesMoreBodiesThanItHasDescriptorsToAnotherHost) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const UniqueFd caller = come(hosts_[0], "control", 0, false);
  const UniqueFd rank = come(hosts_[1], "work", 1, true);
  call_and_answer(caller, rank, 1);
}

TEST_F(PostTest, EndsCallsWithTheCauseThatTheDaemonTells) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const UniqueFd caller = come(hosts_[0], "control", 0, false);
  UniqueFd rank = come(hosts_[1], "work", 1, true);
  say(caller, call_of(1, 1, here("x")));
  ASSERT_TRUE(hear<PostDeliver>(rank).has_value());
  rank.reset();
  tell(hosts_[1], PostRankEnded{{{MeshId(0), Rank(1)}, {Term(1), 1}}, "killed by SIGKILL"});
  const auto answer = hear<PostAnswer>(caller);
  ASSERT_TRUE(answer.has_value());
  EXPECT_EQ(answer->first.outcome.kind, OutcomeKind::kRankLost);
  EXPECT_EQ(answer->first.outcome.text, "killed by SIGKILL");
}

TEST_F(PostTest, TellsWhyItClosesADoor) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const auto why = [&](const auto& message, std::vector<UniqueFd> beside = {}) {
    const UniqueFd caller = come(hosts_[0], "control", 0, false);
    say(caller, message, std::move(beside));
    const auto closed = hear<PostClosed>(caller);
    return closed ? closed->first.why : std::string();
  };
  EXPECT_EQ(why(PostReply{}), "it has not come to serve");
  EXPECT_EQ(why(PostSetup{}), "nobody here takes a message of type 176");
  PostCall short_call = call_of(1, 0, here("x"));
  short_call.body.bytes = 2;
  EXPECT_EQ(why(short_call), "a body of 1 bytes that says it has 2");
  short_call.body.way = BodyWay::kBeside;
  EXPECT_EQ(why(short_call), "a body that should come as a descriptor, and did not");
  std::vector<UniqueFd> beside;
  beside.push_back(*make_sealed_memory("body", "1"));
  EXPECT_EQ(why(short_call, std::move(beside)), "memory of 1 bytes for a body that has 2");
  PostCall endless = call_of(1, 0, here("x"));
  endless.deadline = Instant() - Duration::seconds(5);
  EXPECT_EQ(why(endless), "a time that is none");
  PostReply wordy;
  wordy.outcome.text.assign(kOutcomeTextBytes + 1, 'x');
  EXPECT_EQ(why(wordy), "an outcome with a text of more than 65536 bytes");
}

TEST_F(PostTest, GoesOnWithTheNextDaemon) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const UniqueFd caller = come(hosts_[0], "control", 0, false);
  for (Host& host : hosts_) {
    host.daemon.reset();
    connect_daemon(host);
    EXPECT_EQ(host.report.roster_number, 1U);
  }
  const UniqueFd rank = come(hosts_[1], "work", 1, true);
  say(caller, call_of(1, 1, here("x")));
  EXPECT_TRUE(hear<PostDeliver>(rank).has_value());
}

}  // namespace
}  // namespace monarch::post
