// Ranks that publish and readers that pull, over the real sockets and slots, on each lane.

#include "transport/tensor/pull.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>

#include "tests/transport/tensor/tensor_gang.h"
#include "tests/transport/tensor/test_devices.h"
#include "transport/base/sanitizers.h"
#include "transport/tensor/link_socket.h"

namespace monarch::tensor {
namespace {

struct Way {
  const char* name;
  LinkWays ways;
};

class PullLaneTest : public ::testing::TestWithParam<Way> {
 protected:
  void SetUp() override {
    if (ways().verbs) devices = std::make_unique<TestDevices>();
  }
  void TearDown() override { devices.reset(); }
  LinkWays ways() const { return GetParam().ways; }
  // Owners by the lane that is meant.
  std::uint32_t by_lane(const Pulled& got) const {
    return ways().shm ? got.by_shm : ways().verbs ? got.by_verbs : got.by_tcp;
  }

  std::unique_ptr<TestDevices> devices;
};

INSTANTIATE_TEST_SUITE_P(Lanes, PullLaneTest,
                         ::testing::Values(Way{"shm", {.machine = {}, .shm = true, .verbs = false, .tcp = false}},
                                           Way{"verbs", {.machine = {}, .shm = false, .verbs = true, .tcp = false}},
                                           Way{"tcp", {.machine = {}, .shm = false, .verbs = false, .tcp = true}}),
                         [](const auto& param) { return std::string(param.param.name); });

TEST_P(PullLaneTest, TakesColumnsOfRowsVersionAfterVersion) {
  const Matrix matrix{64, 48};
  TensorGang gang(4, 1);
  ColumnReader one(matrix, 0, 20, ways());
  ColumnReader other(matrix, 20, 48, ways());
  one.finds(gang);
  other.finds(gang);
  std::optional<PulledVersion> seen;
  for (std::uint64_t version = 3; version < 9; ++version) {
    gang.publish(matrix, version);
    const Pulled got = pulled(one.run(seen));
    EXPECT_EQ(got.version.version, (VersionId{1, version}));
    EXPECT_TRUE(one.is_whole(version)) << version;
    EXPECT_EQ(got.bytes, 64U * 20 * 4);
    EXPECT_EQ(by_lane(got), 4U);
    EXPECT_EQ(pulled(other.run(seen)).version.version.number, version);
    EXPECT_TRUE(other.is_whole(version)) << version;
    seen = got.version;
  }
}

TEST_P(PullLaneTest, TakesMuchByManyStreams) {
  const Matrix matrix{1'024, 1'100};
  TensorGang gang(1, 1);
  gang.publish(matrix, 1);
  ColumnReader all(matrix, 0, 1'100, ways());
  ColumnReader some(matrix, 1, 1'099, ways());
  all.finds(gang);
  some.finds(gang);
  const Pulled first = pulled(all.run());
  EXPECT_EQ(first.bytes, matrix.rows * matrix.columns * 4);
  EXPECT_TRUE(all.is_whole(1));
  (void)pulled(some.run());
  EXPECT_TRUE(some.is_whole(1));
  gang.publish(matrix, 2);
  (void)pulled(all.run(first.version));
  EXPECT_TRUE(all.is_whole(2));
}

// As many tensors as a model has, of each a row at every rank.
void take_a_model(std::uint64_t tensors, std::uint32_t ranks, const LinkWays& ways) {
  SCOPED_TRACE(text(tensors, " tensors of ", ranks, " ranks"));
  TensorGang gang(ranks, 1);
  const Matrix matrix{ranks, 3};
  const auto name = [](std::uint64_t tensor) { return text("layers.", tensor, ".weight"); };
  for (std::uint32_t rank = 0; rank < ranks; ++rank) {
    Publisher& publisher = gang.publisher(rank);
    ASSERT_TRUE(publisher.begin(1).ok());
    const Box row = gang.rows_of(matrix, rank);
    for (std::uint64_t tensor = 0; tensor < tensors; ++tensor) {
      const std::vector<std::int32_t> values = matrix.part(tensor, row);
      const Status put = publisher.put(matrix.kind(name(tensor)), row, reinterpret_cast<const char*>(values.data()),
                                       dense_strides(row.size, sizeof(std::int32_t)));
      ASSERT_TRUE(put.ok()) << put.error().message;
    }
    ASSERT_TRUE(publisher.commit().ok());
  }
  std::vector<Columns> memory;
  memory.reserve(tensors);
  std::vector<PullPart> parts;
  for (std::uint64_t tensor = 0; tensor < tensors; ++tensor) {
    parts.push_back(memory.emplace_back(matrix, 0, matrix.columns).part(name(tensor)));
  }
  TestReader reader(std::move(parts), ways);
  reader.finds(gang);
  EXPECT_EQ(pulled(reader.run({}, Duration::seconds(120))).bytes, tensors * ranks * 12);
  std::uint64_t whole = 0;
  for (std::uint64_t tensor = 0; tensor < tensors; ++tensor) {
    if (memory[tensor].memory == matrix.part(tensor, memory[tensor].box)) ++whole;
  }
  EXPECT_EQ(whole, tensors);
}

TEST_P(PullLaneTest, TakesModelsOfAnySize) {
  constexpr std::uint64_t kOfManyRanks = kSanitized ? 100 : 1'000;
  constexpr std::uint64_t kMost = kSanitized ? 5'000 : 20'000;
  for (const std::uint64_t tensors : {1U, 10U, 1'000U}) take_a_model(tensors, 4, ways());
  for (const std::uint64_t tensors : {std::uint64_t{1}, std::uint64_t{10}, kOfManyRanks}) {
    take_a_model(tensors, 64, ways());
  }
  for (const std::uint64_t tensors : {std::uint64_t{1}, std::uint64_t{10}, std::uint64_t{1'000}, kMost}) {
    take_a_model(tensors, 1, ways());
  }
}

// What is pulled while it is written again and again is one version, or is pulled again.
TEST_P(PullLaneTest, TakesOneVersionWhileTheNextAreWritten) {
  const Matrix matrix{512, 512};
  TensorGang gang(2, 1);
  std::atomic<bool> over{false};
  std::vector<std::thread> writers;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    writers.emplace_back([&, rank] {
      for (std::uint64_t version = 1; !over; ++version) EXPECT_TRUE(gang.publish(rank, matrix, version).ok());
    });
  }
  ColumnReader reader(matrix, 3, 500, ways());
  reader.finds(gang);
  std::optional<PulledVersion> seen;
  const Instant until = boot_now() + Duration::milliseconds(500);
  int whole = 0;
  while (boot_now() < until || whole == 0) {
    const PullOutcome outcome = reader.run(seen);
    seen = pulled(outcome).version;
    ASSERT_TRUE(reader.is_whole(seen->version.number)) << seen->version.number;
    ++whole;
  }
  over = true;
  for (std::thread& writer : writers) writer.join();
}

TEST_P(PullLaneTest, WaitsForANewerVersion) {
  const Matrix matrix{8, 8};
  TensorGang gang(2, 1);
  ColumnReader reader(matrix, 0, 8, ways());
  reader.finds(gang);
  gang.publish(matrix, 1);
  const Pulled first = pulled(reader.run());
  const PullFailure late = failure(reader.run(first.version, Duration::milliseconds(30)));
  EXPECT_EQ(late.how, PullEnd::kTimeout);
  EXPECT_NE(late.text.find("there is no newer version"), std::string::npos) << late.text;
  std::thread writer([&] { gang.publish(matrix, 2); });
  EXPECT_EQ(pulled(reader.run(first.version)).version.version.number, 2U);
  writer.join();
}

TEST_P(PullLaneTest, HearsThatAnOwnerIsGoneAndTakesTheNextGeneration) {
  const Matrix matrix{64, 64};
  auto gang = std::make_unique<TensorGang>(3, 1);
  gang->publish(matrix, 7);
  ColumnReader reader(matrix, 0, 64, ways());
  reader.finds(*gang);
  const Pulled first = pulled(reader.run());
  reader.finds_nobody();
  reader.verdict = finder_word::Lost{"it is given up"};
  gang.reset();
  const PullFailure gone = failure(reader.run(first.version));
  EXPECT_EQ(gone.how, PullEnd::kPeerGone);
  EXPECT_EQ(gone.text, "it is given up");
  EXPECT_EQ(gone.generation, 1U);
  reader.verdict.reset();
  TensorGang next(3, 2);
  next.publish(matrix, 5);  // from a checkpoint
  reader.finds(next);
  EXPECT_EQ(pulled(reader.run(first.version)).version.version, (VersionId{2, 5}));
  EXPECT_TRUE(reader.is_whole(5));
}

TEST_P(PullLaneTest, HearsThatAnOwnerIsGoneThoughTheNextIsThereAlready) {
  const Matrix matrix{16, 16};
  auto gang = std::make_unique<TensorGang>(2, 1);
  gang->publish(matrix, 7);
  TensorGang next(2, 2);
  next.publish(matrix, 5);
  ColumnReader reader(matrix, 0, 16, ways());
  reader.finds(*gang);
  const Pulled first = pulled(reader.run());
  gang.reset();
  reader.finds(next);
  const PullFailure gone = failure(reader.run(first.version));
  EXPECT_EQ(gone.how, PullEnd::kPeerGone);
  EXPECT_EQ(gone.generation, 1U);
  EXPECT_EQ(pulled(reader.run(first.version)).version.version, (VersionId{2, 5}));
}

TEST_P(PullLaneTest, GoesOnWithTheNextGenerationIfItMay) {
  const Matrix matrix{16, 16};
  auto gang = std::make_unique<TensorGang>(2, 1);
  gang->publish(matrix, 1);
  ColumnReader reader(matrix, 0, 16, ways());
  reader.finds(*gang);
  const Pulled first = pulled(reader.run());
  TensorGang next(2, 2);
  reader.finds(next);
  std::thread trouble([&] {
    gang.reset();
    next.publish(matrix, 1);
  });
  EXPECT_EQ(pulled(reader.run(first.version, Duration::seconds(20), true)).version.version, (VersionId{2, 1}));
  trouble.join();
}

TEST_P(PullLaneTest, EndsByTheRostersWord) {
  const Matrix matrix{16, 16};
  TensorGang gang(2, 1);
  gang.publish(matrix, 1);
  ColumnReader reader(matrix, 0, 16, ways());
  reader.finds(gang);
  const Pulled first = pulled(reader.run());
  reader.tell(finder_word::Over{.gang = 0, .generation = 1, .text = "trainer/1 ended with exit code 3"});
  reader.finds_nobody();
  const PullFailure gone = failure(reader.run(first.version, Duration::milliseconds(200)));
  EXPECT_EQ(gone.how, PullEnd::kPeerGone);
  EXPECT_EQ(gone.text, "trainer/1 ended with exit code 3");
}

// What a run had asked for when it ended is answered all the same, beside what the next one asks for.
TEST_P(PullLaneTest, TakesNoAnswerToAnEarlierRunForItsOwn) {
  const Matrix matrix{8, 8};
  for (int round = 0; round < 20; ++round) {
    TensorGang gang(1, 1);
    ColumnReader reader(matrix, 0, 8, ways());
    reader.finds(gang);
    std::optional<PulledVersion> seen;
    for (std::uint64_t version = 1; version <= 6; ++version) {
      EXPECT_EQ(failure(reader.run(seen, Duration::milliseconds(2))).how, PullEnd::kTimeout);
      gang.publish(matrix, version);
      seen = pulled(reader.run(seen)).version;
      EXPECT_EQ(seen->version.number, version);
      EXPECT_TRUE(reader.is_whole(version));
    }
  }
}

TEST_P(PullLaneTest, SaysWhatItWaitsFor) {
  const Matrix matrix{8, 8};
  TensorGang gang(1, 1);
  ColumnReader reader(matrix, 0, 8, ways());
  reader.finds(gang);
  std::vector<std::string> said;
  int named = 0;
  RunOptions options;
  options.waiting = [&](const std::string& words) {
    said.push_back(words);
    named += words == "rank 0 of its gang has not published it yet" ? 1 : 0;
    if (named == 2 || said.size() == 500) reader.pull->cancel();
  };
  options.waiting_every = Duration::milliseconds(20);
  EXPECT_EQ(failure(reader.pull->run(options)).how, PullEnd::kCancelled);
  EXPECT_EQ(named, 2) << said.front() << ", and at last " << said.back();
}

TEST_P(PullLaneTest, NamesWhoOfAGangDoesNotPublish) {
  const Matrix matrix{9, 8};
  TensorGang gang(3, 1);
  ColumnReader reader(matrix, 0, 8, ways());
  reader.finds(gang);
  const auto waits_for = [&](const std::string& words, const std::optional<PulledVersion>& seen = {}) {
    std::string said;
    RunOptions options;
    options.newer_than = seen;
    options.waiting = [&](const std::string& now) {
      said = now;
      if (said == words) reader.pull->cancel();
    };
    options.waiting_every = Duration::milliseconds(20);
    options.timeout = Duration::seconds(20);
    EXPECT_EQ(failure(reader.pull->run(options)).how, PullEnd::kCancelled) << said;
  };
  ASSERT_TRUE(gang.publish(0, matrix, 1).ok());
  ASSERT_TRUE(gang.publish(1, matrix, 1).ok());
  waits_for("rank 2 of its gang has not published it yet");
  ASSERT_TRUE(gang.publish(2, matrix, 1).ok());
  const Pulled first = pulled(reader.run());
  waits_for("there is no newer version", first.version);
  ASSERT_TRUE(gang.publish(2, matrix, 2).ok());
  waits_for("version 2 is not there yet at ranks 0, 1", first.version);
  const PullFailure late = failure(reader.run(first.version, Duration::milliseconds(30)));
  EXPECT_EQ(late.how, PullEnd::kTimeout);
  EXPECT_NE(late.text.find("version 2 is not there yet at ranks 0, 1"), std::string::npos) << late.text;
}

TEST_P(PullLaneTest, NamesTheFirstRankWhereOthersPublishAndItDoesNot) {
  const Matrix matrix{8, 8};
  TensorGang gang(2, 1);
  const PublicationOptions options{.name = "moments", .publishers = {0, 1}, .registrar = 0, .owner = {}};
  const auto second = Publisher::open(gang.owner(1), options).value();
  const std::vector<std::int32_t> values = matrix.part(1, gang.rows_of(matrix, 1));
  ASSERT_TRUE(second->begin(1).ok());
  ASSERT_TRUE(second
                  ->put(matrix.kind(), gang.rows_of(matrix, 1), reinterpret_cast<const char*>(values.data()),
                        dense_strides({4, 8}, sizeof(std::int32_t)))
                  .ok());
  ASSERT_TRUE(second->commit().ok());
  ColumnReader reader(matrix, 0, 8, ways(), "moments");
  reader.finds(gang);
  std::string said;
  RunOptions run;
  run.waiting = [&](const std::string& words) {
    said = words;
    if (said.starts_with("rank 0")) reader.pull->cancel();
  };
  run.waiting_every = Duration::milliseconds(20);
  run.timeout = Duration::seconds(20);
  EXPECT_EQ(failure(reader.pull->run(run)).how, PullEnd::kCancelled);
  EXPECT_EQ(said, "rank 0 of its gang has not published it yet, and others have");
  const PullFailure late = failure(reader.run({}, Duration::milliseconds(30)));
  EXPECT_EQ(late.how, PullEnd::kTimeout);
  EXPECT_NE(late.text.find(said), std::string::npos) << late.text;
}

TEST_P(PullLaneTest, EndsWhereItIsCancelled) {
  const Matrix matrix{16, 16};
  TensorGang gang(2, 1);
  ColumnReader reader(matrix, 0, 16, ways());
  reader.finds(gang);
  std::thread other([&] { reader.pull->cancel(); });
  EXPECT_EQ(failure(reader.run()).how, PullEnd::kCancelled);
  other.join();
  gang.publish(matrix, 1);
  (void)pulled(reader.run());
}

TEST_P(PullLaneTest, SaysWhatDoesNotFit) {
  const Matrix matrix{16, 16};
  TensorGang gang(2, 1);
  gang.publish(matrix, 1);
  const auto why = [&](const Matrix& wanted, const std::string& tensor) {
    ColumnReader reader(wanted, 0, 4, ways(), "weights", tensor);
    reader.finds(gang);
    const PullFailure failed = failure(reader.run());
    EXPECT_EQ(failed.how, PullEnd::kInvalid);
    return failed.text;
  };
  EXPECT_EQ(why({16, 16}, "ww"), "weights of trainer has no tensor ww; it has w");
  EXPECT_EQ(why({16, 17}, "w"), "tensor w of weights of trainer is int32 16 x 16, and is wanted as int32 16 x 17");
  ColumnReader stranger(matrix, 0, 4, ways(), "weihgts");
  stranger.finds(gang);
  const PullFailure unknown = failure(stranger.run({}, Duration::milliseconds(50)));
  EXPECT_EQ(unknown.how, PullEnd::kTimeout);
  EXPECT_NE(unknown.text.find("did you mean weights?"), std::string::npos) << unknown.text;
}

TEST_P(PullLaneTest, SaysWhatNobodyHas) {
  const Matrix matrix{16, 16};
  TensorGang gang(2, 1);
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    Publisher& publisher = gang.publisher(rank);
    ASSERT_TRUE(publisher.begin(1).ok());
    ASSERT_TRUE(publisher.lend(matrix.kind(), {{rank * 8, 0}, {8, 15}}).ok());
    ASSERT_TRUE(publisher.commit().ok());
  }
  ColumnReader reader(matrix, 10, 16, ways());
  reader.finds(gang);
  const PullFailure failed = failure(reader.run());
  EXPECT_EQ(failed.how, PullEnd::kNotCovered);
  EXPECT_NE(failed.text.find("nobody has [8:16, 15:16]"), std::string::npos) << failed.text;
}

TEST_P(PullLaneTest, TakesTheLastVersionOfOneWhoEnds) {
  const Matrix matrix{16, 16};
  TensorGang gang(2, 1);
  ColumnReader reader(matrix, 0, 16, ways());
  reader.finds(gang);
  gang.publish(matrix, 1);
  std::optional<PulledVersion> seen = pulled(reader.run()).version;
  gang.publish(matrix, 2);
  std::vector<std::thread> ends;
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ends.emplace_back([&, rank] { EXPECT_TRUE(gang.publisher(rank).close().ok()); });
  }
  seen = pulled(reader.run(seen)).version;
  EXPECT_EQ(seen->version.number, 2U);
  EXPECT_TRUE(reader.is_whole(2));
  for (std::thread& end : ends) end.join();
}

// Whoever has once opened it gets the last version, whatever else happens at the end.
TEST_P(PullLaneTest, GivesTheLastVersionToAllItsReaders) {
  const Matrix matrix{12, 12};
  for (std::uint64_t round = 1; round <= 40; ++round) {
    TensorGang gang(4, round);
    ColumnReader left(matrix, 0, 6, ways());
    ColumnReader right(matrix, 6, 12, ways());
    std::vector<std::thread> threads;
    for (ColumnReader* const reader : {&left, &right}) {
      reader->finds(gang);
      threads.emplace_back([reader] {
        ColumnReader& columns = *reader;
        std::optional<PulledVersion> seen;
        while (!seen || seen->version.number < 3) {
          const PullOutcome outcome = columns.run(seen);
          const auto* const got = std::get_if<Pulled>(&outcome);
          if (got == nullptr && !seen) break;  // it has begun after the end
          ASSERT_NE(got, nullptr) << std::get<PullFailure>(outcome).text << " after " << seen->version.number;
          ASSERT_TRUE(columns.is_whole(got->version.version.number));
          seen = got->version;
        }
      });
    }
    for (std::uint32_t rank = 0; rank < 4; ++rank) {
      threads.emplace_back([&, rank] {
        for (std::uint64_t version = 0; version < 4; ++version) EXPECT_TRUE(gang.publish(rank, matrix, version).ok());
        EXPECT_TRUE(gang.publisher(rank).close().ok());
        gang.kill(rank);
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
}

// Who comes before its publisher has begun waits for it.
TEST_P(PullLaneTest, ComesBeforeItsPublisher) {
  const Matrix matrix{12, 12};
  for (int round = 0; round < 20; ++round) {
    OwnerPlace place{.rank = {"trainer", 0, 1}, .address = "127.0.0.1", .verbs = test_verbs};
    auto owner = OwnerThread::start(std::move(place)).value();
    std::vector<std::unique_ptr<ColumnReader>> readers;
    std::vector<std::thread> threads;
    for (int reader = 0; reader < 3; ++reader) {
      readers.push_back(std::make_unique<ColumnReader>(matrix, 0, 12, ways()));
      readers.back()->finds({.gang = 0, .rank = 0, .generation = 1, .card = owner->card()});
      threads.emplace_back([&, one = readers.back().get()] { (void)pulled(one->run({}, Duration::seconds(5))); });
    }
    // Some rounds begin before all readers have looked for it, others after.
    for (const auto& reader : readers) {
      while (round % 2 == 1 && !reader->has_asked) std::this_thread::yield();
    }
    auto publisher = Publisher::open(*owner, {.name = "weights", .publishers = {0}}).value();
    EXPECT_TRUE(publisher->begin(1).ok());
    EXPECT_TRUE(publisher->lend(matrix.kind(), whole({12, 12})).ok());
    EXPECT_TRUE(publisher->commit().ok());
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_P(PullLaneTest, SaysThatNothingMoreComes) {
  const Matrix matrix{16, 16};
  TensorGang gang(1, 1);
  ColumnReader reader(matrix, 0, 16, ways());
  reader.finds(gang);
  ColumnReader holds_it_back(matrix, 0, 16, ways());  // it has opened it, and has not the last
  holds_it_back.finds(gang);
  gang.publish(matrix, 1);
  (void)pulled(holds_it_back.run());
  gang.publish(matrix, 2);
  const PulledVersion seen = pulled(reader.run()).version;
  std::thread end([&] { EXPECT_TRUE(gang.publisher(0).close().ok()); });
  EXPECT_EQ(failure(reader.run(seen)).how, PullEnd::kEnded);
  (void)pulled(holds_it_back.run());
  end.join();
}

// Whose process lives on.
TEST_P(PullLaneTest, TellsWhoComesLateThatItHasEnded) {
  const Matrix matrix{16, 16};
  TensorGang gang(1, 1);
  ColumnReader reader(matrix, 0, 16, ways());
  reader.finds(gang);
  gang.publish(matrix, 1);
  (void)pulled(reader.run());
  EXPECT_TRUE(gang.publisher(0).close().ok());
  ColumnReader late(matrix, 0, 16, ways());
  late.finds(gang);
  for (int run = 0; run < 2; ++run) {
    EXPECT_EQ(failure(late.run()).how, PullEnd::kEnded);
    EXPECT_EQ(failure(reader.run()).how, PullEnd::kEnded);
  }
}

TEST_P(PullLaneTest, TurnsAwayWhoHasNoCard) {
  const Matrix matrix{8, 8};
  TensorGang gang(1, 1);
  gang.publish(matrix, 1);
  finder_word::Found forged{.gang = 0, .rank = 0, .generation = 1, .card = gang.card()};
  forged.card.secret.fill(7);
  ColumnReader stranger(matrix, 0, 8, ways());
  stranger.finds(forged);
  stranger.verdict = finder_word::Found{.gang = 0, .rank = 0, .generation = 3, .card = gang.card()};
  const PullFailure failed = failure(stranger.run({}, Duration::seconds(5)));
  EXPECT_EQ(failed.how, PullEnd::kPeerGone);
  EXPECT_EQ(failed.text, "who answers is not trainer/0");
  finder_word::Found late{.gang = 0, .rank = 0, .generation = 2, .card = gang.card()};
  ColumnReader of_another(matrix, 0, 8, ways());
  of_another.finds(late);
  of_another.verdict = stranger.verdict;
  EXPECT_EQ(failure(of_another.run({}, Duration::seconds(5))).text,
            "trainer/0 refuses a link: it means generation 2 of trainer/0, and this is generation 1 of trainer/0");
  ColumnReader reader(matrix, 0, 8, ways());
  reader.finds(gang);
  (void)pulled(reader.run());
}

// Junk at a listener is closed at once, silence after two seconds; who has a card is served meanwhile.
TEST(OwnerServer, IsDeafToStrangers) {
  const Matrix matrix{8, 8};
  TensorGang gang(1, 1);
  gang.publish(matrix, 1);
  const UniqueFd junk = connect_on_machine(gang.card().path).value();
  const UniqueFd silence = connect_to_host(gang.card().address, gang.card().port).value();
  const std::string words(4'096, 'x');
  ASSERT_EQ(::send(junk.get(), words.data(), words.size(), MSG_NOSIGNAL), static_cast<ssize_t>(words.size()));
  ColumnReader reader(matrix, 0, 8, {});
  reader.finds(gang);
  (void)pulled(reader.run());
  const Instant begun = boot_now();
  for (const UniqueFd* const end : {&junk, &silence}) {
    std::array<char, 4'096> said{};
    ssize_t got = 1;
    while (got > 0) {
      pollfd waiting{end->get(), POLLIN, 0};
      ASSERT_EQ(::poll(&waiting, 1, 10'000), 1);
      got = ::recv(end->get(), said.data(), said.size(), 0);
    }
  }
  EXPECT_GE(boot_now() - begun, Duration::seconds(1)) << "whoever is slow has two seconds for his hello";
  (void)pulled(reader.run());
}

// An owner with no more descriptors is a trainer that cannot open a file.
TEST(OwnerServer, LetsInNoMoreStrangersThanItHasPlacesFor) {
  const Matrix matrix{8, 8};
  TensorGang gang(1, 1);
  gang.publish(matrix, 1);
  const auto open_here = [] {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
    return count;
  };
  const std::size_t before = open_here();
  std::vector<UniqueFd> silent;
  for (int i = 0; i < 100; ++i) silent.push_back(connect_to_host(gang.card().address, gang.card().port).value());
  ColumnReader reader(matrix, 0, 8, {});
  reader.finds(gang);
  (void)pulled(reader.run());
  EXPECT_LE(open_here(), before + silent.size() + OwnerServer::kStrangers + 16) << "a reader and its card have some";
  EXPECT_GE(open_here(), before + silent.size());
}

TEST(OwnerServer, IsDeafToAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  TensorGang gang(1, 1);
  const pid_t child = ::fork();
  if (child == 0) {
    if (::setresuid(65'534, 65'534, 65'534) != 0) ::_exit(1);
    // Both ends look: we are refused by our own, too.
    ::_exit(connect_on_machine(gang.card().path).ok() ? 2 : 0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

// It ends between its answer and the reader's next word; supervision says nothing, and is not waited for without end.
TEST(Pull, HearsThatARegistrarEndsInItsHello) {
  const Matrix matrix{4, 4};
  LinkListener listener = listen_on_machine({}).value();
  Card card{.machine = read_boot_id(), .path = listener.path, .address = {}, .port = 0};
  const std::string secret(reinterpret_cast<const char*>(card.secret.data()), card.secret.size());
  std::atomic<int> answered{0};
  std::thread registrar([&] {
    for (; answered < 2; ++answered) {
      pollfd waiting{listener.socket.get(), POLLIN, 0};
      ASSERT_EQ(::poll(&waiting, 1, 10'000), 1);
      const auto link = StreamLink::make(accept_link(listener).value()).value();
      std::optional<StreamLink::Received> word;
      while (!word) word = link->receive(kHelloBytes).value();
      HelloAsk ask;
      codec::DecodeError error;
      ASSERT_TRUE(codec::decode(word->behind, ask, error));
      const HelloAnswer answer = answer_hello(ask, {"trainer", 0, 1}, secret, random_bytes(kNonceBytes)).value();
      ASSERT_TRUE(link->send({.kind = FrameKind::kHello}, codec::encode(answer)).ok());
      ASSERT_TRUE(link->flush().ok());
      (void)::shutdown(link->descriptor(), SHUT_WR);
      ASSERT_EQ(::poll(&(waiting = {link->descriptor(), POLLIN, 0}), 1, 10'000), 1);  // his proof, or his end
    }
    listener.socket.reset();
  });
  ColumnReader reader(matrix, 0, 4, {});
  reader.finds({.gang = 0, .rank = 0, .generation = 1, .card = card});
  EXPECT_EQ(failure(reader.run({}, Duration::seconds(5))).how, PullEnd::kPeerGone);
  registrar.join();
}

TEST(Pull, SaysThatThereIsNoCommonTransport) {
  const Matrix matrix{4, 4};
  TensorGang gang(1, 1);
  gang.publish(matrix, 1);
  ColumnReader reader(matrix, 0, 4, {.machine = {}, .shm = false, .verbs = false, .tcp = false});
  reader.finds(gang);
  const PullFailure failed = failure(reader.run());
  EXPECT_EQ(failed.how, PullEnd::kUnreachable);
  EXPECT_EQ(
      failed.text,
      "no common transport: trainer/0 is on this machine and may not be read from over verbs or tcp, and shm is not "
      "among `tensors.transports`");
}

TEST(Publisher, RefusesWhatItMayNotPublish) {
  const Matrix matrix{8, 4};
  TensorGang gang(1, 1);
  Publisher& publisher = gang.publisher(0);
  const Box box = whole({8, 4});
  const auto why = [](const auto& result) { return result.ok() ? "" : result.error().message; };
  EXPECT_EQ(why(publisher.lend(matrix.kind(), box)), "no version of weights is being written");
  ASSERT_TRUE(publisher.begin(5).ok());
  EXPECT_EQ(why(publisher.begin(6)), "version 5 of weights is being written");
  EXPECT_EQ(why(publisher.commit()), "version 5 has nothing in it");
  ASSERT_TRUE(gang.publish(0, matrix, 5).ok());
  EXPECT_EQ(why(publisher.begin(5)), "weights: version 5 after version 5: they rise within a generation");
  ASSERT_TRUE(publisher.begin(6).ok());
  EXPECT_EQ(why(publisher.lend(Matrix{8, 5}.kind(), box)),
            "tensor w is int32 8 x 4 in the first version, and int32 8 x 5 here");
  EXPECT_EQ(why(publisher.lend(matrix.kind("b"), box)),
            "tensor b: [0:8, 0:4] is not in the first version of weights, and all have the same parts");
  EXPECT_EQ(why(publisher.commit()), "version 6 of weights lacks [0:8, 0:4] of w, which the first version has");
  ASSERT_TRUE(publisher.begin(6).ok()) << "what was not committed was none";
  const std::vector<std::int32_t> values(64);
  EXPECT_EQ(why(publisher.put(matrix.kind(), box, reinterpret_cast<const char*>(values.data()), {32, 8})),
            "tensor w: its last dimension is not dense: elements of 4 bytes are 8 bytes from one to the next");
  publisher.abandon();
  EXPECT_EQ(why(Publisher::open(gang.owner(0), {.name = "", .publishers = {0}})),
            "a publication's name has 1 to 128 bytes");
  auto twice = Publisher::open(gang.owner(0), {.name = "weights", .publishers = {0}});
  ASSERT_TRUE(twice.ok());
  EXPECT_EQ(why((*twice)->begin(1)), "this rank publishes weights already");
}

// As ranks have of a tensor with fewer rows than there are ranks.
TEST(Publisher, PutsPartsWithoutBytesInEachVersion) {
  const Matrix matrix{8, 4};
  TensorGang gang(1, 1);
  Publisher& publisher = gang.publisher(0);
  const std::vector<std::int32_t> values(32);
  const auto put = [&](const std::string& name, const Box& box) {
    return publisher.put(matrix.kind(name), box, reinterpret_cast<const char*>(values.data()),
                         dense_strides(box.size, 4));
  };
  for (std::uint64_t version = 1; version <= 4; ++version) {
    ASSERT_TRUE(publisher.begin(version).ok());
    for (const char* const name : {"a", "b"}) EXPECT_TRUE(put(name, {{8, 0}, {0, 4}}).ok());
    EXPECT_TRUE(put("w", whole({8, 4})).ok());
    EXPECT_FALSE(put("b", {{8, 0}, {0, 4}}).ok()) << "twice";
    EXPECT_TRUE(publisher.commit().ok());
  }
  ASSERT_TRUE(publisher.begin(5).ok());
  EXPECT_TRUE(put("a", {{8, 0}, {0, 4}}).ok());
  EXPECT_TRUE(put("w", whole({8, 4})).ok());
  EXPECT_FALSE(publisher.commit().ok()) << "it lacks b";
}

TEST(Publisher, HearsThatOthersOfItsGangPublishSomethingElse) {
  TensorGang gang(2, 1);
  ASSERT_TRUE(gang.publish(0, {8, 4}, 1).ok());
  ASSERT_TRUE(gang.publish(1, {8, 5}, 1).ok());
  std::string why;
  for (std::uint64_t version = 2; why.empty() && version < 2'000; ++version) {
    const Status done = gang.publish(1, {8, 5}, version);
    if (!done.ok()) why = done.error().message;
  }
  EXPECT_EQ(why, "tensor w is int32 8 x 4 at rank 0 and int32 8 x 5 at rank 1");
}

}  // namespace
}  // namespace monarch::tensor
