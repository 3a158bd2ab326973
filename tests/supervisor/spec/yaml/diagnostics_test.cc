#include "supervisor/spec/yaml/diagnostics.h"

#include <gtest/gtest.h>

#include <regex>
#include <set>

namespace monarch {
namespace {

constexpr std::string_view kSource = "a: 1\nsupervision:\n  hartbeat: 2s\n";

TEST(Render, LooksExactlyLikeThis) {
  Report report("mesh.yaml", kSource);
  report.error("E0107", {3, 3, 8},
               {.message = "unknown key `hartbeat`",
                .label = "not a key of `supervision`",
                .help = "did you mean `heartbeat`?"});
  EXPECT_EQ(render(report.diagnostics(), kSource),
            "error[E0107]: unknown key `hartbeat`\n"
            " --> mesh.yaml:3:3\n"
            "  |\n"
            "3 |   hartbeat: 2s\n"
            "  |   ^^^^^^^^ not a key of `supervision`\n"
            "  = help: did you mean `heartbeat`?\n");
}

TEST(Render, WidensTheGutterForLongLineNumbers) {
  const std::string source = std::string(13, '\n') + "  hartbeat: 2s\n";
  Report report("mesh.yaml", source);
  report.error("E0107", {14, 3, 8}, {.message = "m", .label = "l", .help = "h"});
  EXPECT_EQ(render(report.diagnostics(), source),
            "error[E0107]: m\n  --> mesh.yaml:14:3\n   |\n14 |   hartbeat: 2s\n   |   ^^^^^^^^ l\n   = help: h\n");
}

TEST(Render, ShowsBothPlacesOfAFaultThatHasTwo) {
  const std::string drill = "expect:\n  ours_p95: {host: 3s}\n";
  const std::string spec = std::string(99, '\n') + "supervision: {lost_after: 5s}\n";
  Report report("drill.yaml", drill);
  const std::uint32_t other = report.add_source("train.yaml", spec);
  report.error("E0206", {2, 20, 2},
               {.message = "m",
                .label = "too short",
                .help = "h",
                .other = FaultElsewhere{.place = {100, 27, 2, other}, .label = "of the spec"}});
  const std::string_view sources[] = {drill, spec};
  EXPECT_EQ(render(report.diagnostics(), sources),
            "error[E0206]: m\n"
            "   --> drill.yaml:2:20\n"
            "    |\n"
            "2   |   ours_p95: {host: 3s}\n"
            "    |                    ^^ too short\n"
            "   ::: train.yaml:100:27\n"
            "    |\n"
            "100 | supervision: {lost_after: 5s}\n"
            "    |                           ^^ of the spec\n"
            "    = help: h\n");
}

TEST(Render, LeavesOutWhatIsNotThere) {
  Report report("mesh.yaml", "");
  report.error("E0010", {}, {.message = "the file is empty"});
  EXPECT_EQ(render(report.diagnostics(), ""), "error[E0010]: the file is empty\n  --> mesh.yaml\n");
}

TEST(Render, PaintsOnlyWhenAsked) {
  Report report("mesh.yaml", kSource);
  report.error("E0107", {3, 3, 8}, {.message = "m", .label = "l", .help = "h"});
  const std::string coloured = render(report.diagnostics(), kSource, {.colour = true});
  EXPECT_NE(coloured.find("\x1b[1;31merror[E0107]\x1b[0m"), std::string::npos);
  EXPECT_EQ(std::regex_replace(coloured, std::regex("\x1b\\[[0-9;]*m"), ""), render(report.diagnostics(), kSource));
}

TEST(Render, CountsCharactersAndKeepsTabs) {
  const std::string source = "k:\té日: \"x\"\n";
  Report report("f", source);
  report.error("E0205", {1, 10, 3}, {.message = "m", .label = "here"});
  const auto all = report.diagnostics();
  EXPECT_EQ(all[0].column, 7U);
  EXPECT_EQ(all[0].length, 3U);
  EXPECT_EQ(render(all, source), "error[E0205]: m\n --> f:1:7\n  |\n1 | k:\té日: \"x\"\n  |   \t   ^^^ here\n");
}

TEST(Render, LetsNoControlCharacterThrough) {
  const std::string source = "a: \x1b[2Jx\n";
  Report report("f\x1b]0;t\x07", source);
  report.error("E0008", {1, 4, 1}, {.message = "bad \x1b[31m", .label = "\r", .help = "\n"});
  const std::string shown = render(report.diagnostics(), source);
  for (const char c : shown) EXPECT_TRUE(c == '\n' || static_cast<unsigned char>(c) >= 0x20) << static_cast<int>(c);
  EXPECT_NE(shown.find("1 | a: \\x1b[2Jx\n  |    ^^^^ \\x0d"), std::string::npos) << shown;
}

TEST(Render, ShowsThePartAroundTheCaretOfALongLine) {
  const std::string source = std::string(5000, 'a') + "BAD" + std::string(5000, 'b') + "\n";
  Report report("f", source);
  report.error("E0001", {1, 5001, 3}, {.message = "m", .label = "l"});
  const std::string shown = render(report.diagnostics(), source);
  EXPECT_LT(shown.size(), 500U);
  EXPECT_NE(shown.find("aaaBADbbb"), std::string::npos);
  EXPECT_NE(shown.find("^^^ l"), std::string::npos);
}

TEST(Report, SortsByPlaceAndCountsWhatItDoesNotShow) {
  Report report("f", "x\n");
  for (std::uint32_t i = 0; i < 150; ++i) report.error("E0107", {1, 200 - i, 1}, {.message = "m"});
  const auto all = report.diagnostics();
  ASSERT_EQ(all.size(), Report::kMostShown + 1);
  EXPECT_EQ(all.back().message, "50 more errors");
}

TEST(Report, ShortensWhatItQuotes) {
  Report report("f", "x\n");
  report.error("E0107", {1, 1, 1}, {.message = std::string(100'000, 'k')});
  EXPECT_LT(report.diagnostics()[0].message.size(), 500U);
}

TEST(ErrorRegister, HasUniqueSortedIdsWithWords) {
  std::string_view last;
  for (const ErrorDoc& doc : all_errors()) {
    EXPECT_LT(last, doc.id);
    last = doc.id;
    EXPECT_TRUE(std::regex_match(std::string(doc.id), std::regex("E0[0-9]{3}"))) << doc.id;
    EXPECT_FALSE(doc.title.empty()) << doc.id;
    EXPECT_GT(doc.explanation.size(), doc.title.size()) << doc.id;
    EXPECT_EQ(find_error(doc.id), &doc);
  }
  EXPECT_EQ(find_error("E9999"), nullptr);
}

}  // namespace
}  // namespace monarch
