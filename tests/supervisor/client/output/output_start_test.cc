#include "supervisor/client/output/output_start.h"

#include <gtest/gtest.h>

#include <random>

#include "supervisor/client/output/output_follower.h"
#include "tests/supervisor/client/scratch.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::int64_t kBase = 1'700'000'000'000;

WallTime at(std::int64_t milliseconds) { return {(kBase + milliseconds) * 1'000'000}; }

LogFileReader reader(const Scratch& scratch, std::string_view bytes) {
  auto file = LogFileReader::open(scratch.write("trainer/0.1.out", bytes));
  EXPECT_TRUE(file.ok());
  return std::move(*file);
}

std::string times_of(const std::vector<std::pair<std::uint64_t, std::int64_t>>& spans) {
  std::string out;
  for (const auto& [offset, first] : spans) out += text(offset, " ", kBase + first, " ", kBase + first + 1000, "\n");
  return out;
}

class Collector final : public OutputSink {
 public:
  void on_output(const StreamId& stream, std::string_view bytes, std::optional<WallTime> written) override {
    got[stream].append(bytes);
    if (written) times.emplace_back(to_text(*written), bytes);
  }
  void on_lost(const StreamId&, std::uint64_t) override {}
  std::map<StreamId, std::string> got;
  std::vector<std::pair<std::string, std::string>> times;
};

StreamId stream(std::uint32_t rank, std::uint64_t generation) {
  return {.rank = {MeshId(0), Rank(rank)}, .generation = generation, .stream = OutputStream::kStdout};
}

std::map<StreamId, std::string> read_from(const Scratch& scratch, const OutputStart& start) {
  Collector sink;
  OutputFollower follower({.log_directory = scratch.path(), .mesh_names = {"trainer"}}, sink);
  follower.start_at(start);
  follower.look_at_files();
  while (follower.read_on()) continue;
  return sink.got;
}

}  // namespace

TEST(OutputStart, FindsTheLastLines) {
  const Scratch scratch;
  const LogFileReader file = reader(scratch, "one\ntwo\nthree\nunfin");
  const auto offset = [&](std::uint64_t lines) { return start_of_tail(file, lines).offset; };
  EXPECT_EQ(offset(0), 19U);
  EXPECT_EQ(offset(1), 14U);
  EXPECT_EQ(offset(2), 8U);
  EXPECT_EQ(offset(4), 0U);
  EXPECT_EQ(offset(100), 0U);
  EXPECT_EQ(start_of_tail(file, 100).lines, 4U);
}

TEST(OutputStart, FindsTheLastLinesOfAnyFile) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(text("seed ", seed));
  std::mt19937 random(seed);
  for (int run = 0; run < 20; ++run) {
    const Scratch scratch;
    std::string all;
    const auto size = random() % 300'000;
    while (all.size() < size) {
      all.append(random() % (random() % 10 == 0 ? 100'000 : 100), 'x');
      all.push_back('\n');
    }
    const std::uint64_t wanted = random() % 3000;
    std::size_t from = all.size();
    for (std::uint64_t lines = 0; from > 0 && lines < wanted; ++lines) {
      const std::size_t newline = from < 2 ? std::string::npos : all.rfind('\n', from - 2);
      from = newline == std::string::npos ? 0 : newline + 1;
    }
    EXPECT_EQ(start_of_tail(reader(scratch, all), wanted).offset, from);
  }
}

TEST(OutputStart, BeginsWithTheLineOfATime) {
  const Scratch scratch;
  const LogFileReader file = reader(scratch, "one\ntwo\nthree\n");
  const auto times = LogTimesReader::parse(times_of({{0, 0}, {6, 5000}, {8, 9000}}));
  const auto offset = [&](std::int64_t milliseconds) { return start_since(file, times, at(milliseconds)); };
  EXPECT_EQ(offset(-1), 0U);
  EXPECT_EQ(offset(999), 0U);
  EXPECT_EQ(offset(1000), 4U);  // "two" was finished then
  EXPECT_EQ(offset(6000), 8U);
  EXPECT_EQ(offset(10'000), 14U);
  EXPECT_EQ(start_since(file, LogTimesReader(), at(0)), 0U);  // nobody knows: all of it
}

TEST(OutputStart, CountsLinesOverGenerationsAndLetsOthersPass) {
  const Scratch scratch;
  scratch.write("trainer/0.1.out", "a1\na2\na3\n");
  scratch.write("trainer/0.2.out", "b1\nb2\n");
  scratch.write("trainer/1.1.out", "c1\n");
  auto got = read_from(scratch, {.since = std::nullopt, .lines = 3});
  EXPECT_EQ(got[stream(0, 1)], "a3\n");
  EXPECT_EQ(got[stream(0, 2)], "b1\nb2\n");
  EXPECT_EQ(got[stream(1, 1)], "c1\n");
  scratch.write("trainer/0.1.out.times", times_of({{0, 0}}));
  scratch.write("trainer/0.2.out.times", times_of({{0, 4000}, {3, 8000}}));
  got = read_from(scratch, {.since = at(6000), .lines = 3});
  EXPECT_EQ(got[stream(0, 1)], "");
  EXPECT_EQ(got[stream(0, 2)], "b2\n");
  EXPECT_EQ(got[stream(1, 1)], "c1\n");
}

TEST(OutputFollower, TellsWhenBytesWereWritten) {
  const Scratch scratch;
  scratch.write("trainer/0.1.out", "one\ntwo\nthree\n");
  scratch.write("trainer/0.1.out.times", times_of({{0, 0}, {4, 5000}}));
  Collector sink;
  OutputFollower follower(
      {.log_directory = scratch.path(), .mesh_names = {"trainer"}, .wanted = {}, .with_times = true}, sink);
  follower.look_at_files();
  while (follower.read_on()) continue;
  const std::vector<std::pair<std::string, std::string>> wanted = {{to_text(at(0)), "one\n"},
                                                                   {to_text(at(5000)), "two\nthree\n"}};
  EXPECT_EQ(sink.times, wanted);
}

TEST(LogTimes, PassesOverLinesThatAreNone) {
  const auto times =
      LogTimesReader::parse("junk\n0 1000 2000\n5 x\n-1 2 3\n3 1 2\n10 5000 6000 7\n12 5000 6000\n14 70");
  EXPECT_EQ(times.time_at(0), (WallTime{1'000'000'000}));
  EXPECT_EQ(times.next_after(0), 3U);
  EXPECT_EQ(times.next_after(3), 12U);
  EXPECT_EQ(times.next_after(12), UINT64_MAX);
  EXPECT_TRUE(LogTimesReader::parse("").empty());
}

}  // namespace monarch
