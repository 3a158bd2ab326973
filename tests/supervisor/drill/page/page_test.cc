#include "supervisor/drill/page/page.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "supervisor/drill/page/page_text.h"
#include "tests/supervisor/drill/page/sample_drill.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

std::string page_of(const SampleDrill& drill) { return drill_page(drill.record, drill.report); }

std::size_t count_of(std::string_view in, std::string_view what) {
  std::size_t count = 0;
  for (std::size_t at = in.find(what); at != std::string_view::npos; at = in.find(what, at + what.size())) ++count;
  return count;
}

// What makes the page more than text: an element or an attribute that is none of ours.
std::string what_is_not_ours(std::string_view page) {
  static constexpr std::array kElements = {
      "!DOCTYPE", "html", "head", "meta", "title", "style", "body",  "h1",   "h2",   "h3",     "p",    "span",
      "small",    "b",    "br",   "div",  "table", "thead", "tbody", "tr",   "th",   "td",     "code", "details",
      "summary",  "pre",  "ul",   "li",   "svg",   "g",     "path",  "rect", "line", "circle", "text"};
  static constexpr std::array kAttributes = {"xmlns",
                                             "lang",
                                             "charset",
                                             "http-equiv",
                                             "content",
                                             "name",
                                             "class",
                                             "scope",
                                             "align",
                                             "cellpadding",
                                             "hidden",
                                             "open",
                                             "width",
                                             "height",
                                             "viewBox",
                                             "role",
                                             "aria-label",
                                             "aria-hidden",
                                             "font-size",
                                             "font-family",
                                             "fill",
                                             "fill-opacity",
                                             "stroke",
                                             "stroke-dasharray",
                                             "text-anchor",
                                             "d",
                                             "x",
                                             "y",
                                             "x1",
                                             "y1",
                                             "x2",
                                             "y2",
                                             "cx",
                                             "cy",
                                             "r"};
  std::vector<std::string> open;
  for (std::size_t at = page.find('<'); at != std::string_view::npos; at = page.find('<', at + 1)) {
    const std::size_t end = page.find('>', at);
    if (end == std::string_view::npos) return "a tag without an end";
    std::string_view tag = page.substr(at + 1, end - at - 1);
    if (tag.find('<') != std::string_view::npos) return text("a tag within a tag: ", tag);
    const bool closes = tag.starts_with('/');
    if (closes) tag.remove_prefix(1);
    const std::string_view name = tag.substr(0, tag.find_first_of(" /"));
    if (std::find(kElements.begin(), kElements.end(), name) == kElements.end()) return text("an element ", name);
    if (closes) {
      if (open.empty() || open.back() != name) return text("</", name, "> closes nothing");
      open.pop_back();
    } else if (!tag.ends_with('/') && name != "!DOCTYPE") {
      open.emplace_back(name);
    }
    if (name == "!DOCTYPE") continue;
    std::string_view rest = tag.substr(name.size());
    while (rest.starts_with(' ')) {
      const std::size_t quote = rest.find("=\"");
      const std::size_t last = quote == std::string_view::npos ? quote : rest.find('"', quote + 2);
      if (last == std::string_view::npos) return text("an attribute without quotes in ", tag);
      const std::string_view attribute = rest.substr(1, quote - 1);
      if (std::find(kAttributes.begin(), kAttributes.end(), attribute) == kAttributes.end())
        return text("an attribute ", attribute);
      rest.remove_prefix(last + 1);
    }
    if (!rest.empty() && rest != "/") return text("more than attributes in ", tag);
  }
  return open.empty() ? "" : text("<", open.back(), "> is not closed");
}

// Bytes that XML does not have, and & that begins none of our entities.
std::string what_is_no_text(std::string_view page) {
  for (std::size_t i = 0; i < page.size(); ++i) {
    const auto byte = static_cast<unsigned char>(page[i]);
    if ((byte < 0x20 && byte != '\n' && byte != '\t') || byte == 0x7F) return text("byte ", static_cast<int>(byte));
    if (byte != '&') continue;
    const std::string_view entity = page.substr(i, page.find(';', i) - i + 1);
    if (entity != "&amp;" && entity != "&lt;" && entity != "&gt;" && entity != "&quot;" && entity != "&apos;" &&
        entity != "&#10;") {
      return text("an entity ", entity);
    }
  }
  return "";
}

void expect_harmless(const std::string& page) {
  EXPECT_EQ(what_is_not_ours(page), "");
  EXPECT_EQ(what_is_no_text(page), "");
  EXPECT_EQ(printable(page).find("\\x"), printable(page).find("\\x0a"));
  EXPECT_EQ(count_of(page, "<title>Drill "), 1U);
  EXPECT_NE(page.find("content=\"default-src 'none'; style-src 'unsafe-inline'\"/>"), std::string::npos);
}

}  // namespace

TEST(DrillPage, LoadsNothingAndHasNoScript) {
  const std::string page = page_of(five_faults());
  expect_harmless(page);
  EXPECT_EQ(page.find("url("), std::string::npos);
  EXPECT_EQ(page.find("@import"), std::string::npos);
  EXPECT_EQ(page.find("style=\""), std::string::npos);
  EXPECT_EQ(count_of(page, "://"), count_of(page, "xmlns=\"http://www.w3.org/"));
}

TEST(DrillPage, StaysSoWhateverBytesAreSaid) {
  for (const std::string_view bytes : kHostileBytes) {
    SCOPED_TRACE(printable(bytes));
    expect_harmless(page_of(hostile_drill(bytes)));
  }
  expect_harmless(page_of(hostile_drill(std::string(100'000, '<'))));
  const std::uint32_t seed = std::random_device{}();
  SCOPED_TRACE(text("seed ", seed));
  std::mt19937 random(seed);
  for (int run = 0; run < 20; ++run) {
    std::string bytes(random() % 400, '\0');
    for (char& byte : bytes) byte = static_cast<char>(random() % 256);
    expect_harmless(page_of(hostile_drill(bytes)));
  }
}

TEST(DrillPage, IsThereBeforeAnythingWas) {
  expect_harmless(page_of({}));
  SampleDrill cut = five_faults();
  cut.record.control_to = cut.record.faults_to = {};
  cut.record.blows.clear();
  cut.report.faults.clear();
  cut.record.cut_short = "the job ended by itself";
  const std::string page = page_of(cut);
  expect_harmless(page);
  EXPECT_NE(page.find("Cut short: the job ended by itself"), std::string::npos);
}

TEST(DrillPage, HasEachFactInWordsToo) {
  SampleDrill drill = five_faults();
  drill.report.verdict = DrillVerdict::kFailed;
  drill.report.bounds[1].met = false;
  drill.report.bounds[2].met = false;
  drill.report.bounds[2].value.reset();
  drill.report.faults[0].note = "not seen";
  drill.report.invariants[1].broken = {"step 40 after 60"};
  drill.report.invariants.push_back({.label = "I16", .words = "nothing is left", .checks = 0, .broken = {}});
  drill.record.blows[1].end = BlowEnd::kInert;
  drill.record.blows[1].why = "never felt";
  const std::string page = page_of(drill);
  for (const char* words :
       {"Drill five-faults: <span class=\"bad\">✗ failed",
        "Not as expected: ours_p95.process, ttr_p95.host, I20, fault 1.", "✓ met", "✗ not met", "no evidence",
        "✗ broken", "step 40 after 60", "✓ held", "○ not checked", "✗ wrong: not seen", "○ inert: never felt",
        "✓ as expected", ">control</text>", "stop and start everything", "--seed 42", "<code>ours_p95.process</code>",
        "v7: nothing but work", "past step 412"}) {
    EXPECT_NE(page.find(words), std::string::npos) << words;
  }
  // Each picture is read aloud as a sentence, once for each width; boxes of colour stand beside their words.
  EXPECT_EQ(count_of(page, "<svg "),
            count_of(page, "role=\"img\" aria-label=\"") + count_of(page, "aria-hidden=\"true\""));
  EXPECT_EQ(count_of(page, "class=\"wide picture\""), count_of(page, "class=\"narrow picture\" hidden=\"\""));
}

TEST(DrillPage, IsSmallHoweverMuchWas) {
  const std::string page = page_of(many_faults(60, 32));
  EXPECT_LE(page.size(), 300'000U);
  expect_harmless(page);
  // What is more than the timeline has room for is counted in words.
  const std::string large = page_of(many_faults(600, 400));
  EXPECT_LE(large.size(), 3'000'000U);
  EXPECT_NE(large.find("more hosts in the table alone"), std::string::npos);
}

TEST(DrillPage, DrawsManyTimesAsAHistogram) {
  EXPECT_EQ(page_of(many_faults(49, 8)).find("<title>1 fault, "), std::string::npos);
  EXPECT_NE(page_of(many_faults(60, 8)).find(" faults, 0.00"), std::string::npos);
}

TEST(PageText, IsCutBetweenCharacters) {
  EXPECT_EQ(page_text("abcdef", 4), "abcd…");
  EXPECT_EQ(page_text("abcdéf", 5), "abcd…");
  EXPECT_EQ(page_text("a\xe2\x80\x8f<", 10), "a\\u200f&lt;");
  EXPECT_EQ(name_end("gpu-node-0123", 8), "…de-0123");
  EXPECT_EQ(name_end("v1", 8), "v1");
  EXPECT_EQ(name_end("ééééé", 3), "…éé");
  EXPECT_EQ(decimals(12.04), "12");
  EXPECT_EQ(decimals(-0.01), "0");
  EXPECT_EQ(decimals(0.97, 2), "0.97");
}

// For pages_test.py, which reads them as a browser and as a reader of XML do; and to look at.
TEST(DrillPage, IsWrittenWhereItIsAskedFor) {
  const char* folder = std::getenv("MONARCH_DRILL_PAGES");
  if (folder == nullptr) return;
  const auto write = [&](std::string_view name, const SampleDrill& drill) {
    std::ofstream(text(folder, "/", name, ".html")) << page_of(drill);
  };
  write("five-faults", five_faults());
  write("many", many_faults(60, 32));
  for (std::size_t i = 0; i < kHostileBytes.size(); ++i) write(text("hostile-", i), hostile_drill(kHostileBytes[i]));
}

}  // namespace monarch::drill
