#include "cli/follow/line_printer.h"

#include <gtest/gtest.h>

#include <random>

#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

LineSource source(std::uint32_t rank = 3) {
  return {.mesh = "trainer", .rank = rank, .generation = 1, .host = "v1", .stream = OutputStream::kStdout};
}

// What a printer makes of bytes that come in these pieces from one stream.
std::string printed(LinePrinterOptions options, const std::vector<std::string>& pieces) {
  LinePrinter printer(options);
  std::string out;
  for (const std::string& piece : pieces) printer.feed(1, source(), piece, out);
  printer.finish_all(out);
  return out;
}

}  // namespace

TEST(LinePrinter, PutsTheRankInFrontOfEachLine) {
  EXPECT_EQ(printed({}, {"one\ntwo\n"}), "[trainer/3@v1] one\n[trainer/3@v1] two\n");
  EXPECT_EQ(printed({}, {"\n\n"}), "[trainer/3@v1] \n[trainer/3@v1] \n");
}

TEST(LinePrinter, PutsLinesTogetherFromPieces) {
  EXPECT_EQ(printed({}, {"o", "n", "e\nt", "wo", "\n"}), "[trainer/3@v1] one\n[trainer/3@v1] two\n");
}

TEST(LinePrinter, ShowsAnUnfinishedLineAtTheEnd) {
  EXPECT_EQ(printed({}, {"one\ntw"}), "[trainer/3@v1] one\n[trainer/3@v1] tw\n");
}

TEST(LinePrinter, KeepsTheLinesOfManyRanksWhole) {
  LinePrinter printer({});
  std::string out;
  printer.feed(1, source(1), "a", out);
  printer.feed(2, source(2), "x\n", out);
  printer.feed(1, source(1), "b\n", out);
  EXPECT_EQ(out, "[trainer/2@v1] x\n[trainer/1@v1] ab\n");
}

TEST(LinePrinter, ShowsALongLineInPiecesAndLosesNoByte) {
  const std::string line(LinePrinter::kLongestLine * 2 + 10, 'x');
  std::string out = printed({}, {line + "\nend\n"});
  std::size_t count = 0;
  for (const char c : out) count += c == 'x' ? 1U : 0U;
  EXPECT_EQ(count, line.size());
  EXPECT_TRUE(out.ends_with("\n[trainer/3@v1] end\n"));
  for (std::size_t at = 0; at < out.size();) {
    const std::size_t newline = out.find('\n', at);
    EXPECT_LE(newline - at, LinePrinter::kLongestLine + 16);
    at = newline + 1;
  }
}

TEST(LinePrinter, CutsNoCharacterInTwo) {
  std::string line(LinePrinter::kLongestLine - 1, 'x');
  const std::string out = printed({.style = LineStyle::kJson}, {line + "€uro\n"});
  EXPECT_EQ(out.find("\\ufffd"), std::string::npos);
  EXPECT_NE(out.find("€uro"), std::string::npos);
}

TEST(LinePrinter, WithoutPrefixThePiecesOfOneStreamPassUnchanged) {
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(text("seed ", seed));
  std::mt19937 random(seed);
  for (int run = 0; run < 200; ++run) {
    std::string all;
    std::vector<std::string> pieces;
    for (auto i = random() % 10; i > 0; --i) {
      std::string piece(random() % (random() % 5 == 0 ? 200'000 : 200), '\0');
      for (char& byte : piece)
        byte = static_cast<char>(random() % (run % 2 == 0 ? 256 : 4000) + (run % 2 == 0 ? 0 : 11));
      all += piece;
      pieces.push_back(std::move(piece));
    }
    EXPECT_EQ(printed({.style = LineStyle::kBare}, pieces), all);
  }
}

TEST(LinePrinter, LetsNoEscapeReachATerminal) {
  EXPECT_EQ(printed({.for_terminal = true}, {"\x1b[2Jboom\x07\n"}), "[trainer/3@v1] \\x1b[2Jboom\\x07\n");
  EXPECT_EQ(printed({}, {"\x1b[2J\n"}), "[trainer/3@v1] \x1b[2J\n");
}

TEST(LinePrinter, ACarriageReturnEndsALineOnATerminal) {
  const LinePrinterOptions options{.style = LineStyle::kBare, .for_terminal = true};
  EXPECT_EQ(printed(options, {"\r 10%\r 20%\r", "\n"}), " 10%\n 20%\n");
  EXPECT_EQ(printed(options, {"dos\r\nline\r", "\nend"}), "dos\nline\nend\n");
  EXPECT_EQ(printed(options, {"a\n\nb\n"}), "a\n\nb\n");
}

namespace {

Instant at(std::int64_t milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

// One stream on a clock: what is shown of it, and when something is due.
struct Shown {
  explicit Shown(LinePrinterOptions options) : printer(options) {}
  std::string feed(std::int64_t milliseconds, const std::string& bytes, std::uint32_t rank = 3) {
    std::string out;
    printer.feed(rank, source(rank), bytes, out, {.now = at(milliseconds), .wall = {}});
    return out;
  }
  std::string quiet(std::int64_t milliseconds) {
    std::string out;
    printer.show_quiet(at(milliseconds), out);
    return out;
  }
  LinePrinter printer;
};

}  // namespace

TEST(LinePrinter, ShowsWhatHasNoNewlineOnceItIsQuiet) {
  Shown shown({});
  EXPECT_EQ(shown.printer.next_quiet(), Instant::never());
  EXPECT_EQ(shown.feed(0, "Loading "), "");
  EXPECT_EQ(shown.feed(100, "shards ..."), "");
  EXPECT_EQ(shown.printer.next_quiet(), at(600));
  EXPECT_EQ(shown.quiet(599), "");
  EXPECT_EQ(shown.quiet(600), "[trainer/3@v1] Loading shards ... …\n");
  EXPECT_EQ(shown.printer.next_quiet(), Instant::never()) << "once";
  EXPECT_EQ(shown.feed(5'000, " done\nnext\n"), "[trainer/3@v1] …  done\n[trainer/3@v1] next\n");
  shown.feed(6'000, "Saving");
  shown.quiet(7'000);
  EXPECT_EQ(shown.feed(8'000, "\n"), "") << "all of it is shown";
  EXPECT_EQ(shown.feed(8'100, "more\n"), "[trainer/3@v1] more\n");
}

TEST(LinePrinter, ShowsAProgressBarTwiceASecond) {
  Shown pipe({});
  std::string out;
  for (int i = 0; i < 40; ++i) {
    out += pipe.feed(i * 50, text("\r", i, "%"));
    out += pipe.quiet(i * 50);
  }
  EXPECT_EQ(out, "[trainer/3@v1] 10% …\n[trainer/3@v1] 20% …\n[trainer/3@v1] 30% …\n");
  EXPECT_EQ(pipe.feed(2'000, "\r100%\n"), "[trainer/3@v1] \r31%\r32%\r33%\r34%\r35%\r36%\r37%\r38%\r39%\r100%\n");

  Shown terminal({.for_terminal = true});
  out.clear();
  for (int i = 0; i < 40; ++i) {
    out += terminal.feed(i * 50, text(i, "%\r"));
    out += terminal.quiet(i * 50);
  }
  EXPECT_EQ(out, "[trainer/3@v1] 0%\n[trainer/3@v1] 10%\n[trainer/3@v1] 20%\n[trainer/3@v1] 30%\n");
  EXPECT_EQ(terminal.feed(2'000, "100%\n"), "[trainer/3@v1] 100%\n");
}

TEST(LinePrinter, PassesWhatOneStreamWritesUnchangedAlsoWhereItIsQuiet) {
  Shown shown({.style = LineStyle::kBare});
  EXPECT_EQ(shown.feed(0, "50%"), "");
  EXPECT_EQ(shown.quiet(500), "50%");
  EXPECT_EQ(shown.feed(600, "\r60%"), "");
  EXPECT_EQ(shown.quiet(1'100), "\r60%");
  EXPECT_EQ(shown.feed(1'200, "\ndone\n"), "\ndone\n");
  shown.feed(2'000, "half");
  EXPECT_EQ(shown.quiet(3'000), "half");
  EXPECT_EQ(shown.feed(3'100, "other\n", 4), "\nother\n") << "another rank's line begins on its own";
}

TEST(LinePrinter, MarksALineThatGoesOnInJson) {
  Shown shown({.style = LineStyle::kJson});
  shown.feed(0, "half");
  EXPECT_TRUE(shown.quiet(500).ends_with("\"line\":\"half\",\"complete\":false}\n"));
  EXPECT_TRUE(shown.feed(600, "\n").ends_with("\"line\":\"\"}\n"));
}

TEST(LinePrinter, LetsPatternsAndFoldsSeeWholeLines) {
  for (LinePrinterOptions options :
       {LinePrinterOptions{.fold = true}, LinePrinterOptions{.only = LinePattern::parse("whole").value()}}) {
    Shown shown(options);
    shown.feed(0, "not ");
    EXPECT_EQ(shown.printer.next_quiet(), Instant::never());
    EXPECT_EQ(shown.quiet(5'000), "");
  }
}

TEST(LinePrinter, ColoursThePrefixByHost) {
  const std::string out = printed({.colour = true}, {"x\n"});
  EXPECT_EQ(out, paint(host_colour("v1"), "[trainer/3@v1]", true) + " x\n");
}

TEST(LinePrinter, WritesOneJsonObjectPerLine) {
  const std::string out = printed({.style = LineStyle::kJson}, {"say \"hi\"\x1b\nopen"});
  EXPECT_EQ(
      out,
      R"({"v":1,"type":"output","mesh":"trainer","rank":3,"host":"v1","generation":1,"stream":"stdout","line":"say \"hi\"\u001b"})"
      "\n"
      R"({"v":1,"type":"output","mesh":"trainer","rank":3,"host":"v1","generation":1,"stream":"stdout","line":"open","complete":false})"
      "\n");
  for (std::size_t at = 0; at < out.size();) {
    const std::size_t newline = out.find('\n', at);
    EXPECT_TRUE(parse_json(out.substr(at, newline - at)).ok());
    at = newline + 1;
  }
}

}  // namespace monarch
