#include "transport/process/shell.h"

#include "tests/transport/process/process_fixture.h"

namespace monarch {
namespace {

class ShellsOf : public ProcessTest {
 protected:
  // How many are waited for, once there are at least so many.
  std::size_t awaited(const std::string& line, std::size_t least) {
    const Child* child = start(shell(line));
    std::size_t found = 0;
    (void)until([&] { return read_there() && (found = awaited_by_shell(child->pid()).size()) >= least; });
    return found;
  }

 private:
  bool read_there() const { return std::filesystem::exists(path("there")); }
};

TEST_F(ShellsOf, AreFoundWithWhatTheyWaitFor) {
  EXPECT_EQ(awaited("cd " + path("") + "; touch there; sleep 1000; true", 1), 1U);
}

TEST_F(ShellsOf, AreFoundWithinShells) {
  EXPECT_EQ(awaited("cd " + path("") + "; touch there; sh -c 'sleep 1000; true'; true", 2), 2U);
}

TEST_F(ShellsOf, AreNoneWhereTheProgramHasReplacedTheShell) {
  EXPECT_EQ(awaited("cd " + path("") + "; sleep 1000 & touch there; exec sleep 1001", 0), 0U)
      << "what it has started besides is no part of it";
}

}  // namespace
}  // namespace monarch
