// The door of a real post, as monarch-rank comes to it.

#include "worker/rank/door_client.h"

#include <gtest/gtest.h>

#include <future>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/worker/post_lab.h"
#include "transport/wire/codec.h"
#include "worker/rank/actor_thread.h"
#include "worker/rank/calls.h"
#include "worker/rank/deliveries.h"

namespace monarch {
namespace {

constexpr Duration kPatience = Duration::seconds(20);

class DoorClientTest : public post::PostLab {
 protected:
  std::string door(std::size_t host) const { return hosts_[host].setup.directory + "/post"; }

  static PostHello hello(const std::string& mesh, std::uint32_t rank, bool serves) {
    PostHello hello;
    hello.mesh = mesh;
    hello.rank = rank;
    hello.generation = 1;
    hello.serves = serves;
    if (serves) hello.actors = {{"a", "A", {{"f", "*"}}}};
    return hello;
  }
  const std::shared_ptr<DoorMemory> memory_ = std::make_shared<DoorMemory>();
  std::unique_ptr<DoorClient> come(std::size_t host, const PostHello& hello) {
    auto client = DoorClient::come(door(host), hello, kPatience, memory_);
    EXPECT_TRUE(client.ok()) << client.error().message;
    return client.ok() ? std::move(*client) : nullptr;
  }
  template <class Message>
  static std::pair<Message, std::string> hear(DoorClient& client, CallBody Message::*body) {
    auto heard = client.hear(kPatience);
    EXPECT_TRUE(heard.ok()) << heard.error().message;
    auto message = decode_payload<Message>(heard->frame.payload);
    EXPECT_TRUE(message.ok());
    const auto bytes = DoorBody::take((*message).*body, heard->descriptors);
    EXPECT_TRUE(bytes.ok());
    return {*message, std::string(bytes->bytes())};
  }
  static PostCall call_of(std::uint64_t id) {
    PostCall call;
    call.id = id;
    call.mesh = "work";
    call.ranks = {{.first = 1, .count = 1, .step = 1}};
    call.target = {"a", "f", "x"};
    return call;
  }
};

TEST_F(DoorClientTest, CarriesBodiesOfAnySizeBothWays) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const auto caller = come(0, hello("control", 0, false));
  const auto rank = come(1, hello("work", 1, true));
  ASSERT_TRUE(caller && rank);
  EXPECT_EQ(caller->welcome().host, "h0");
  EXPECT_EQ(caller->welcome().meshes.size(), 2U);
  std::uint64_t id = 0;
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, kBodyHereBytes, kBodyHereBytes + 1, std::size_t{3} << 20U}) {
    const std::string arguments(size, 'a');
    ASSERT_TRUE(caller->send(call_of(++id), arguments).ok());
    const auto [given, bytes] = hear(*rank, &PostDeliver::body);
    EXPECT_EQ(bytes, arguments);
    PostReply reply;
    reply.delivery = given.delivery;
    ASSERT_TRUE(rank->send(reply, bytes + "!").ok());
    auto heard = caller->hear(kPatience);
    ASSERT_TRUE(heard.ok());
    const auto answer = decode_payload<PostAnswer>(heard->frame.payload);
    ASSERT_TRUE(answer.ok());
    EXPECT_EQ(answer->id, id);
    const auto value = DoorBody::take(answer->outcome.body, heard->descriptors);
    ASSERT_TRUE(value.ok());
    EXPECT_EQ(value->bytes(), arguments + "!");
    ASSERT_TRUE(caller->hear(kPatience).ok()) << "it is over";
  }
}

// What a rank lets out however long: the caller has its end, and the rank's connection stands.
TEST_F(DoorClientTest, CutsTextsThatAreTooLongAndSaysWhatHasNotRun) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const auto caller = come(0, hello("control", 0, false));
  const DoorThread::Connection rank = come(1, hello("work", 1, true));
  ASSERT_TRUE(caller && rank);
  Deliveries deliveries;
  const auto outcome_of = [&](std::uint64_t id, CallOutcome outcome, std::string_view value) {
    EXPECT_TRUE(caller->send(call_of(id), "").ok());
    const auto [given, bytes] = hear(*rank, &PostDeliver::body);
    deliveries.answer(deliveries.add(given.delivery, rank, nullptr), std::move(outcome), value);
    auto heard = caller->hear(kPatience);
    EXPECT_TRUE(heard.ok());
    auto answer = decode_payload<PostAnswer>(heard->frame.payload);
    EXPECT_TRUE(answer.ok());
    EXPECT_TRUE(caller->hear(kPatience).ok()) << "it is over";
    return answer.ok() ? std::move(answer->outcome) : CallOutcome{};
  };
  CallOutcome loud;
  loud.kind = OutcomeKind::kRemoteError;
  loud.type = loud.traceback = std::string(std::size_t{3} << 20U, 't');
  loud.text = "it begins " + std::string(std::size_t{3} << 20U, 'x') + " the end";
  const CallOutcome cut = outcome_of(1, loud, {});
  EXPECT_EQ(cut.kind, OutcomeKind::kRemoteError);
  EXPECT_EQ(cut.text.size(), std::size_t{64} << 10U);
  EXPECT_EQ(cut.traceback.size(), std::size_t{64} << 10U);
  EXPECT_TRUE(cut.text.starts_with("it begins xxx"));
  EXPECT_TRUE(cut.text.ends_with("xxx the end"));
  const CallOutcome large = outcome_of(2, {}, std::string((std::size_t{64} << 20U) + 1, 'x'));
  EXPECT_EQ(large.kind, OutcomeKind::kRefused);
  EXPECT_EQ(large.text, "it has run, and its result is 64MiB: a call carries 1GiB at most, 64MiB to another host");
  CallOutcome not_run;
  not_run.kind = OutcomeKind::kRankLost;
  EXPECT_EQ(outcome_of(3, not_run, {}).kind, OutcomeKind::kRankLost);
}

// The first call runs until the test lets it; the second one waits meanwhile.
TEST_F(DoorClientTest, HearsThatACallWhichWaitedHasNotRunWhereItsRankIsToldToEnd) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const auto caller = come(0, hello("control", 0, false));
  const DoorThread::Connection rank = come(1, hello("work", 1, true));
  ASSERT_TRUE(caller && rank);
  static std::promise<void>* may_end = nullptr;
  static std::promise<void>* begun = nullptr;
  std::promise<void> end_of_first;
  std::promise<void> begin_of_first;
  may_end = &end_of_first;
  begun = &begin_of_first;
  const monarch_endpoint_v1 endpoint{
      .struct_size = sizeof(monarch_endpoint_v1),
      .at_most = 0,
      .name = "f",
      .signature = "*",
      .invoke = [](void*, monarch_bytes_v1, const monarch_host_v1*, monarch_delivery_v1* delivery) {
        begun->set_value();
        may_end->get_future().wait();
        delivery->of->answer(delivery, {}, {});
      }};
  const monarch_class_v1 of{
      .struct_size = sizeof(monarch_class_v1),
      .endpoint_count = 1,
      .name = "A",
      .endpoints = &endpoint,
      .create = [](const monarch_host_v1*, const monarch_place_v1*, char*, std::size_t) -> void* { return &may_end; },
      .destroy = [](void*) {}};
  const monarch_host_v1 host{};
  const monarch_place_v1 place{};
  Deliveries deliveries;
  auto actor = ActorThread::make(of, host, place);
  ASSERT_TRUE(actor.ok());
  for (const std::uint64_t id : {1U, 2U}) {
    ASSERT_TRUE(caller->send(call_of(id), "").ok());
    const auto [given, bytes] = hear(*rank, &PostDeliver::body);
    (*actor)->put(
        {.endpoint = &endpoint, .arguments = {}, .delivery = deliveries.add(given.delivery, rank, actor->get())});
  }
  begin_of_first.get_future().wait();
  (*actor)->begin_stop();
  auto heard = caller->hear(kPatience);
  ASSERT_TRUE(heard.ok());
  const auto waited = decode_payload<PostAnswer>(heard->frame.payload);
  ASSERT_TRUE(waited.ok());
  EXPECT_EQ(waited->id, 2U);
  EXPECT_EQ(waited->outcome.kind, OutcomeKind::kRankLost);
  EXPECT_EQ(waited->outcome.text, "it has not run: the rank was told to end");
  ASSERT_TRUE(caller->hear(kPatience).ok()) << "it is over";
  end_of_first.set_value();
  heard = caller->hear(kPatience);
  ASSERT_TRUE(heard.ok());
  const auto ran = decode_payload<PostAnswer>(heard->frame.payload);
  ASSERT_TRUE(ran.ok());
  EXPECT_EQ(ran->id, 1U);
  EXPECT_EQ(ran->outcome.kind, OutcomeKind::kValue);
}

TEST_F(DoorClientTest, IsBusyWhereACallThatIsTriedWouldWait) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const auto rank = come(1, hello("work", 1, true));
  ASSERT_TRUE(rank);
  Calls calls(door(0), hello("control", 0, false));
  const monarch_ranks_v1 ranks{.first = 1, .count = 1, .step = 1};
  monarch_call_v1 call{};
  call.struct_size = sizeof call;
  call.mesh = "work";
  call.actor = "a";
  call.endpoint = "f";
  call.signature = "*";
  call.ranks = &ranks;
  call.ranks_count = 1;
  call.on_answer = [](void*, const monarch_answer_v1*) {};
  for (std::size_t i = 0; i + 1 < kWindowCalls; ++i) (void)calls.call(call);
  std::vector<std::string> said;
  call.user = &said;
  call.on_answer = [](void* user, const monarch_answer_v1* answer) {
    if (answer == nullptr) return;
    static_cast<std::vector<std::string>*>(user)->push_back(std::to_string(answer->kind) + " " + answer->text);
  };
  call.flags = MONARCH_CALL_TRY;
  (void)calls.call(call);  // the last that need not wait
  EXPECT_TRUE(said.empty());
  (void)calls.call(call);
  EXPECT_EQ(said, std::vector<std::string>{"4 1024 calls of 0B are under way at a of work/1"});
  call.actor = "b";
  call.on_answer = [](void*, const monarch_answer_v1*) {};
  (void)calls.call(call);
  EXPECT_EQ(said.size(), 1U) << "another actor has room";
  calls.stop();
}

TEST_F(DoorClientTest, SaysWhyItIsNotWelcome) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const auto refused = DoorClient::come(door(0), hello("wrok", 0, true), kPatience, memory_);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kGone);
  EXPECT_EQ(refused.error().message,
            "the post has closed the connection: the job has no mesh wrok; did you mean work?");
  EXPECT_FALSE(DoorClient::come(root_ + "/none", hello("work", 0, true), kPatience, memory_).ok());
}

TEST_F(DoorClientTest, WaitsForItsWelcomeUntilItsTimeIsUp) {
  ASSERT_FALSE(HasFatalFailure());
  const auto early = DoorClient::come(door(0), hello("work", 0, true), Duration::milliseconds(50), memory_);
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code, ErrorCode::kTimeout);
}

TEST_F(DoorClientTest, IsWokenWhenItIsClosed) {
  ASSERT_FALSE(HasFatalFailure());
  tell_roster(1);
  const auto caller = come(0, hello("control", 0, false));
  ASSERT_TRUE(caller);
  std::thread reader([&] {
    const auto heard = caller->hear();
    EXPECT_EQ(heard.ok() ? ErrorCode::kInternal : heard.error().code, ErrorCode::kGone);
  });
  caller->close();
  reader.join();
  EXPECT_EQ(caller->send(PostCancel{1}).error().code, ErrorCode::kGone);
}

}  // namespace
}  // namespace monarch
