#include "supervisor/client/stacks/ask_stacks.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/supervisor/client/scratch.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/message.h"
#include "transport/messages/stacks.h"
#include "transport/wire/codec.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/wire/seqpacket_listener.h"

namespace monarch {
namespace {

const RankId kFirst{MeshId(0), Rank(0)};
const RankId kOther{MeshId(0), Rank(1)};

// A supervisor that answers for so many ranks of a request, and ends.
struct Told {
  explicit Told(std::size_t answers) {
    listener = *SeqpacketListener::create(*loop, path, [this, answers](UniqueFd socket, PeerCredentials) {
      channel = *SeqpacketChannel::create(
          *loop, std::move(socket),
          {.on_frame = [this, answers](const Frame& frame, std::vector<UniqueFd>) { answer(frame, answers); },
           .on_closed = [this](const Error&) { loop->stop(); }});
    });
    thread = std::thread([this] { loop->run(); });
  }
  ~Told() { thread.join(); }
  Told(const Told&) = delete;
  Told& operator=(const Told&) = delete;

  void answer(const Frame& asked, std::size_t answers) {
    const auto request = decode_payload<StacksRequest>(asked.payload);
    for (std::size_t i = 0; i < answers && i < request->ranks.size(); ++i) {
      Frame frame;
      frame.header.type = number_of<RankStacks>();
      RankStacks stacks{.rank = request->ranks[i], .host = "v1", .stacks = {}};
      stacks.stacks.processes.resize(1);
      frame.payload = encode_payload(stacks);
      EXPECT_TRUE(channel->send(frame).ok());
    }
    channel->close();
  }

  Scratch scratch;
  std::string path = scratch.path() + "/door";
  std::unique_ptr<EventLoop> loop = *EventLoop::create();
  std::unique_ptr<SeqpacketListener> listener;
  std::unique_ptr<SeqpacketChannel> channel;
  std::thread thread;
};

TEST(AskStacks, BringWhatCameWhereTheRestDidNot) {
  Told told(1);
  const auto stacks = ask_stacks(told.path, {.ranks = {kOther, kFirst}, .limit = Duration::seconds(2)}, {"v1", "v2"});
  ASSERT_TRUE(stacks.ok()) << stacks.error().message;
  ASSERT_EQ(stacks->size(), 2U);
  EXPECT_EQ((*stacks)[0].rank, kOther);
  EXPECT_EQ((*stacks)[0].stacks.processes.size(), 1U);
  EXPECT_EQ((*stacks)[1].rank, kFirst);
  EXPECT_EQ((*stacks)[1].host, "v2");
  EXPECT_EQ((*stacks)[1].stacks.end, StacksEnd::kUnreachable);
  EXPECT_NE((*stacks)[1].stacks.detail, "");
}

TEST(AskStacks, SayWhyWhereNothingCame) {
  Told told(0);
  const auto stacks = ask_stacks(told.path, {.ranks = {kFirst}, .limit = Duration::seconds(2)}, {"v1"});
  ASSERT_FALSE(stacks.ok());
  EXPECT_EQ(stacks.error().code, ErrorCode::kGone);
}

TEST(AskStacks, GiveAHostWithManyTheTimeOfAllItsTurns) {
  EXPECT_EQ(patience_with_host(Duration::seconds(2), 1), Duration::seconds(3));
  EXPECT_EQ(patience_with_host(Duration::seconds(2), 9), Duration::seconds(2 * 3 + 1));
  EXPECT_EQ(patience_with_host(Duration::seconds(60), 64), Duration::seconds(120 + 1))
      << "and no longer than is bearable";
}

}  // namespace
}  // namespace monarch
