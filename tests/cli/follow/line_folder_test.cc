#include <gtest/gtest.h>

#include <random>

#include "cli/follow/line_printer.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::uint32_t kRanks = 8;

LineSource source(std::uint32_t rank) {
  return {.job = "ddp-3fa2",
          .mesh = "trainer",
          .rank = rank,
          .generation = 1,
          .host = text("v", rank / 4 + 1),
          .stream = OutputStream::kStdout,
          .gang = rank / 4,
          .local_rank = rank % 4,
          .mesh_ranks = kRanks};
}

LineTime at(std::int64_t milliseconds) {
  return {.now = Instant::since_boot(Duration::milliseconds(milliseconds)),
          .wall = {1'700'000'000'000'000'000 + milliseconds * 1'000'000}};
}

PrefixFormat format(std::string_view written) {
  auto parsed = PrefixFormat::parse(written);
  EXPECT_TRUE(parsed.ok()) << (parsed.ok() ? "" : parsed.error().message);
  return parsed.ok() ? *parsed : PrefixFormat();
}

std::string complaint(std::string_view written) {
  const auto parsed = PrefixFormat::parse(written);
  return parsed.ok() ? "" : parsed.error().message;
}

struct Fixture {
  explicit Fixture(LinePrinterOptions options = {.fold = true}) : printer(std::move(options)) {}
  void write(std::uint32_t rank, std::string_view bytes, std::int64_t milliseconds = 0) {
    printer.feed(rank + 1, source(rank), bytes, out, at(milliseconds));
  }
  LinePrinter printer;
  std::string out;
};

}  // namespace

TEST(PrefixFormat, SaysWhatItIsAskedTo) {
  LinePrinter printer(
      {.prefix = format("{mesh}/{rank} g{gang} l{local_rank} {host} {stream} {{{generation}}} {job}> ")});
  std::string out;
  printer.feed(1, source(5), "x\n", out);
  EXPECT_EQ(out, "trainer/5 g1 l1 v2 stdout {1} ddp-3fa2> x\n");
}

TEST(PrefixFormat, GivesEachLineItsOwnTime) {
  Fixture f({.prefix = format("{time} ")});
  f.write(0, "a\n", 120);
  f.write(0, "b\n", 1120);
  EXPECT_EQ(f.out, "2023-11-14T22:13:20.120Z a\n2023-11-14T22:13:21.120Z b\n");
}

TEST(PrefixFormat, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(complaint("{rnak}: "), "`{rnak}: `, column 1: there is no {rnak}; did you mean {rank}?");
  EXPECT_NE(complaint("a {xyzzy}").find("column 3: there is no {xyzzy}; there are: {job} {mesh} {rank}"),
            std::string::npos);
  EXPECT_NE(complaint("a {rank").find("column 3: this { is never closed"), std::string::npos);
  EXPECT_NE(complaint("a}").find("column 2: this } closes nothing"), std::string::npos);
  EXPECT_NE(complaint("\x1b[2J{rank}").find("column 1: a control character"), std::string::npos);
  EXPECT_NE(complaint("\xc2\x9b{rank}"), "");
  EXPECT_EQ(complaint(""), "");
}

TEST(LineFolder, ShowsOnceWhatAllRanksWriteAndByWhom) {
  Fixture f;
  for (std::uint32_t rank = 0; rank < kRanks; ++rank) f.write(rank, "epoch 1 done\n", rank);
  EXPECT_EQ(f.out, "[trainer/0-7 ×8] epoch 1 done\n");  // at once: nobody is left who could join
  EXPECT_EQ(f.printer.next_fold(), Instant::never());
}

TEST(LineFolder, WaitsNoLongerThanItsWindow) {
  Fixture f;
  for (const std::uint32_t rank : {0U, 1U, 2U, 5U}) f.write(rank, "warming up\n", rank);
  EXPECT_EQ(f.out, "");
  EXPECT_EQ(f.printer.next_fold(), at(0).now + LineFolder::kWindow);
  f.printer.show_folded(at(249).now, f.out);
  EXPECT_EQ(f.out, "");
  f.printer.show_folded(at(250).now, f.out);
  EXPECT_EQ(f.out, "[trainer/0-2,5 ×4] warming up\n");
  f.write(3, "warming up\n", 300);  // too late for that one, and shown by itself
  f.printer.finish_all(f.out);
  EXPECT_EQ(f.out, "[trainer/0-2,5 ×4] warming up\n[trainer/3@v1] warming up\n");
}

TEST(LineFolder, NamesTheHostWhereThereIsOne) {
  Fixture f;
  for (const std::uint32_t rank : {0U, 1U, 3U}) f.write(rank, "hi\n");
  f.printer.finish_all(f.out);
  EXPECT_EQ(f.out, "[trainer/0-1,3@v1 ×3] hi\n");
}

TEST(LineFolder, SaysItWhereThePrefixDoesNot) {
  for (const auto& [prefix, wanted] :
       {std::pair{"{rank}: ", "0-1: ×2 (0-1) x\n"}, std::pair{"{rank} of {count}: ", "0-1 of 2: x\n"},
        std::pair{"", "×2 (0-1) x\n"}}) {
    Fixture f({.prefix = format(prefix), .fold = true});
    f.write(0, "x\n");
    f.write(1, "x\n");
    f.printer.finish_all(f.out);
    EXPECT_EQ(f.out, wanted);
  }
  Fixture bare({.style = LineStyle::kBare, .fold = true});
  bare.write(0, "x\n");
  bare.write(1, "x\n");
  bare.write(2, "y");
  bare.printer.finish_all(bare.out);
  EXPECT_EQ(bare.out, "×2 (0-1) x\ny\n");
}

TEST(LineFolder, KeepsTheOrderOfEachRank) {
  Fixture f;
  f.write(0, "a\nb\na\n");
  f.write(1, "b\na\n");  // its b joins that of 0; its a only the one behind it
  f.printer.finish_all(f.out);
  EXPECT_EQ(f.out, "[trainer/0@v1] a\n[trainer/0-1@v1 ×2] b\n[trainer/0-1@v1 ×2] a\n");
}

TEST(LineFolder, LosesNothingWhateverComes) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(text("seed ", seed));
  std::mt19937 random(seed);
  LineFolder folder;
  std::map<std::uint32_t, std::vector<std::string>> written;
  std::map<std::uint32_t, std::vector<std::string>> shown;
  const auto show = [&](const FoldedLine& folded) {
    for (const std::uint32_t rank : folded.sources.ranks) shown[rank].push_back(folded.line);
  };
  Duration latest;
  for (std::int64_t now = 0; now < 20'000; ++now) {
    const std::uint32_t rank = random() % kRanks;
    const std::string line(1, static_cast<char>('a' + random() % 4));
    written[rank].push_back(line);
    folder.add(source(rank), line, 0, at(now));
    while (const auto folded = folder.take_due(at(now).now)) {
      latest = std::max(latest, at(now).now - folded->time.now);
      show(*folded);
    }
  }
  while (const auto folded = folder.take()) show(*folded);
  EXPECT_EQ(shown, written);
  EXPECT_LE(latest, LineFolder::kWindow);
}

TEST(LineFolder, HoldsNoMoreThanItsLimit) {
  LineFolder folder;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < LineFolder::kMostLines + 100; ++i) {
    folder.add(source(0), text(i), 0, at(0));
    while (folder.take_due(at(0).now)) ++shown;
  }
  EXPECT_EQ(shown, 100U);
}

TEST(LinePrinter, LeavesOutWhatThePatternDoesNotMatch) {
  Fixture f({.only = *LinePattern::parse("loss")});
  f.write(0, "step 1\nloss 2\nlo");
  f.write(0, "ss 3\nstep 4\n");
  f.printer.finish_all(f.out);
  EXPECT_EQ(f.out, "[trainer/0@v1] loss 2\n[trainer/0@v1] loss 3\n");
}

}  // namespace monarch
