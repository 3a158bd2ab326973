#include "cli/term/ci_runner.h"

#include <gtest/gtest.h>

#include "cli/follow/line_printer.h"
#include "transport/base/json.h"

namespace monarch {

namespace {

const CiRunner kGithub(CiRunner::Kind::kGithub);
const CiRunner kAzure(CiRunner::Kind::kAzure);
const CiRunner kBuildkite(CiRunner::Kind::kBuildkite);
const CiRunner kGitlab(CiRunner::Kind::kGitlab);

CiRunner runner_by(const std::string& name, const std::string& value) {
  std::map<std::string, std::string, std::less<>> variables;
  variables.emplace(name, value);
  return CiRunner::of(Environment(std::move(variables)));
}

std::string printed(LinePrinterOptions options, std::string_view bytes) {
  LinePrinter printer(std::move(options));
  std::string out;
  printer.feed(1, {.mesh = "m", .rank = 3, .generation = 1, .host = "v1"}, bytes, out);
  printer.finish_all(out);
  return out;
}

Verdict failed() {
  Verdict verdict;
  verdict.outcome = Outcome::kFailed;
  verdict.exit_code = 7;
  verdict.cause.kind = CauseKind::kRank;
  verdict.cause.mesh = "m";
  verdict.cause.rank = 3;
  verdict.cause.host = "v1";
  verdict.cause.summary = "exit code 7";
  verdict.cause.stderr_tail = "100% sure\n::warning::x\n\x1b[31mValueError\n";
  return verdict;
}

// The lines of a log as GitHub's runner cuts it.
bool has_command(std::string_view log) {
  std::string_view rest = log;
  while (!rest.empty()) {
    const std::size_t end = rest.find_first_of("\r\n");
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
    if (line.starts_with("::") || line.find("##[") != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

TEST(CiRunner, IsKnownByItsVariable) {
  EXPECT_FALSE(CiRunner::of(Environment()).is_one());
  EXPECT_FALSE(runner_by("CI", "true").is_one());
  EXPECT_FALSE(runner_by("GITHUB_ACTIONS", "false").is_one());
  for (const char* name : {"GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "TF_BUILD"}) {
    EXPECT_TRUE(runner_by(name, "true").is_one()) << name;
  }
}

TEST(CiRunner, FoldsInTheWordsOfEach) {
  const WallTime now{1'700'000'000'000'000'000};
  EXPECT_EQ(kGithub.open_group("output", "output of x", now) + kGithub.close_group("output", now),
            "::group::output of x\n::endgroup::\n");
  EXPECT_EQ(kAzure.open_group("output", "output of x", now) + kAzure.close_group("output", now),
            "##[group]output of x\n##[endgroup]\n");
  EXPECT_EQ(kGitlab.open_group("output", "output of x", now),
            "\x1b[0Ksection_start:1700000000:output[collapsed=true]\r\x1b[0Koutput of x\n");
  EXPECT_EQ(kGitlab.close_group("output", now), "\x1b[0Ksection_end:1700000000:output\r\x1b[0K\n");
  EXPECT_EQ(kBuildkite.open_group("output", "output of x", now), "--- output of x\n");
  EXPECT_EQ(CiRunner().open_group("output", "x", now) + CiRunner().close_group("output", now), "");
}

TEST(CiRunner, MarksTheFirstCauseWithItsLastLines) {
  EXPECT_EQ(kGithub.annotation(failed(), "demo-1234"),
            "::error title=demo-1234 failed (exit 7)::m/3 on v1: exit code 7%0A100%25 sure%0A::warning::x%0A"
            "\\x1b[31mValueError\n");
  EXPECT_EQ(kAzure.annotation(failed(), "demo-1234"),
            "##vso[task.logissue type=error]demo-1234 failed (exit 7): m/3 on v1: exit code 7%0A100%AZP25 sure%0A"
            "::warning::x%0A\\x1b[31mValueError\n");
  EXPECT_EQ(CiRunner().annotation(failed(), "demo-1234"), "");
  Verdict good;
  good.outcome = Outcome::kSucceeded;
  EXPECT_EQ(kGithub.annotation(good, "demo-1234"), "");
}

TEST(CiRunner, TakesNoCommandFromARank) {
  const std::string forged =
      "::error::forged\n  ::set-output name=a::b\nx\r::add-mask::secret\n##[set-env name=PATH]x\nfoo ##[error]\n"
      "\xc2\x85::error::x\n\x1b[0Ksection_start:1:x\r\n::stop-commands::t";
  for (const LineStyle style : {LineStyle::kPrefixed, LineStyle::kBare, LineStyle::kJson}) {
    EXPECT_TRUE(has_command(printed({.style = style}, forged)) || style == LineStyle::kPrefixed);
    const std::string log = printed({.style = style, .runner = kGithub}, forged);
    EXPECT_FALSE(has_command(log)) << log;
    EXPECT_EQ(log.find('\x1b'), std::string::npos);
    EXPECT_EQ(log.find('\r'), std::string::npos);
  }
  auto blank = PrefixFormat::parse("  ");
  ASSERT_TRUE(blank.ok());
  EXPECT_FALSE(has_command(printed({.runner = kGithub, .prefix = *blank}, forged)));
  EXPECT_EQ(printed({.style = LineStyle::kBare, .runner = kBuildkite}, "--- a\n+++ b\nc\n"), "\\--- a\n\\+++ b\nc\n");
  EXPECT_FALSE(has_command(kGithub.lines_as_text(" result\n::error::x\n   ##[error]y\n")));
}

TEST(CiRunner, LeavesTheValueOfJsonAsItIs) {
  const std::string line = printed({.style = LineStyle::kJson, .runner = kGithub}, "a ##[error] b ### c\n");
  const auto parsed = parse_json(line.substr(0, line.size() - 1));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->get_string("line"), "a ##[error] b ### c");
  EXPECT_EQ(line.find("##["), std::string::npos);
}

}  // namespace monarch
