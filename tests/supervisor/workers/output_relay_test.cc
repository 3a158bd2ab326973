#include "supervisor/workers/output_relay.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "supervisor/launch/local/local_spec.h"
#include "supervisor/workers/worker_links.h"
#include "tests/supervisor/core/fixtures.h"
#include "tests/transport/zmq/zmq_lab.h"
#include "transport/messages/message.h"
#include "transport/messages/output.h"
#include "transport/messages/stacks.h"
#include "transport/wire/codec.h"
#include "transport/wire/seqpacket_channel.h"

namespace monarch {

namespace {

constexpr JobUuid kJob{};
const RankId kOwn{MeshId(0), Rank(0)};
const RankId kOwnToo{MeshId(0), Rank(1)};
const RankId kOther{MeshId(0), Rank(2)};
const RankId kOtherToo{MeshId(0), Rank(3)};
const Generation kNewest{Term(1), 5};

// Two hosts with two ranks each; the worker of the first is connected, and a viewer looks on.
struct Relayed {
  ZmqLab lab;
  CurveKeyPair keys = key_pair();
  // Used by the relay's thread: they outlive it.
  std::unique_ptr<Inbox<Incarnation>> copied = *Inbox<Incarnation>::create(16);
  std::unique_ptr<Inbox<StacksCame>> stacks = *Inbox<StacksCame>::create(4);
  std::unique_ptr<OutputRelay> relay;
  std::unique_ptr<RecordedClient> worker;
  std::vector<Frame> seen;
  std::unique_ptr<SeqpacketChannel> viewer;

  explicit Relayed(const std::optional<OutputCopyOptions>& copy = {}) {
    lab.allow({{keys.public_key, user_id_of(HostId(0))}});
    auto link = *ServerLink::bind(*lab.context, {}, lab.server_keys);
    ClientOptions to;
    to.port = link->port();
    to.server_key = lab.server_keys.public_key;
    relay = *OutputRelay::start(std::move(link), {.job = kJob,
                                                  .meshes = 1,
                                                  .started = {{HostId(0), {}, kNewest, {kOwn, kOwnToo}},
                                                              {HostId(1), {}, kNewest, {kOther, kOtherToo}}},
                                                  .copy = copy,
                                                  .stacks = stacks.get(),
                                                  .copied = copied.get()});
    worker = std::make_unique<RecordedClient>(*lab.context, *lab.loop, to, keys);
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends.data()), 0);
    viewer = *SeqpacketChannel::create(
        *lab.events, UniqueFd(ends[0]),
        {.on_frame = [this](Frame frame, std::vector<UniqueFd>) { seen.push_back(std::move(frame)); },
         .on_closed = [](const Error&) {}});
    EXPECT_TRUE(relay->add_viewer(UniqueFd(ends[1])).ok());
    EXPECT_TRUE(lab.until([this] { return !seen.empty() && worker->link->connected(); }));
    seen.clear();  // that it was accepted
  }

  void say_stacks(RankId rank, const Stacks& said) {
    FrameHeader header;
    header.type = number_of<Stacks>();
    header.job = kJob;
    header.process.rank = rank;
    header.process.generation = {Term(1), 5};
    std::vector<ZmqFrame> frames;
    frames.push_back(ZmqFrame::copy(encode_header(header)));
    frames.push_back(ZmqFrame::copy(encode_payload(said)));
    EXPECT_TRUE(worker->link->send(frames).ok());
  }

  void say(RankId rank, std::string bytes, std::uint64_t offset = 0, Generation generation = {}) {
    FrameHeader header;
    header.process.generation = generation;
    header.type = number_of<Output>();
    header.job = kJob;
    header.process.rank = rank;
    std::vector<ZmqFrame> frames;
    frames.push_back(ZmqFrame::copy(encode_header(header)));
    frames.push_back(ZmqFrame::copy(encode_payload(Output{.offset = offset, .bytes = std::move(bytes)})));
    EXPECT_TRUE(worker->link->send(frames).ok());
  }
};

}  // namespace

TEST(OutputRelay, PassesOnWhatAHostSaysOfItsOwnRanksAlone) {
  Relayed r;
  r.say({MeshId(0), Rank(2)}, "of the other host");
  r.say({MeshId(0), Rank(4)}, "of no rank");
  r.say({MeshId(1), Rank(0)}, "of no mesh");
  r.say({MeshId(0), Rank(1)}, "its own");
  ASSERT_TRUE(r.lab.until([&] { return !r.seen.empty(); }));
  EXPECT_EQ(decode_payload<Output>(r.seen.front().payload)->bytes, "its own");
  EXPECT_EQ(r.seen.size(), 1U);
  EXPECT_EQ(r.relay->forged_pieces(), 3U);
  EXPECT_EQ(r.relay->dropped_pieces(), 0U);
}

TEST(OutputRelay, HearsOfNoGenerationThatWasNotStarted) {
  Relayed r;
  for (std::uint64_t made_up = 6; made_up < 250; ++made_up) r.say(kOwn, "made up", 0, {Term(1), made_up});
  ASSERT_TRUE(r.lab.until([&] { return r.relay->forged_pieces() == 244; }));
  r.say(kOwn, "its own", 0, kNewest);
  ASSERT_TRUE(r.lab.until([&] { return !r.seen.empty(); }));
  EXPECT_EQ(decode_payload<Output>(r.seen.front().payload)->bytes, "its own");
  EXPECT_EQ(r.relay->newly_refused(), std::vector{HostId(0)}) << "told once";
  r.say(kOther, "of the other host");
  ASSERT_TRUE(r.lab.until([&] { return r.relay->forged_pieces() == 245; }));
  EXPECT_TRUE(r.relay->newly_refused().empty());
}

// Its slot has moved on, or it is a standby's: what it says of what was started there is its own.
TEST(OutputRelay, HearsOfAGenerationFromTheHostOnWhichThatWasStarted) {
  Relayed r;
  const Generation moved_here{Term(1), 6};
  const RankId standby{MeshId(2), Rank(0)};
  // Whether its thread takes the table or a piece first is open, until the first piece has come through.
  ASSERT_TRUE(
      r.relay->started({{HostId(0), moved_here, moved_here, {kOther}}, {HostId(1), moved_here, moved_here, {kOwn}}})
          .ok());
  ASSERT_TRUE(r.lab.until([&] {
    if (r.seen.empty()) r.say(kOther, "its own now", 0, moved_here);
    return !r.seen.empty();
  }));
  const std::uint64_t before = r.relay->forged_pieces();
  r.say(kOwn, "last words", 0, kNewest);
  ASSERT_TRUE(r.lab.until([&] { return decode_payload<Output>(r.seen.back().payload)->bytes == "last words"; }));
  r.say(kOwn, "of the next, which runs elsewhere", 0, moved_here);
  r.say(kOther, "of one that ran elsewhere", 0, kNewest);
  r.say(standby, "of a standby that nobody started there", 0, kNewest);
  ASSERT_TRUE(r.lab.until([&] { return r.relay->forged_pieces() == before + 3; }));
  EXPECT_EQ(decode_payload<Output>(r.seen.back().payload)->bytes, "last words");
}

TEST(OutputRelay, KnowsWhoSpokeForEachRankOfAGangThatMoved) {
  std::vector<RankId> ranks;
  for (std::uint32_t i = 0; i < 4; ++i) ranks.push_back({MeshId(0), Rank(i)});
  const std::vector<RanksStarted> told = started_before({{.first = {Term(1), 2}, .hosts = {HostId(0), HostId(1)}},
                                                         {.first = {Term(2), 5}, .hosts = {HostId(0), HostId(3)}}},
                                                        {Term(2), 7}, ranks);
  ASSERT_EQ(told.size(), 4U);
  EXPECT_EQ(told[1].host, HostId(1));
  EXPECT_EQ(told[1].first.counter, 2U);
  EXPECT_EQ(told[1].last.counter, 4U);
  EXPECT_EQ(told[1].ranks, (std::vector<RankId>{ranks[2], ranks[3]}));
  EXPECT_EQ(told[3].host, HostId(3));
  EXPECT_EQ(told[3].first.counter, 5U);
  EXPECT_EQ(told[3].last.counter, 7U);
  EXPECT_TRUE(started_before({}, {Term(1), 1}, ranks).empty());
}

// As a supervisor that comes back finds it.
TEST(OutputRelay, KnowsWhoSpeaksForWhatARestoredJobHasStarted) {
  JobSpec spec = fixtures::job_of(2, 2);
  LaunchLocal launch{.hosts = 3, .spares = 1};
  launch.prepare = {.program = {"warm"}};
  spec.launch = launch;
  fixtures::Driver driver(spec);
  driver.run_all();
  driver.join(2);
  const std::vector<RanksStarted> told = started_before(driver.core);
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0].host, HostId(0));
  EXPECT_EQ(told[0].ranks, (std::vector<RankId>{kOwn, kOwnToo}));
  EXPECT_EQ(told[1].host, HostId(1));
  EXPECT_EQ(told[1].last.counter, 1U);
  EXPECT_EQ(told[2].host, HostId(2));
  EXPECT_EQ(told[2].ranks, std::vector<RankId>{crew_rank(spec, {{prepare_mesh(spec), GangId(2)}, 0})});
}

TEST(OutputRelay, KeepsACopyAndAsksTheHostForWhatItMisses) {
  std::string folder = (std::filesystem::temp_directory_path() / "monarch-relay-XXXXXX").string();
  ASSERT_NE(::mkdtemp(folder.data()), nullptr);
  const RankId rank{MeshId(0), Rank(1)};
  Relayed r(OutputCopyOptions{.log_directory = folder, .mesh_names = {"trainer"}});
  r.say(rank, "hello ");
  r.say(rank, "there", 12);
  // The answer to the piece that came too early.
  ASSERT_TRUE(r.lab.until([&] { return !r.worker->messages.empty(); }));
  const auto header = decode_header(r.worker->messages[0]);
  EXPECT_EQ(header->type, number_of<OutputFrom>());
  EXPECT_EQ(header->process.rank, rank);
  EXPECT_EQ(decode_payload<OutputFrom>(r.worker->messages[1])->offset, 6U);
  r.say(rank, "world ", 6);
  r.say(rank, "there", 12);
  EXPECT_TRUE(r.relay->written({.process = {rank, {}}, .stdout_bytes = 17, .complete = true}));
  ASSERT_TRUE(r.lab.until([&] { return !r.copied->take_all().empty(); }));
  std::ifstream in(folder + "/trainer/1.0.out");
  EXPECT_EQ(std::string(std::istreambuf_iterator<char>(in), {}), "hello world there");
  std::filesystem::remove_all(folder);
}

TEST(OutputRelay, HandsOnTheStacksOfAHostsOwnRanksThatAreNotTooLarge) {
  Relayed r;
  Stacks large;
  large.processes.resize(1);
  large.processes[0].output = std::string(limits::kStacksPayloadBytes, 'x');
  r.say_stacks({MeshId(0), Rank(1)}, large);
  r.say_stacks({MeshId(0), Rank(2)}, {.number = 1});
  r.say_stacks({MeshId(0), Rank(1)}, {.number = 2});
  std::vector<StacksCame> came;
  ASSERT_TRUE(r.lab.until([&] {
    for (StacksCame& one : r.stacks->take_all()) came.push_back(std::move(one));
    return !came.empty();
  }));
  ASSERT_EQ(came.size(), 1U);
  EXPECT_EQ(came[0].process, (Incarnation{{MeshId(0), Rank(1)}, {Term(1), 5}}));
  EXPECT_EQ(came[0].stacks.number, 2U);
  EXPECT_EQ(r.relay->forged_pieces(), 1U);
  EXPECT_TRUE(r.seen.empty()) << "viewers of output do not get them";
}

}  // namespace monarch
