// Two posts of one job with real sockets between them; who plays their daemons, a caller and a rank is the test.

#include "worker/post/post.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/worker/post_lab.h"
#include "transport/messages/post.h"
#include "transport/wire/mapped_memory.h"
#include "transport/wire/memory_pool.h"
#include "transport/wire/sealed_memory.h"

namespace monarch::post {
namespace {

struct Heard {
  Frame frame;
  std::vector<UniqueFd> descriptors;
};

class PostTest : public PostLab {
 protected:
  UniqueFd come(const Host& host, const std::string& mesh, std::uint32_t rank, bool serves) {
    auto socket = connect_seqpacket(host.setup.directory + "/post");
    EXPECT_TRUE(socket.ok());
    if (!socket.ok()) return {};
    PostHello hello;
    hello.mesh = mesh;
    hello.rank = rank;
    hello.generation = 1;
    hello.serves = serves;
    if (serves) hello.actors = {{"a", "A", {{"f", "*"}}}};
    say(*socket, hello);
    EXPECT_TRUE(hear<PostWelcome>(*socket).has_value());
    return std::move(*socket);
  }

  template <class Message>
  static void say(const UniqueFd& socket, const Message& message, std::vector<UniqueFd> descriptors = {}) {
    const auto packed = pack_message(frame_of(message), std::move(descriptors), limits::kSeqpacketInlineBytes);
    ASSERT_TRUE(packed.ok());
    ASSERT_EQ(send_message(socket.get(), *packed), SendOutcome::kSent);
  }

  template <class Message>
  static std::optional<std::pair<Message, std::vector<UniqueFd>>> hear(const UniqueFd& socket) {
    if (!becomes_readable(socket.get())) return std::nullopt;
    auto received = receive_message(socket.get(), limits::kSeqpacketPayloadBytes);
    if (!received.ok() || !received->has_value()) return std::nullopt;
    EXPECT_TRUE(is_a<Message>((*received)->frame.header)) << (*received)->frame.header.type;
    auto message = decode_payload<Message>((*received)->frame.payload);
    if (!message.ok()) return std::nullopt;
    return std::pair(std::move(*message), std::move((*received)->descriptors));
  }

  static std::string read(const UniqueFd& memory, std::size_t size) {
    EXPECT_GE(lent_memory_size(memory.get()).value(), size);
    const auto mapped = MappedMemory::map(memory.get(), size);
    return mapped.ok() ? std::string((*mapped)->bytes()) : std::string();
  }

  static CallBody here(const std::string& bytes) {
    return {.bytes = bytes.size(), .way = BodyWay::kHere, .here = {bytes}, .at = {}};
  }
  static PostCall call_of(std::uint64_t id, std::uint32_t rank, CallBody body) {
    PostCall call;
    call.id = id;
    call.mesh = "work";
    call.ranks = {{.first = rank, .count = 1, .step = 1}};
    call.target = {"a", "f", "x"};
    call.body = std::move(body);
    return call;
  }
};

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
