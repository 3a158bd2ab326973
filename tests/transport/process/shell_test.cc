#include "transport/process/shell.h"

#include "tests/transport/process/process_fixture.h"

namespace monarch {
namespace {

class ShellsOf : public ProcessTest {
 protected:
  // Whether so many are waited for, at last.
  bool awaits(const std::string& line, std::size_t count) {
    const Child* child = start(shell("cd " + path("") + "; " + line));
    return until(
        [&] { return std::filesystem::exists(path("there")) && awaited_by_shell(child->pid()).size() == count; });
  }
};

TEST_F(ShellsOf, AreFoundWithWhatTheyWaitFor) { EXPECT_TRUE(awaits("touch there; sleep 1000; true", 1)); }

TEST_F(ShellsOf, AreFoundWithinShells) { EXPECT_TRUE(awaits("touch there; sh -c 'sleep 1000; true'; true", 2)); }

TEST_F(ShellsOf, AreNoneWhereTheProgramHasReplacedTheShell) {
  EXPECT_TRUE(awaits("sleep 1000 & touch there; exec sleep 1001", 0)) << "what it has started besides is no part of it";
}

}  // namespace
}  // namespace monarch
