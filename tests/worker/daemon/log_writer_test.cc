#include "worker/daemon/log_writer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/transport/base/lower_limit.h"
#include "transport/base/clock.h"

namespace monarch::daemon {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kFlood = 64U << 20U;
constexpr Duration kDeadline = Duration::seconds(60);
const Incarnation kRank{RankId{MeshId(0), Rank(3)}, Generation{Term(1), 2}};

// The bytes of a stream at an offset that is a multiple of 8: its number, so that a lost or repeated byte shows.
std::string numbered(std::uint64_t offset, std::size_t bytes) {
  std::string piece(bytes, '\0');
  for (std::size_t i = 0; i < bytes; i += 8) {
    const std::uint64_t number = offset + i;
    std::memcpy(piece.data() + i, &number, 8);
  }
  return piece;
}

// The first offset at which the file differs from the stream; its size if it never does.
std::uint64_t good_until(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string piece(1U << 20U, '\0');
  std::uint64_t offset = 0;
  while (in.read(piece.data(), static_cast<std::streamsize>(piece.size())) || in.gcount() > 0) {
    const auto bytes = static_cast<std::size_t>(in.gcount());
    if (piece.compare(0, bytes, numbered(offset, bytes)) != 0) return offset;
    offset += bytes;
  }
  return offset;
}

std::string text_of(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// A process that writes a flood into a pipe and ends, as a rank would.
class Flooder {
 public:
  Flooder(int pipe, std::uint64_t bytes) {
    pid_ = ::fork();
    if (pid_ != 0) return;
    (void)::fcntl(pipe, F_SETFL, 0);
    for (std::uint64_t offset = 0; offset < bytes;) {
      const std::string piece = numbered(offset, 8 * (1 + offset / 8 % 4'000));
      const std::size_t wanted = std::min<std::uint64_t>(piece.size(), bytes - offset);
      for (std::size_t done = 0; done < wanted;) {
        const ssize_t n = ::write(pipe, piece.data() + done, wanted - done);
        if (n <= 0) ::_exit(1);
        done += static_cast<std::size_t>(n);
      }
      offset += wanted;
    }
    ::_exit(0);
  }
  ~Flooder() {
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
  }
  Flooder(const Flooder&) = delete;
  Flooder& operator=(const Flooder&) = delete;

 private:
  pid_t pid_ = -1;
};

class FakeSink final : public OutputSink {
 public:
  enum class Mood { kAbsent, kTakesAll, kTakesEveryThird };
  explicit FakeSink(Mood mood) : mood_(mood) {}
  bool wanted() const override { return mood_ != Mood::kAbsent; }
  bool offer(const Incarnation& incarnation, Output&& output) override {
    EXPECT_EQ(incarnation, kRank);
    if (mood_ == Mood::kTakesEveryThird && ++offers_ % 3 != 0) return false;
    bytes_ += output.bytes.size();
    good_ = good_ && output.offset >= next_ && output.bytes == numbered_at(output.offset, output.bytes.size());
    next_ = output.offset + output.bytes.size();
    return true;
  }
  bool offer_unkept(const Incarnation& incarnation, Output&& output) override {
    EXPECT_EQ(incarnation, kRank);
    if (mood_ == Mood::kTakesEveryThird && ++offers_ % 3 != 0) return false;
    unkept_.push_back(std::move(output));
    return true;
  }
  bool gone(const Incarnation& /*incarnation*/, const OutputGone& /*gone*/) override {
    ADD_FAILURE() << "nobody keeps a copy";
    return true;
  }
  std::uint64_t bytes() const { return bytes_; }
  bool good() const { return good_; }
  const std::vector<Output>& unkept() const { return unkept_; }
  std::string unkept_bytes() const {
    std::string all;
    for (const Output& each : unkept_) all += each.bytes;
    return all;
  }
  void takes_all() { mood_ = Mood::kTakesAll; }

 private:
  // Pieces begin anywhere.
  static std::string numbered_at(std::uint64_t offset, std::size_t bytes) {
    const std::uint64_t before = offset % 8;
    return numbered(offset - before, before + bytes + 8).substr(before, bytes);
  }
  Mood mood_;
  int offers_ = 0;
  std::uint64_t bytes_ = 0;
  std::uint64_t next_ = 0;
  bool good_ = true;
  std::vector<Output> unkept_;
};

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
    out = UniqueFd(ends[0]);
    in = UniqueFd(ends[1]);
    (void)::fcntl(in.get(), F_SETPIPE_SZ, limits::kOutputPipeBytes);
  }
  // What a keeper hands out.
  UniqueFd reader() const { return UniqueFd(::fcntl(out.get(), F_DUPFD_CLOEXEC, 3)); }
  UniqueFd out;
  UniqueFd in;
};

class LogWriterTest : public testing::Test {
 protected:
  LogWriterTest() {
    std::string path = (fs::temp_directory_path() / "monarch-writer-XXXXXX").string();
    directory_ = ::mkdtemp(path.data());
    auto loop = EventLoop::create();
    EXPECT_TRUE(loop.ok());
    loop_ = std::move(loop).value();
  }
  ~LogWriterTest() override { fs::remove_all(directory_); }

  LogWriter::Handlers handlers() {
    return {[this](const OutputTold& told, const OutputTotals& totals) {
      if (full_inbox_ > 0) return --full_inbox_, false;
      told_.push_back(told);
      totals_ = totals;
      return true;
    }};
  }
  LogSource source(const Pipe& out, const Pipe& err, std::uint64_t max_bytes = 0) {
    return {kRank, "trainer", max_bytes, out.reader(), err.reader()};
  }
  bool complete() const { return !told_.empty() && told_.back().complete; }
  // The last that was told of it; nullptr: nothing was.
  const OutputTold* told_of(const Incarnation& incarnation) const {
    const auto found = std::find_if(told_.rbegin(), told_.rend(),
                                    [&](const OutputTold& told) { return told.incarnation == incarnation; });
    return found == told_.rend() ? nullptr : &*found;
  }
  bool turn_until(const std::function<bool()>& condition) {
    const Instant deadline = boot_now() + kDeadline;
    // A turn waits for the next event; this timer makes a missed one show.
    const TimerId timer = loop_->at(deadline, [] {});
    while (!condition() && boot_now() < deadline) loop_->run_once();
    loop_->cancel(timer);
    return condition();
  }
  fs::path file(const char* suffix) const { return directory_ / "trainer" / (std::string("3.2.") + suffix); }

  fs::path directory_;
  std::unique_ptr<EventLoop> loop_;
  std::vector<OutputTold> told_;
  OutputTotals totals_;
  int full_inbox_ = 0;
};

class Flood : public LogWriterTest, public testing::WithParamInterface<FakeSink::Mood> {};

TEST_P(Flood, LosesAndRepeatsNoByte) {
  FakeSink sink(GetParam());
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;
  Pipe err;
  ASSERT_TRUE(writer.add(source(out, err)).ok());
  const Flooder flooder(out.in.get(), kFlood);
  out.in.reset();
  err.in.reset();
  ASSERT_TRUE(turn_until([&] { return complete(); }));
  EXPECT_EQ(told_.back().stdout_bytes, kFlood);
  EXPECT_EQ(told_.back().stderr_bytes, 0U);
  EXPECT_EQ(good_until(file("out")), kFlood);
  if (GetParam() == FakeSink::Mood::kAbsent) {
    EXPECT_GE(totals_.not_streamed_bytes, kFlood - LogWriter::kBacklogBytes);
    EXPECT_EQ(sink.bytes(), 0U);
  } else {
    // What it refused comes again, and nothing of it was too old.
    ASSERT_TRUE(turn_until([&] {
      writer.sink_ready();
      return sink.bytes() + totals_.not_streamed_bytes == kFlood;
    }));
  }
  EXPECT_TRUE(sink.good());
  if (GetParam() == FakeSink::Mood::kTakesAll) {
    EXPECT_EQ(totals_.not_streamed_bytes, 0U);
  }
  EXPECT_EQ(totals_.lost_bytes, 0U);
}

TEST_F(LogWriterTest, LeavesInThePipeWhatItHasNoDescriptorToWrite) {
  if (!kWorksWithoutDescriptors) GTEST_SKIP() << kWantsDescriptors;
  FakeSink sink(FakeSink::Mood::kAbsent);
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;
  Pipe err;
  LogSource ranks = source(out, err);
  const std::string written = numbered(0, 4'096);
  ASSERT_EQ(::write(out.in.get(), written.data(), written.size()), static_cast<ssize_t>(written.size()));
  out.in.reset();
  err.in.reset();
  {
    const UniqueFd next(::fcntl(out.out.get(), F_DUPFD_CLOEXEC, 3));
    const LowerLimit none(RLIMIT_NOFILE, static_cast<rlim_t>(next.get()));
    ASSERT_TRUE(writer.add(std::move(ranks)).ok());
    const Instant later = boot_now() + Duration::milliseconds(100);
    ASSERT_TRUE(turn_until([&] { return boot_now() > later && !told_.empty(); }));
    EXPECT_EQ(totals_, OutputTotals{});
    EXPECT_FALSE(complete());
  }
  ASSERT_TRUE(turn_until([&] { return complete(); }));
  EXPECT_EQ(totals_, OutputTotals{});
  EXPECT_EQ(good_until(file("out")), written.size());
}

TEST_F(LogWriterTest, LosesWhatItHasHadNoDescriptorForTooLongAndSaysSo) {
  if (!kWorksWithoutDescriptors) GTEST_SKIP() << kWantsDescriptors;
  FakeSink sink(FakeSink::Mood::kAbsent);
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;
  Pipe err;
  LogSource ranks = source(out, err);
  ASSERT_EQ(::write(out.in.get(), "word", 4), 4);
  const UniqueFd next(::fcntl(out.out.get(), F_DUPFD_CLOEXEC, 3));
  const Instant begun = boot_now();
  {
    const LowerLimit none(RLIMIT_NOFILE, static_cast<rlim_t>(next.get()));
    ASSERT_TRUE(writer.add(std::move(ranks)).ok());
    ASSERT_TRUE(turn_until([&] { return totals_.lost_bytes > 0; }));
  }
  EXPECT_GE(boot_now() - begun, LogWriter::kDescriptorPatience);
  EXPECT_EQ(totals_.lost_bytes, 4U);
  EXPECT_NE(totals_.failure.find("Too many open files"), std::string::npos) << totals_.failure;
}

std::string mood_name(const testing::TestParamInfo<FakeSink::Mood>& mood) {
  switch (mood.param) {
    case FakeSink::Mood::kAbsent: return "Absent";
    case FakeSink::Mood::kTakesAll: return "TakesAll";
    case FakeSink::Mood::kTakesEveryThird: return "TakesEveryThird";
  }
  return "";
}

INSTANTIATE_TEST_SUITE_P(Sinks, Flood,
                         testing::Values(FakeSink::Mood::kAbsent, FakeSink::Mood::kTakesAll,
                                         FakeSink::Mood::kTakesEveryThird),
                         mood_name);

TEST_F(LogWriterTest, LosesAndRepeatsNoByteWhenItsProcessIsKilledAtAnyInstant) {
  const std::uint64_t seed = std::random_device{}();
  SCOPED_TRACE(testing::Message() << "seed " << seed);
  std::mt19937_64 random(seed);
  Pipe out;
  Pipe err;
  const Flooder flooder(out.in.get(), kFlood);
  out.in.reset();
  err.in.reset();
  for (int kill = 0; kill < 20; ++kill) {
    // Killed at the moment at which it has told of a random amount.
    const std::uint64_t amount = random() % (kFlood / 20);
    const pid_t daemon = ::fork();
    if (daemon == 0) {
      FakeSink sink(FakeSink::Mood::kAbsent);
      auto loop = EventLoop::create();
      LogWriter writer(**loop, {.log_directory = directory_.string()}, sink,
                       {[](const auto&, const auto&) { return true; }});
      if (!writer.add(source(out, err)).ok()) ::_exit(1);
      (*loop)->run();
      ::_exit(0);
    }
    const auto size = [&] { return fs::exists(file("out")) ? fs::file_size(file("out")) : 0; };
    const std::uint64_t begun = size();
    const Instant deadline = boot_now() + kDeadline;
    while (size() < std::min(begun + amount, kFlood) && boot_now() < deadline) ::sched_yield();
    ASSERT_EQ(::kill(daemon, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(daemon, &status, 0), daemon);
    ASSERT_TRUE(WIFSIGNALED(status));
  }
  FakeSink sink(FakeSink::Mood::kAbsent);
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  ASSERT_TRUE(writer.add(source(out, err)).ok());
  ASSERT_TRUE(turn_until([&] { return complete(); }));
  EXPECT_EQ(told_.back().stdout_bytes, kFlood);
  EXPECT_EQ(good_until(file("out")), kFlood);
}

TEST_F(LogWriterTest, KeepsTheStreamsOfARankApart) {
  FakeSink sink(FakeSink::Mood::kAbsent);
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;
  Pipe err;
  ASSERT_TRUE(writer.add(source(out, err)).ok());
  ASSERT_EQ(::write(out.in.get(), "one", 3), 3);
  ASSERT_EQ(::write(err.in.get(), "other", 5), 5);
  out.in.reset();
  // Complete only when both have ended.
  ASSERT_TRUE(turn_until([&] { return !told_.empty() && told_.back().stderr_bytes == 5; }));
  EXPECT_FALSE(complete());
  err.in.reset();
  ASSERT_TRUE(turn_until([&] { return complete(); }));
  EXPECT_EQ(told_.back().stdout_bytes, 3U);
  EXPECT_EQ(good_until(file("out")), 0U);
  EXPECT_EQ(fs::file_size(file("err")), 5U);
}

TEST_F(LogWriterTest, LetsNoFloodingRankStarveAnother) {
  FakeSink sink(FakeSink::Mood::kAbsent);
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;
  Pipe err;
  ASSERT_TRUE(writer.add(source(out, err, 1U << 20U)).ok());
  const Flooder flooder(out.in.get(), 1ULL << 40U);  // it never ends
  Pipe quiet_out;
  Pipe quiet_err;
  const Incarnation quiet{RankId{MeshId(0), Rank(4)}, Generation{Term(1), 2}};
  ASSERT_TRUE(writer.add({quiet, "trainer", 0, quiet_out.reader(), quiet_err.reader()}).ok());
  const fs::path quiet_file = directory_ / "trainer" / "4.2.out";
  for (std::uintmax_t line = 1; line <= 100; ++line) {
    ASSERT_EQ(::write(quiet_out.in.get(), "x", 1), 1);
    int turns = 0;
    while (fs::file_size(quiet_file) < line && turns < 10) {
      loop_->run_once();
      ++turns;
    }
    ASSERT_LT(turns, 10);
  }
}

TEST_F(LogWriterTest, TellsAgainWhereItCouldNotTell) {
  FakeSink sink(FakeSink::Mood::kAbsent);
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;
  Pipe err;
  full_inbox_ = 3;
  ASSERT_TRUE(writer.add(source(out, err)).ok());
  out.in.reset();
  err.in.reset();
  EXPECT_TRUE(turn_until([&] { return complete(); }));
  EXPECT_EQ(full_inbox_, 0);
}

TEST_F(LogWriterTest, GivesUpAPipeThatOutlivesItsRank) {
  FakeSink sink(FakeSink::Mood::kAbsent);
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;  // whose other end stays open, as in a process outside of the rank's tree
  Pipe err;
  err.in.reset();
  ASSERT_TRUE(writer.add(source(out, err)).ok());
  ASSERT_EQ(::write(out.in.get(), "12345678", 8), 8);
  writer.rank_ended(kRank);
  ASSERT_TRUE(turn_until([&] { return complete(); }));
  EXPECT_EQ(told_.back().stdout_bytes, 8U);
}

TEST_F(LogWriterTest, RefusesNamesThatAreNoMeshes) {
  FakeSink sink(FakeSink::Mood::kAbsent);
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  const Pipe out;
  const Pipe err;
  for (const char* name : {"", "../x", "a/b", "A", "9", ".", "a\n", "-a", "abcdefghijklmnopqrstuvwxyz0123456"}) {
    const Status added = writer.add({kRank, name, 0, out.reader(), err.reader()});
    ASSERT_FALSE(added.ok()) << name;
    EXPECT_EQ(added.error().code, ErrorCode::kInvalid);
  }
  ASSERT_TRUE(writer.add(source(out, err)).ok());
  EXPECT_EQ(writer.add(source(out, err)).error().code, ErrorCode::kBusy);
  writer.forget(kRank);
  EXPECT_TRUE(writer.add(source(out, err)).ok());
  EXPECT_TRUE(
      writer.add({{{MeshId(9), Rank(0)}, kRank.generation}, "spares-prepare", 0, out.reader(), err.reader()}).ok());
}

// A standby's process becomes a rank: what it wrote before is the standby's, what comes after is the rank's.
TEST_F(LogWriterTest, HandsThePipesOfAStandbyOver) {
  FakeSink sink(FakeSink::Mood::kAbsent);
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;
  Pipe err;
  const Incarnation standby{{MeshId(2), Rank(0)}, {Term(1), 1}};
  ASSERT_TRUE(writer.add({standby, "standby-trainer", 0, out.reader(), err.reader()}).ok());
  ASSERT_EQ(::write(out.in.get(), "loading\n", 8), 8);
  LogSource rank = source(out, err);
  rank.standby = standby;
  ASSERT_TRUE(writer.add(std::move(rank)).ok());
  ASSERT_EQ(::write(out.in.get(), "working\n", 8), 8);
  ASSERT_TRUE(turn_until(
      [&] { return !told_.empty() && told_.back().incarnation == kRank && told_.back().stdout_bytes == 8; }));
  const OutputTold* const of_standby = told_of(standby);
  ASSERT_NE(of_standby, nullptr);
  EXPECT_TRUE(of_standby->complete);
  EXPECT_EQ(of_standby->stdout_bytes, 8U);
  EXPECT_EQ(text_of(directory_ / "standby-trainer" / "0.1.out"), "loading\n");
  EXPECT_EQ(text_of(file("out")), "working\n");
}

TEST_F(LogWriterTest, KeepsWhatAStandbyWroteUntilThereIsADescriptor) {
  if (!kWorksWithoutDescriptors) GTEST_SKIP() << kWantsDescriptors;
  FakeSink sink(FakeSink::Mood::kAbsent);
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;
  Pipe err;
  const Incarnation standby{{MeshId(2), Rank(0)}, {Term(1), 1}};
  LogSource of_standby{standby, "standby-trainer", 0, out.reader(), err.reader()};
  LogSource rank = source(out, err);
  rank.standby = standby;
  const std::string loaded = numbered(0, 4'096);
  {
    const UniqueFd next(::fcntl(out.out.get(), F_DUPFD_CLOEXEC, 3));
    const LowerLimit none(RLIMIT_NOFILE, static_cast<rlim_t>(next.get()));
    ASSERT_TRUE(writer.add(std::move(of_standby)).ok());
    ASSERT_EQ(::write(out.in.get(), loaded.data(), loaded.size()), static_cast<ssize_t>(loaded.size()));
    ASSERT_TRUE(writer.add(std::move(rank)).ok());
    ASSERT_EQ(::write(out.in.get(), "working\n", 8), 8);
    const Instant later = boot_now() + Duration::milliseconds(100);
    ASSERT_TRUE(
        turn_until([&] { return boot_now() > later && told_of(standby) != nullptr && told_of(kRank) != nullptr; }));
    EXPECT_EQ(totals_, OutputTotals{});
  }
  ASSERT_TRUE(turn_until([&] { return told_of(standby)->complete && told_of(kRank)->stdout_bytes == 8; }));
  EXPECT_EQ(totals_, OutputTotals{});
  EXPECT_EQ(told_of(standby)->stdout_bytes, loaded.size());
  EXPECT_EQ(text_of(directory_ / "standby-trainer" / "0.1.out"), loaded);
  EXPECT_EQ(text_of(file("out")), "working\n");
}

TEST_F(LogWriterTest, KeepsWhatAnEndedRankWroteUntilThereIsADescriptor) {
  if (!kWorksWithoutDescriptors) GTEST_SKIP() << kWantsDescriptors;
  FakeSink sink(FakeSink::Mood::kAbsent);
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;  // somebody outside of the rank's tree holds both
  Pipe err;
  LogSource ranks = source(out, err);
  const std::string written = numbered(0, 4'096);
  ASSERT_EQ(::write(out.in.get(), written.data(), written.size()), static_cast<ssize_t>(written.size()));
  {
    const UniqueFd next(::fcntl(out.out.get(), F_DUPFD_CLOEXEC, 3));
    const LowerLimit none(RLIMIT_NOFILE, static_cast<rlim_t>(next.get()));
    ASSERT_TRUE(writer.add(std::move(ranks)).ok());
    writer.rank_ended(kRank);
    const Instant later = boot_now() + LogWriter::kEndGrace + Duration::milliseconds(100);
    ASSERT_TRUE(turn_until([&] { return boot_now() > later; }));
  }
  ASSERT_TRUE(turn_until([&] { return complete(); }));
  EXPECT_EQ(totals_, OutputTotals{});
  EXPECT_EQ(good_until(file("out")), written.size());
}

TEST_F(LogWriterTest, DrainsARankWhoseDirectoryCannotBeMade) {
  FakeSink sink(FakeSink::Mood::kTakesAll);
  std::ofstream(directory_ / "trainer") << "in the way";
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;
  Pipe err;
  ASSERT_TRUE(writer.add(source(out, err)).ok());
  const Flooder flooder(out.in.get(), 4U << 20U);
  out.in.reset();
  err.in.reset();
  ASSERT_TRUE(turn_until([&] { return complete(); }));
  EXPECT_EQ(totals_.lost_bytes, 4U << 20U);
  EXPECT_NE(totals_.failure.find((directory_ / "trainer").string()), std::string::npos) << totals_.failure;
  EXPECT_EQ(told_.back().stdout_bytes, 0U);
}

TEST_F(LogWriterTest, TellsWhenARankWroteWhyItFails) {
  FakeSink sink(FakeSink::Mood::kAbsent);
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;
  Pipe err;
  ASSERT_TRUE(writer.add(source(out, err)).ok());
  const auto say = [](const Pipe& pipe, std::string_view words) {
    ASSERT_EQ(::write(pipe.in.get(), words.data(), words.size()), static_cast<ssize_t>(words.size()));
  };
  const auto evidence = [this] { return told_.empty() ? Instant::never() : told_.back().evidence_at; };
  say(err, "step 1\nTraceback (most rec");
  ASSERT_TRUE(turn_until([&] { return !told_.empty() && told_.back().stderr_bytes > 0; }));
  EXPECT_EQ(evidence(), Instant::never());
  const Instant before = boot_now();
  say(err, "ent call last):\n  File\nValueError: nan\n");
  ASSERT_TRUE(turn_until([&] { return evidence() != Instant::never(); }));
  const Instant raised = evidence();
  EXPECT_GE(raised, before);
  say(err, "During handling …\nTraceback (most recent call last):\n");
  say(out, "saving\n");
  ASSERT_TRUE(turn_until([&] { return told_.back().stdout_bytes > 0; }));
  EXPECT_EQ(evidence(), raised) << "what follows from it is no other failure, and it may take its leave";
  loop_->at(loop_->now() + LogWriter::kTeardown + Duration::milliseconds(100), [&] { say(out, "step 2\n"); });
  ASSERT_TRUE(turn_until([&] { return told_.back().stdout_bytes > 7; }));
  EXPECT_EQ(evidence(), Instant::never()) << "it lives on: somebody caught it";

  std::ofstream(file("error.json")) << "{}";
  writer.rank_ended(kRank);
  EXPECT_NE(evidence(), Instant::never()) << "an error file is written of what nobody catches";
}

// What nobody's disk takes is shown all the same, whole where it is taken in time.
TEST_F(LogWriterTest, OffersWhatNoFileTook) {
  FakeSink sink(FakeSink::Mood::kTakesAll);
  std::ofstream(directory_ / "trainer") << "in the way";
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;
  Pipe err;
  ASSERT_TRUE(writer.add(source(out, err)).ok());
  for (const std::string line : {"Traceback (most recent call last):\n", "OSError: 28\n"}) {
    ASSERT_EQ(::write(err.in.get(), line.data(), line.size()), static_cast<ssize_t>(line.size()));
    const std::size_t before = sink.unkept().size();
    ASSERT_TRUE(turn_until([&] { return sink.unkept().size() > before; }));
  }
  EXPECT_EQ(sink.unkept_bytes(), "Traceback (most recent call last):\nOSError: 28\n");
  EXPECT_EQ(sink.unkept()[0].stream, OutputStream::kStderr);
  EXPECT_EQ(sink.unkept()[0].offset, 0U);

  // Room again: what comes now is in the file, and offered from there.
  fs::remove(directory_ / "trainer");
  const std::string whole = numbered(0, 64);
  ASSERT_EQ(::write(out.in.get(), whole.data(), whole.size()), static_cast<ssize_t>(whole.size()));
  ASSERT_TRUE(turn_until([&] { return sink.bytes() == whole.size() && totals_.lost_bytes > 0; }));
  EXPECT_TRUE(sink.good());
}

TEST_F(LogWriterTest, KeepsTheNewestOfWhatNoFileTookUntilSomebodyTakesIt) {
  FakeSink sink(FakeSink::Mood::kAbsent);
  std::ofstream(directory_ / "trainer") << "in the way";
  LogWriter writer(*loop_, {.log_directory = directory_.string()}, sink, handlers());
  Pipe out;
  Pipe err;
  ASSERT_TRUE(writer.add(source(out, err)).ok());
  const Flooder flooder(err.in.get(), 1U << 20U);
  out.in.reset();
  err.in.reset();
  ASSERT_TRUE(turn_until([&] { return complete(); }));
  sink.takes_all();
  writer.sink_ready();
  ASSERT_TRUE(turn_until([&] { return !sink.unkept().empty(); }));
  EXPECT_EQ(sink.unkept_bytes(), numbered((1U << 20U) - limits::kOutputChunkBytes, limits::kOutputChunkBytes));
}

}  // namespace
}  // namespace monarch::daemon
