#include "cli/show/junit_suite.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "transport/base/text.h"

namespace monarch {

namespace {

std::string attributes(const JunitCounts& counts) {
  return text(" tests=\"", counts.tests, "\" failures=\"", counts.failures, "\" errors=\"", counts.errors,
              "\" skipped=\"", counts.skipped, "\"");
}

std::string seconds_text(Duration took) {
  std::array<char, 32> shown{};
  (void)std::snprintf(shown.data(), shown.size(), "%.3f", std::max(0.0, took.count_seconds()));  // it fits
  return shown.data();
}

std::string element(std::string_view name, const JunitEnd& end) {
  return text("<", name, " type=\"", xml_text(end.type), "\" message=\"", xml_text(end.message), "\"",
              end.body.empty() ? std::string("/>") : text(">", xml_text(end.body), "</", name, ">"));
}

}  // namespace

void JunitSuite::add(std::string_view of, std::string_view name, std::string_view inside) {
  ++counts_.tests;
  cases_ += text("    <testcase classname=\"", xml_text(of), "\" name=\"", xml_text(name), "\"");
  cases_ += inside.empty() ? std::string("/>\n") : text(">", inside, "</testcase>\n");
}

void JunitSuite::passed(std::string_view of, std::string_view name) { add(of, name, ""); }

void JunitSuite::failed(std::string_view of, std::string_view name, const JunitEnd& end) {
  ++counts_.failures;
  add(of, name, element("failure", end));
}

void JunitSuite::erred(std::string_view of, std::string_view name, const JunitEnd& end) {
  ++counts_.errors;
  add(of, name, element("error", end));
}

void JunitSuite::skipped(std::string_view of, std::string_view name, std::string_view message) {
  ++counts_.skipped;
  add(of, name, text("<skipped message=\"", xml_text(message), "\"/>"));
}

std::string JunitSuite::xml(Duration took, WallTime began) const {
  return text("  <testsuite name=\"", xml_text(name_), "\"", attributes(counts_), " time=\"", seconds_text(took),
              "\" timestamp=\"", to_text(began), "\">\n", cases_, "  </testsuite>\n");
}

std::string junit_file(std::string_view name, const std::vector<JunitSuite>& suites, Duration took, WallTime began) {
  JunitCounts all;
  std::string inside;
  for (const JunitSuite& suite : suites) {
    all.tests += suite.counts().tests;
    all.failures += suite.counts().failures;
    all.errors += suite.counts().errors;
    all.skipped += suite.counts().skipped;
    inside += suite.xml(took, began);
  }
  return text("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"", xml_text(name), "\"", attributes(all),
              " time=\"", seconds_text(took), "\">\n", inside, "</testsuites>\n");
}

}  // namespace monarch
