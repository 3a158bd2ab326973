#include "supervisor/client/link/supervisor_client.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>

#include "tests/supervisor/client/scratch.h"
#include "transport/base/clock.h"
#include "transport/messages/viewer.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_listener.h"

namespace monarch {

namespace {

// A supervisor's door: answers status and stop as it is told to, and keeps what came.
struct Fixture {
  Scratch scratch;
  std::unique_ptr<EventLoop> loop = *EventLoop::create();
  std::string path = scratch.path() + "/door";
  std::vector<std::unique_ptr<SeqpacketChannel>> peers;
  std::vector<Frame> received;
  bool done = false;
  std::function<void(SeqpacketChannel&, const Frame&)> on_frame;
  std::unique_ptr<SeqpacketListener> listener =
      *SeqpacketListener::create(*loop, path, [this](UniqueFd socket, PeerCredentials) {
        const std::size_t index = peers.size();
        peers.push_back(*SeqpacketChannel::create(*loop, std::move(socket),
                                                  {.on_frame =
                                                       [this, index](Frame frame, std::vector<UniqueFd>) {
                                                         received.push_back(frame);
                                                         if (on_frame) on_frame(*peers[index], frame);
                                                       },
                                                   .on_closed = [](const Error&) {}}));
      });

  template <class Message>
  static void answer(SeqpacketChannel& peer, const Message& message, std::uint64_t call = 0) {
    ASSERT_TRUE(peer.send(frame_of(message, {.call = call})).ok());
  }
  // Turns until something set `done`.
  void run() {
    const Instant until = boot_now() + Duration::seconds(20);
    while (!done && boot_now() < until) {
      pollfd wait{.fd = loop->descriptor(), .events = POLLIN, .revents = 0};
      // Whatever it answers: the turn finds out.
      (void)::poll(&wait, 1, EventLoop::wait_milliseconds(boot_now(), std::min(loop->next_due(), until)));
      loop->turn();
    }
    EXPECT_TRUE(done) << "nothing came within 20s";
    done = false;
  }
};

}  // namespace

TEST(SupervisorClient, AsksForEventsAndHandsThemOver) {
  Fixture f;
  f.on_frame = [](SeqpacketChannel& peer, const Frame&) {
    JobEvent event;
    event.kind = EventKind::kHostReady;
    Fixture::answer(peer, event);
    Fixture::answer(peer, Verdict{.exit_code = 3});
  };
  EventKind kind{};
  int exit_code = 0;
  auto client = SupervisorClient::connect(*f.loop, f.path,
                                          {.on_event = [&](const JobEvent& event) { kind = event.kind; },
                                           .on_verdict =
                                               [&](const Verdict& verdict) {
                                                 exit_code = verdict.exit_code;
                                                 f.done = true;
                                               }});
  ASSERT_TRUE(client.ok());
  ASSERT_TRUE((*client)->attach("test", 41).ok());
  f.run();
  EXPECT_EQ(kind, EventKind::kHostReady);
  EXPECT_EQ(exit_code, 3);
  const auto attach = decode_payload<Attach>(f.received.at(0).payload);
  ASSERT_TRUE(attach.ok());
  EXPECT_TRUE(attach->events);
  EXPECT_FALSE(attach->output);
  EXPECT_EQ(attach->after_event, 41U);
}

TEST(SupervisorClient, BindsEachAnswerToItsRequest) {
  Fixture f;
  std::vector<Frame> asked;
  f.on_frame = [&](SeqpacketChannel& peer, const Frame& frame) {
    asked.push_back(frame);
    if (asked.size() < 2) return;
    // In the other order than they were asked.
    Fixture::answer(peer, Refused{.message = "not now"}, asked[1].header.call);
    Fixture::answer(peer, JobStatus{.job_id = "a-0001"}, asked[0].header.call);
  };
  auto client = SupervisorClient::connect(*f.loop, f.path, {});
  ASSERT_TRUE(client.ok());
  std::string id;
  std::string refusal;
  (*client)->request(StatusRequest{}, [&](const Result<JobStatus>& status) {
    id = status.ok() ? status->job_id : status.error().message;
    f.done = true;
  });
  (*client)->request(StopRequest{},
                     [&](const Result<Accepted>& answer) { refusal = answer.ok() ? "" : answer.error().message; });
  f.run();
  EXPECT_EQ(id, "a-0001");
  EXPECT_EQ(refusal, "not now");
}

TEST(SupervisorClient, FailsWhatIsAskedWhenTheSupervisorGoes) {
  Fixture f;
  f.on_frame = [&](SeqpacketChannel&, const Frame&) { f.loop->defer([&] { f.peers.clear(); }); };
  int closed = 0;
  ErrorCode code = ErrorCode::kInternal;
  auto client = SupervisorClient::connect(*f.loop, f.path, {.on_closed = [&](const Error&) {
    ++closed;
    f.done = true;
  }});
  ASSERT_TRUE(client.ok());
  (*client)->request(StatusRequest{}, [&](const Result<JobStatus>& status) { code = status.error().code; });
  f.run();
  EXPECT_EQ(code, ErrorCode::kGone);
  EXPECT_EQ(closed, 1);
}

TEST(SupervisorClient, SaysThatNobodyIsThere) {
  Fixture f;
  EXPECT_EQ(SupervisorClient::connect(*f.loop, f.path + "-other", {}).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(ask(f.path + "-other", StatusRequest{}).error().code, ErrorCode::kNotFound);
}

TEST(OutputConnection, ReadsNothingWhilePaused) {
  Fixture f;
  const auto piece = [](SeqpacketChannel& peer, std::uint64_t offset) {
    Fixture::answer(peer, ViewerOutput{{.offset = offset, .bytes = "x"}});
  };
  f.on_frame = [&](SeqpacketChannel& peer, const Frame& frame) {
    const auto attach = decode_payload<Attach>(frame.payload);
    ASSERT_TRUE(attach.ok() && attach->output);
    Fixture::answer(peer, Accepted{});
    piece(peer, 0);
    piece(peer, 1);
  };
  std::vector<std::uint64_t> offsets;
  std::unique_ptr<OutputConnection> connection;
  auto connected = OutputConnection::connect(*f.loop, f.path, "test",
                                             {.on_piece =
                                                  [&](const OutputPiece& got) {
                                                    offsets.push_back(got.output.offset);
                                                    connection->pause();
                                                    f.done = true;
                                                  },
                                              .on_closed = [](const Error&) {}});
  ASSERT_TRUE(connected.ok());
  connection = std::move(*connected);
  f.run();
  for (int turn = 0; turn < 5; ++turn) f.loop->turn();
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{0}));
  connection->resume();
  f.run();
  EXPECT_EQ(offsets, (std::vector<std::uint64_t>{0, 1}));
}

TEST(OutputConnection, ToldOnceThatItIsClosed) {
  Fixture f;
  f.on_frame = [&](SeqpacketChannel&, const Frame&) { f.loop->defer([&] { f.peers.clear(); }); };
  int closed = 0;
  auto connection = OutputConnection::connect(*f.loop, f.path, "test",
                                              {.on_piece = [](const OutputPiece&) {},
                                               .on_closed =
                                                   [&](const Error&) {
                                                     ++closed;
                                                     f.done = true;
                                                   }});
  ASSERT_TRUE(connection.ok());
  f.run();
  for (int turn = 0; turn < 3; ++turn) f.loop->turn();
  EXPECT_EQ(closed, 1);
}

}  // namespace monarch
