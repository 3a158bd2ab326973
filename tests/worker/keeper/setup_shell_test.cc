#include "worker/keeper/setup_shell.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>

namespace monarch {
namespace {

using Lines = std::vector<std::string>;

const Lines kBefore = {"PATH=/usr/bin:/bin", "A=before", "SHLVL=7", "PWD=/somewhere", "GONE=1"};

bool has(const Lines& lines, const std::string& line) {
  return std::find(lines.begin(), lines.end(), line) != lines.end();
}

Lines exported(const std::string& setup) {
  auto outcome = run_setup(setup, kBefore);
  const auto* lines = std::get_if<Lines>(&outcome);
  if (lines == nullptr) ADD_FAILURE() << setup << ": " << std::get<StepFailure>(outcome).detail;
  return lines == nullptr ? Lines{} : *lines;
}

StepFailure failed(const std::string& setup, const Lines& environment = kBefore) {
  auto outcome = run_setup(setup, environment);
  if (const auto* failure = std::get_if<StepFailure>(&outcome)) return *failure;
  ADD_FAILURE() << setup << " did not fail";
  return {};
}

TEST(SetupShell, ChangesAddsAndRemovesVariables) {
  Lines lines = exported("A=after; export B='two  words'; C=not_exported; unset GONE");
  std::sort(lines.begin(), lines.end());
  EXPECT_EQ(lines, (Lines{"A=after", "B=two  words", "PATH=/usr/bin:/bin", "PWD=/somewhere", "SHLVL=7"}));
}

TEST(SetupShell, KeepsNewlinesBytesAndEmptyValues) {
  const Lines lines = exported("export N=$'one\ntwo=2\n' R=$'\\xff\\x01' E=");
  EXPECT_TRUE(has(lines, "N=one\ntwo=2\n"));
  EXPECT_TRUE(has(lines, "R=\xff\x01"));
  EXPECT_TRUE(has(lines, "E="));
}

TEST(SetupShell, KeepsExportedFunctionsForTheNextShell) {
  const Lines lines = exported("module() { echo loaded \"$1\"; }; export -f module");
  EXPECT_TRUE(std::any_of(lines.begin(), lines.end(),
                          [](const std::string& line) { return line.starts_with("BASH_FUNC_module%%=() {"); }));
}

TEST(SetupShell, IsDoneWhereItExits) {
  EXPECT_TRUE(has(exported("export A=early; exit 0; export A=late"), "A=early"));
  EXPECT_TRUE(has(exported("export A=early\n(export A=inner; exit 3)\ntrue"), "A=early"));
  EXPECT_TRUE(has(exported("quit() { exit 0; }; export A=early; quit; export A=late"), "A=early"));
  EXPECT_TRUE(has(exported("set -euo pipefail; export A=early; exit; export A=late"), "A=early"));
}

TEST(SetupShell, MayHaveAnExitTrapOfItsOwn) {
  EXPECT_TRUE(has(exported("trap 'true' EXIT; export A=after"), "A=after"));
  EXPECT_TRUE(has(exported("trap 'true' EXIT; export A=after; exit 0"), "A=after"));
}

TEST(SetupShell, MayExportAllThatItSets) {
  for (const std::string& line : exported("set -a; B=1"))
    EXPECT_FALSE(line.find("__monarch") != std::string::npos) << line;
  EXPECT_TRUE(has(exported("set -euo pipefail; set -a; B=1"), "B=1"));
}

TEST(SetupShell, MayChangeThePathAndBreakIt) {
  EXPECT_TRUE(has(exported("export PATH=/opt/tool/bin"), "PATH=/opt/tool/bin"));
}

TEST(SetupShell, MayBeginAndEndWithAComment) {
  EXPECT_TRUE(has(exported("# load\nexport A=after # done"), "A=after"));
  EXPECT_TRUE(has(exported("export A=after\ncat <<END >/dev/null\ntext\nEND"), "A=after"));
}

TEST(SetupShell, FailsAsItsLastCommandDoesOrAsItExits) {
  EXPECT_EQ(failed("export A=1; false").exit_code, 1);
  EXPECT_EQ(failed("exit 42").exit_code, 42);
  EXPECT_EQ(failed("(exit 8)\nexit").exit_code, 8);
  EXPECT_EQ(failed("set -e; (exit 9); true").exit_code, 9);
  EXPECT_EQ(failed("if true; then").exit_code, 2) << "what bash says of a syntax error";
  EXPECT_EQ(failed("kill -KILL $$").exit_code, 128 + SIGKILL);
}

TEST(SetupShell, FailsWhereItReplacesItsShell) {
  const StepFailure failure = failed("exec true");
  EXPECT_EQ(failure.exit_code, 0);
  EXPECT_EQ(failure.error, ENODATA);
}

TEST(SetupShell, NeedsABash) {
  const StepFailure failure = failed("true", {"PATH=/nonesuch"});
  EXPECT_EQ(failure.error, ENOENT);
  EXPECT_EQ(failure.detail, "exec bash, which `setup` needs");
  EXPECT_EQ(failure.exit_code, 0);
}

}  // namespace
}  // namespace monarch
