#include "supervisor/client/output/output_follower.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <random>
#include <set>

#include "tests/supervisor/client/scratch.h"
#include "transport/base/sanitizers.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

class Collector final : public OutputSink {
 public:
  void on_output(const StreamId& stream, std::string_view bytes, std::optional<WallTime> written) override {
    got[stream].append(bytes);
    times[stream].push_back(written);
  }
  void on_lost(const StreamId& stream, std::uint64_t bytes) override { lost[stream] += bytes; }
  bool takes(const StreamId& stream) const override { return !full.contains(stream.stream); }
  std::set<OutputStream> full;
  std::map<StreamId, std::string> got;
  std::map<StreamId, std::uint64_t> lost;
  std::map<StreamId, std::vector<std::optional<WallTime>>> times;
};

StreamId stream(std::uint32_t rank, OutputStream which = OutputStream::kStdout) {
  return {.rank = {MeshId(0), Rank(rank)}, .generation = 1, .stream = which};
}

struct Fixture {
  Scratch scratch;
  Collector sink;
  OutputFollower follower{{.log_directory = scratch.path(), .mesh_names = {"trainer"}}, sink};

  std::string file(const StreamId& id) const {
    return "trainer/" + output_file_name({.rank = id.rank.rank, .generation = id.generation, .stream = id.stream});
  }
  void write(const StreamId& id, std::string_view bytes) const { scratch.write(file(id), bytes); }
  void read_all() {
    while (follower.read_on()) continue;
  }
};

std::string random_bytes(std::mt19937& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random() % 7 == 0 ? '\n' : 'a' + static_cast<int>(random() % 26));
  return bytes;
}

}  // namespace

TEST(OutputFollower, PassesOnPiecesInOrderWithoutAFile) {
  Fixture f;
  f.follower.on_piece(stream(0), 0, "hello ");
  f.follower.on_piece(stream(0), 6, "world\n");
  EXPECT_EQ(f.sink.got[stream(0)], "hello world\n");
  EXPECT_FALSE(f.follower.waits());
}

TEST(OutputFollower, ReadsAGapFromTheFile) {
  Fixture f;
  f.write(stream(0), "0123456789");
  f.follower.on_piece(stream(0), 0, "01");
  f.follower.on_piece(stream(0), 6, "67");
  EXPECT_EQ(f.sink.got[stream(0)], "01");
  EXPECT_TRUE(f.follower.waits());
  f.read_all();
  EXPECT_EQ(f.sink.got[stream(0)], "01234567");
  f.follower.on_piece(stream(0), 8, "89");
  EXPECT_EQ(f.sink.got[stream(0)], "0123456789");
}

TEST(OutputFollower, PassesOnWhatNoFileTookInItsPlace) {
  Fixture f;
  f.write(stream(0), "0123");
  f.follower.on_unkept(stream(0), 4, "lost\n");
  EXPECT_EQ(f.sink.got[stream(0)], "") << "what was before it comes first";
  f.read_all();
  EXPECT_EQ(f.sink.got[stream(0)], "0123lost\n");
  f.follower.on_unkept(stream(0), 4, "and more\n");
  f.follower.on_piece(stream(0), 4, "kept\n");
  EXPECT_EQ(f.sink.got[stream(0)], "0123lost\nand more\nkept\n");
  EXPECT_TRUE(f.sink.lost.empty());
}

TEST(OutputFollower, GoesOnWithOneStreamWhileTheOtherIsNotTaken) {
  Fixture f;
  const StreamId err = stream(0, OutputStream::kStderr);
  f.write(stream(0), "0123456789");
  f.write(err, "abcdef");
  f.sink.full.insert(OutputStream::kStdout);
  f.follower.on_piece(stream(0), 0, "01");
  f.follower.on_unkept(stream(0), 10, "lost\n");
  f.follower.look_at_files();
  f.read_all();
  f.follower.on_piece(err, 6, "gh");
  EXPECT_EQ(f.sink.got[stream(0)], "");
  EXPECT_EQ(f.sink.got[err], "abcdefgh");
  EXPECT_TRUE(f.follower.held());
  EXPECT_FALSE(f.follower.waits()) << "what a sink does not take is in its file";
  f.follower.give_up();
  EXPECT_TRUE(f.sink.lost.empty());
  f.sink.full.clear();
  f.read_all();
  EXPECT_EQ(f.sink.got[stream(0)], "0123456789lost\n");
  EXPECT_FALSE(f.follower.held());
}

TEST(OutputFollower, IgnoresBytesThatItHasSeen) {
  Fixture f;
  f.follower.on_piece(stream(0), 0, "abc");
  f.follower.on_piece(stream(0), 0, "abc");
  f.follower.on_piece(stream(0), 1, "bcd");
  EXPECT_EQ(f.sink.got[stream(0)], "abcd");
}

TEST(OutputFollower, GivesIdenticalBytesWhateverPiecesAreMissing) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(text("seed ", seed));
  std::mt19937 random(seed);
  for (int run = 0; run < (kSanitized ? 10 : 50); ++run) {
    Fixture f;
    std::map<StreamId, std::string> written;
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      for (const OutputStream which : {OutputStream::kStdout, OutputStream::kStderr}) {
        written[stream(rank, which)] = random_bytes(random, random() % (3 * OutputFollower::kStepBytes));
      }
    }
    std::map<StreamId, std::size_t> at;
    for (const auto& [id, bytes] : written) {
      f.write(id, bytes);
      for (std::size_t offset = 0; offset < bytes.size();) {
        const std::size_t size = std::min<std::size_t>(bytes.size() - offset, 1 + random() % 50'000);
        if (random() % 3 != 0) f.follower.on_piece(id, offset, std::string_view(bytes).substr(offset, size));
        if (random() % 8 == 0) f.follower.read_on();
        offset += size;
      }
    }
    f.follower.look_at_files();
    f.read_all();
    EXPECT_EQ(f.sink.got, written);
    EXPECT_TRUE(f.sink.lost.empty());
  }
}

TEST(OutputFollower, WaitsForBytesThatAreNotInTheFileYet) {
  Fixture f;
  f.write(stream(0), "abc");
  f.follower.on_piece(stream(0), 5, "f");
  f.read_all();
  EXPECT_EQ(f.sink.got[stream(0)], "abc");
  EXPECT_TRUE(f.follower.waits());
  f.write(stream(0), "abcdef");
  f.read_all();
  EXPECT_EQ(f.sink.got[stream(0)], "abcdef");
  EXPECT_FALSE(f.follower.waits());
}

TEST(OutputFollower, CountsWhatIsGivenUp) {
  Fixture f;
  f.follower.on_piece(stream(0), 100, "x");
  f.read_all();
  f.follower.give_up();
  EXPECT_EQ(f.sink.lost[stream(0)], 101U);
  EXPECT_FALSE(f.follower.waits());
  f.follower.on_piece(stream(0), 101, "y");
  EXPECT_EQ(f.sink.got[stream(0)], "y");
}

TEST(OutputFollower, ReadsARotatedFileAndCountsWhatIsGone) {
  Fixture f;
  f.write(stream(0), "new");
  f.scratch.write(f.file(stream(0)) + ".1", "older");
  f.scratch.write(f.file(stream(0)) + ".start", "15\n");
  f.follower.look_at_files();
  f.read_all();
  EXPECT_EQ(f.sink.lost[stream(0)], 10U);
  EXPECT_EQ(f.sink.got[stream(0)], "oldernew");
}

TEST(OutputFollower, ALateViewerStartsAtTheUnfinishedLine) {
  Fixture f;
  f.write(stream(0), "one\ntwo\nthr");
  f.write(stream(1), "no newline at all");
  f.follower.skip_what_is_there();
  f.write(stream(0), "one\ntwo\nthree\n");
  f.follower.on_piece(stream(0), 11, "ee\n");
  f.read_all();
  EXPECT_EQ(f.sink.got[stream(0)], "three\n");
  EXPECT_EQ(f.sink.got[stream(1)], "no newline at all");
}

TEST(OutputFollower, LeavesOutWhatIsNotWanted) {
  Scratch scratch;
  scratch.write("trainer/0.1.out", "zero");
  scratch.write("trainer/1.1.out", "one");
  Collector sink;
  OutputFollower follower({.log_directory = scratch.path(),
                           .mesh_names = {"trainer"},
                           .wanted = [](const StreamId& id) { return id.rank.rank == Rank(1); }},
                          sink);
  follower.on_piece(stream(0), 0, "zero");
  follower.look_at_files();
  while (follower.read_on()) continue;
  EXPECT_EQ(sink.got, (std::map<StreamId, std::string>{{stream(1), "one"}}));
}

TEST(OutputFollower, DropsPiecesOfAMeshThatTheJobDoesNotHave) {
  Fixture f;
  f.follower.on_piece({.rank = {MeshId(7), Rank(0)}, .generation = 1}, 0, "x");
  EXPECT_TRUE(f.sink.got.empty());
}

TEST(OutputFollower, FollowsNoLinkAndNoPipe) {
  Fixture f;
  const std::string outside = f.scratch.write("outside", "secret");
  std::filesystem::create_directories(f.scratch.path() + "/trainer");
  std::filesystem::create_symlink(outside, f.scratch.path() + "/trainer/0.1.out");
  ASSERT_EQ(::mkfifo((f.scratch.path() + "/trainer/1.1.out").c_str(), 0600), 0);
  f.follower.look_at_files();
  f.read_all();
  EXPECT_TRUE(f.sink.got.empty());
}

TEST(OutputFileName, ReadsItsOwnNamesAndNoOthers) {
  const auto name = parse_output_file_name("31.2.err");
  ASSERT_TRUE(name.has_value());
  EXPECT_EQ(output_file_name(*name), "31.2.err");
  for (const char* other :
       {"", ".", "3.out", "3.1.out.1", "3.1.out.start", "x.1.out", "3.x.out", "3.1.log", "99999999999.1.out"}) {
    EXPECT_FALSE(parse_output_file_name(other).has_value()) << other;
  }
}

}  // namespace monarch
