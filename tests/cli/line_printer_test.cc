#include "cli/line_printer.h"

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
