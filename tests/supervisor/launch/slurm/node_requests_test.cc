#include "supervisor/launch/slurm/node_requests.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>

#include "tests/supervisor/client/scratch.h"
#include "tests/supervisor/launch/slurm/guarded_calls.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

constexpr HostId kNode(4);

// Scripts in the place of Slurm's commands; sbatch has an answer once the test gives one.
class AskedNodes : public GuardedCallsTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    open_calls();
    (void)scratch_.script("bin/scontrol", "echo 'JobId=7 JobState=RUNNING'");
    (void)scratch_.script("bin/squeue", "true");
    (void)scratch_.script(
        "bin/sbatch", R"(touch "$HOME/asked"; until [ -s "$HOME/answer" ]; do sleep 0.01; done; cat "$HOME/answer")");
    (void)scratch_.script("bin/scancel", R"(echo "$@" >>"$HOME/cancelled")");
    NodeRequestsOptions options{
        .uuid = "u",
        .name = "demo-1a2b",
        .term = Term(1),
        .like = 7,
        .wish = {},
        .environment = {text("HOME=", scratch_.path()), text("PATH=", scratch_.path(), "/bin:/usr/bin:/bin")}};
    requests_ = std::make_unique<NodeRequests>(loop(), *calls_, std::move(options),
                                               NodeRequestsHandlers{.on_granted = [](HostId, const GrantedNode&) {},
                                                                    .on_refused = [](HostId, const LaunchFailure&) {},
                                                                    .on_waiting = [](HostId, const std::string&) {}});
  }

  // The loop wakes up for nothing that a script does.
  bool sees(const std::function<bool()>& done) {
    for (int i = 0; i < 500 && !done(); ++i) (void)run_until(done, Duration::milliseconds(20));
    return done();
  }

  std::string cancelled() const {
    std::ifstream file(scratch_.path() + "/cancelled");
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }

  Scratch scratch_;
  std::unique_ptr<NodeRequests> requests_;
};

TEST_F(AskedNodes, AreTakenOutOfTheQueueThatAreGivenBackWhileTheyAreSubmitted) {
  requests_->ask(kNode, {});
  ASSERT_TRUE(sees([&] { return std::filesystem::exists(scratch_.path() + "/asked"); }));
  bool returned = false;
  requests_->give_back(kNode, [&] { returned = true; });
  EXPECT_FALSE(run_until([&] { return returned; }, Duration::milliseconds(600))) << "squeue does not know of it yet";
  (void)scratch_.write("answer", "12\n");
  ASSERT_TRUE(run_until([&] { return returned; }));
  ASSERT_TRUE(sees([&] { return !cancelled().empty(); }));
  EXPECT_EQ(cancelled(), "12\n");
}

}  // namespace
}  // namespace monarch
