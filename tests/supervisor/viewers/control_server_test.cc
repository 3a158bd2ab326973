#include "supervisor/viewers/control_server.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <optional>

#include "tests/supervisor/client/scratch.h"
#include "transport/base/clock.h"
#include "transport/messages/message.h"
#include "transport/messages/stacks.h"
#include "transport/messages/viewer.h"
#include "transport/wire/codec.h"
#include "transport/wire/seqpacket_socket.h"

namespace monarch {

namespace {

constexpr std::uint64_t kRemembered = 10'000;

struct Door {
  Scratch scratch;
  std::unique_ptr<EventLoop> loop = *EventLoop::create();
  std::string path = scratch.path() + "/door";
  std::unique_ptr<ControlServer> server = *ControlServer::create(*loop, path, {}, {});
  std::uint64_t told = 0;

  void remember(std::uint64_t count) {
    for (std::uint64_t i = 0; i < count; ++i) server->remember(event());
  }
  JobEvent event() {
    JobEvent next;
    next.number = ++told;
    next.kind = EventKind::kGangRunning;
    next.message = std::string(200, 'x');
    return next;
  }
  template <class Condition>
  bool until(Condition condition) {
    const Instant deadline = boot_now() + Duration::seconds(20);
    while (!condition()) {
      if (boot_now() >= deadline) return false;
      pollfd wait{.fd = loop->descriptor(), .events = POLLIN, .revents = 0};
      (void)::poll(&wait, 1, EventLoop::wait_milliseconds(boot_now(), std::min(loop->next_due(), deadline)));
      loop->turn();
    }
    return true;
  }
};

// A viewer on the door's loop that writes down what it is sent.
struct Viewer {
  Viewer(Door& at, std::uint64_t after_event) : door(at) {
    channel = *SeqpacketChannel::create(*door.loop, *connect_seqpacket(door.path),
                                        {.on_frame = [this](Frame frame, std::vector<UniqueFd>) { take(frame); },
                                         .on_closed = [this](Error) { closed = true; }});
    Frame attach;
    attach.header.type = number_of<Attach>();
    attach.payload = encode_payload(Attach{.events = true, .after_event = after_event, .viewer = "test"});
    EXPECT_TRUE(channel->send(attach).ok());
  }
  void take(const Frame& frame) {
    const auto type = frame.header.type;
    if (type == number_of<Accepted>()) accepted = true;
    if (type == number_of<Verdict>()) ++verdicts;
    if (type != number_of<JobEvent>()) return;
    EXPECT_EQ(verdicts, 0) << "the verdict comes last";
    numbers.push_back(decode_payload<JobEvent>(frame.payload)->number);
    if (on_event) on_event();
  }

  Door& door;
  std::unique_ptr<SeqpacketChannel> channel;
  std::function<void()> on_event;
  std::vector<std::uint64_t> numbers;
  int verdicts = 0;
  bool accepted = false;
  bool closed = false;
};

std::vector<std::uint64_t> from_to(std::uint64_t first, std::uint64_t last) {
  std::vector<std::uint64_t> numbers;
  for (std::uint64_t i = first; i <= last; ++i) numbers.push_back(i);
  return numbers;
}

}  // namespace

TEST(ControlServer, SendsALongPastAndWhatHappensMeanwhileInOrder) {
  Door door;
  door.remember(kRemembered);
  Viewer viewer(door, 100);
  viewer.on_event = [&] {
    if (viewer.numbers.size() != 1) return;
    for (int i = 0; i < 50; ++i) door.server->publish(door.event());
    door.server->publish(Verdict{.exit_code = 3});
  };
  ASSERT_TRUE(door.until([&] { return viewer.verdicts > 0 || viewer.closed; }));
  EXPECT_FALSE(viewer.closed);
  EXPECT_EQ(viewer.numbers, from_to(101, kRemembered + 50));
  EXPECT_EQ(viewer.verdicts, 1);
  EXPECT_TRUE(door.server->flushed());
}

TEST(ControlServer, SendsTheStacksOfAllRanksThoughTheyComeAtOnce) {
  Scratch scratch;
  const auto loop = *EventLoop::create();
  ControlHandlers handlers;
  handlers.stacks = [](const StacksRequest& request, const std::function<void(const RankStacks&)>& answer) {
    RankStacks stacks;
    stacks.stacks.processes.resize(1);
    stacks.stacks.processes[0].output = std::string(200'000, 'x');
    for (const RankId& rank : request.ranks) {
      stacks.rank = rank;
      answer(stacks);
    }
    return Status();
  };
  const auto server = *ControlServer::create(*loop, scratch.path() + "/door", {}, std::move(handlers));
  constexpr std::uint32_t kRanks = 200;
  StacksRequest request{.limit = Duration::seconds(1)};
  for (std::uint32_t i = 0; i < kRanks; ++i) request.ranks.push_back({MeshId(0), Rank(i)});
  std::vector<std::uint32_t> told;
  bool closed = false;
  const auto channel = *SeqpacketChannel::create(*loop, *connect_seqpacket(scratch.path() + "/door"),
                                                 {.on_frame =
                                                      [&](const Frame& frame, std::vector<UniqueFd>) {
                                                        const auto stacks = decode_payload<RankStacks>(
                                                            frame.payload, limits::kStacksPayloadBytes);
                                                        ASSERT_TRUE(stacks.ok());
                                                        told.push_back(stacks->rank.rank.value());
                                                      },
                                                  .on_closed = [&](const Error&) { closed = true; }});
  Frame frame;
  frame.header.type = number_of<StacksRequest>();
  frame.payload = encode_payload(request);
  ASSERT_TRUE(channel->send(frame).ok());
  const Instant deadline = boot_now() + Duration::seconds(20);
  while (told.size() < kRanks && !closed && boot_now() < deadline) {
    pollfd wait{.fd = loop->descriptor(), .events = POLLIN, .revents = 0};
    (void)::poll(&wait, 1, EventLoop::wait_milliseconds(boot_now(), std::min(loop->next_due(), deadline)));
    loop->turn();
  }
  EXPECT_FALSE(closed) << "dropped as one that does not read";
  ASSERT_EQ(told.size(), kRanks);
  for (std::uint32_t i = 0; i < kRanks; ++i) EXPECT_EQ(told[i], i);
}

TEST(ControlServer, PassesOnWhatADrillTells) {
  Scratch scratch;
  const auto loop = *EventLoop::create();
  ControlHandlers handlers;
  DrillNotice told;
  handlers.drill = [&](const DrillNotice& notice, const ControlHandlers::Answer& answer) {
    told = notice;
    answer(Error{ErrorCode::kInvalid, "another drill has the job"});
  };
  const auto server = *ControlServer::create(*loop, scratch.path() + "/door", {}, std::move(handlers));
  std::optional<std::string> refused;
  const auto channel = *SeqpacketChannel::create(
      *loop, *connect_seqpacket(scratch.path() + "/door"),
      {.on_frame = [&](const Frame& frame,
                       std::vector<UniqueFd>) { refused = decode_payload<Refused>(frame.payload)->message; },
       .on_closed = [](const Error&) {}});
  Frame frame;
  frame.header.type = number_of<DrillNotice>();
  frame.payload = encode_payload(DrillNotice{.what = DrillWhat::kFault, .drill = "1a2b", .number = 3, .rank = 7});
  ASSERT_TRUE(channel->send(frame).ok());
  const Instant deadline = boot_now() + Duration::seconds(20);
  while (!refused && boot_now() < deadline) {
    pollfd wait{.fd = loop->descriptor(), .events = POLLIN, .revents = 0};
    (void)::poll(&wait, 1, EventLoop::wait_milliseconds(boot_now(), std::min(loop->next_due(), deadline)));
    loop->turn();
  }
  EXPECT_EQ(refused, "another drill has the job");
  EXPECT_EQ(told.number, 3U);
  EXPECT_EQ(told.rank, 7U);
}

TEST(ControlServer, TellsAViewerWithoutAPastWhatHappensFromThen) {
  Door door;
  JobEvent unnumbered;
  unnumbered.kind = EventKind::kGuardLost;
  door.server->publish(unnumbered);
  door.remember(3);
  Viewer viewer(door, 3);
  ASSERT_TRUE(door.until([&] { return viewer.accepted; }));
  EXPECT_TRUE(viewer.numbers.empty());
  door.server->publish(unnumbered);
  door.server->publish(door.event());
  door.server->publish(Verdict{});
  ASSERT_TRUE(door.until([&] { return viewer.verdicts > 0; }));
  EXPECT_EQ(viewer.numbers, (std::vector<std::uint64_t>{0, 4}));
}

TEST(ControlServer, LetsAViewerGoThatFallsBehindAllThatIsRemembered) {
  Door door;
  Viewer viewer(door, 0);
  ASSERT_TRUE(door.until([&] { return viewer.accepted; }));
  // It does not read while these happen: nothing turns the loop.
  for (std::uint64_t i = 0; i < 3 * kRemembered; ++i) door.server->publish(door.event());
  ASSERT_TRUE(door.until([&] { return viewer.closed; }));
  EXPECT_EQ(viewer.numbers, from_to(1, viewer.numbers.size())) << "no holes";
  EXPECT_LT(viewer.numbers.size(), 2 * kRemembered);
}

// The answers come when they come: also when who asked has gone, and somebody else asks by then.
TEST(ControlServer, BringsEachAnswerForStacksToWhoAskedForIt) {
  Scratch scratch;
  const auto loop = *EventLoop::create();
  std::vector<std::function<void(const RankStacks&)>> answers;
  const auto server = *ControlServer::create(*loop, scratch.path() + "/door", {},
                                             {.stacks = [&](const StacksRequest& request, auto answer) -> Status {
                                               if (request.ranks.empty()) return Error{ErrorCode::kInvalid, "no ranks"};
                                               answers.push_back(answer);
                                               return {};
                                             }});
  std::vector<Frame> seen;
  const auto asks = [&](const StacksRequest& request, std::uint64_t call) {
    auto channel = *SeqpacketChannel::create(
        *loop, *connect_seqpacket(scratch.path() + "/door"),
        {.on_frame = [&](Frame frame, std::vector<UniqueFd>) { seen.push_back(std::move(frame)); },
         .on_closed = [](Error) {}});
    Frame frame;
    frame.header.type = number_of<StacksRequest>();
    frame.header.call = call;
    frame.payload = encode_payload(request);
    EXPECT_TRUE(channel->send(frame).ok());
    return channel;
  };
  const auto until = [&](auto condition) {
    const Instant deadline = boot_now() + Duration::seconds(20);
    while (!condition() && boot_now() < deadline) {
      pollfd wait{.fd = loop->descriptor(), .events = POLLIN, .revents = 0};
      (void)::poll(&wait, 1, 20);
      loop->turn();
    }
    return condition();
  };
  const StacksRequest one{.ranks = {{MeshId(0), Rank(3)}}, .limit = Duration::seconds(2)};
  auto gone = asks(one, 1);
  ASSERT_TRUE(until([&] { return answers.size() == 1; }));
  gone.reset();
  auto stays = asks(one, 7);
  ASSERT_TRUE(until([&] { return answers.size() == 2; }));
  answers[0]({.host = "for who has gone"});
  answers[1]({.host = "for who stays"});
  ASSERT_TRUE(until([&] { return !seen.empty(); }));
  EXPECT_EQ(seen[0].header.call, 7U);
  EXPECT_EQ(decode_payload<RankStacks>(seen[0].payload)->host, "for who stays");
  auto refused = asks({.ranks = {}}, 9);
  ASSERT_TRUE(until([&] { return seen.size() == 2; }));
  EXPECT_EQ(seen[1].header.type, number_of<Refused>());
  EXPECT_EQ(decode_payload<Refused>(seen[1].payload)->message, "no ranks");
}

}  // namespace monarch
