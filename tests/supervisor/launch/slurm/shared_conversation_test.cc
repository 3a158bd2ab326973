#include "supervisor/launch/slurm/shared_conversation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/supervisor/launch/talk/remote_orders.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr char kMarker[] = "monarch-remote 1 Linux x86_64 10.0.0.9";

class SharedTalk : public testing::Test {
 protected:
  void begin(const std::vector<std::string>& names) {
    std::vector<RemoteOrder> orders;
    for (const std::string& name : names) {
      orders.push_back(test_order());
      orders.back().mark.host_name = name;
      orders.back().bootstrap.clear();
    }
    names_ = names;
    talk_.emplace(std::move(orders));
  }
  void SetUp() override { begin({"h1", "h2", "h3"}); }

  void hear(const std::string& bytes) {
    talk_->on_output(bytes);
    collect();
  }
  void say(const std::string& name, const std::string& words) { hear(text('@', name, ' ', words, " \n")); }
  void all_say(const std::string& words) {
    for (const std::string& name : names_) say(name, words);
  }
  // Whoever is there gets a bootstrap of its name's own.
  void collect() {
    for (const SharedNews& news : talk_->take_news()) {
      const std::string& name = names_[news.node];
      if (std::holds_alternative<SharedPlaced>(news.word)) {
        placed_[name] = std::get<SharedPlaced>(news.word).address;
        talk_->give_bootstrap(news.node, "bootstrap of " + name);
      } else {
        EXPECT_TRUE(last_.emplace(name, news.word).second) << name << " had its last word before";
      }
    }
    for (const SharedTurn& turn : talk_->take_turns()) said_.push_back(turn.bytes + (turn.file ? "FILE" : ""));
  }
  std::vector<std::string> said() { return std::exchange(said_, {}); }
  void start_all() {
    all_say(kMarker);
    all_say("there");
    all_say("have /w");
    (void)said();
  }
  const SharedAnswer& answer(const std::string& name) { return std::get<SharedAnswer>(last_.at(name)); }
  const LaunchFailure& failure(const std::string& name) { return std::get<LaunchFailure>(answer(name).answer); }
  bool left(const std::string& name) { return std::holds_alternative<SharedLeft>(last_.at(name)); }
  bool again(const std::string& name) { return std::get<SharedLeft>(last_.at(name)).again; }

  const std::string has_ = has_request(test_order().file);
  const std::string each_ = each_request(test_order().file, kTestMark.job_uuid);
  std::vector<std::string> names_;
  std::optional<SharedConversation> talk_;
  std::map<std::string, std::string> placed_;
  std::map<std::string, decltype(SharedNews::word)> last_;
  std::vector<std::string> said_;
};

TEST_F(SharedTalk, BeginsWorkersOnAllNodesOnceAllHaveShownThemselves) {
  say("h2", kMarker);
  say("h1", kMarker);
  EXPECT_THAT(said(), IsEmpty()) << "srun may yet end all of them for the sake of h3";
  say("h3", kMarker);
  EXPECT_EQ(placed_["h3"], "10.0.0.9");
  EXPECT_THAT(said(), ElementsAre(has_));
  all_say("there");
  EXPECT_THAT(said(), ElementsAre(each_));
  all_say("have /w");
  EXPECT_THAT(said(), IsEmpty()) << "before the worker itself is there";
  say("h2", "ready");
  EXPECT_THAT(said(), ElementsAre(step_lines("h2", "bootstrap of h2")));
  say("h1", "ready");
  say("h3", "ready");
  for (const std::string& name : names_) hear(step_lines(name, test_reply()));
  for (const std::string& name : names_) {
    EXPECT_EQ(std::get<BootstrapReply>(answer(name).answer).public_key, "the key");
  }
  EXPECT_TRUE(talk_->over());
}

TEST_F(SharedTalk, TellsApartWhatIsCutAndMixed) {
  std::string all = "\nsome prologue says hello\n";
  for (const std::string& name : names_) all += text('@', name, ' ', kMarker, "\n");
  for (const char byte : all) hear(std::string(1, byte));
  EXPECT_EQ(placed_.size(), 3U);
  all_say("there");
  all_say("have /w");
  all_say("ready");
  const std::string reply = test_reply() + std::string(2'000, '\0');  // of several lines
  std::vector<std::string> pieces;
  for (const std::string& name : names_) {
    const std::string lines = step_lines(name, reply);
    for (std::size_t at = 0; at < lines.size(); at = lines.find('\n', at) + 1) {
      pieces.push_back(lines.substr(at, lines.find('\n', at) + 1 - at));
    }
  }
  ASSERT_GT(pieces.size(), 6U);
  const std::size_t each = pieces.size() / 3;
  for (std::size_t i = 0; i < each; ++i) hear(pieces[2 * each + i] + pieces[i] + pieces[each + i]);
  EXPECT_EQ(last_.size(), 3U);
  EXPECT_THAT(failure("h1").message, HasSubstr("the worker's answer")) << "a frame with more behind it is none";
}

TEST_F(SharedTalk, SendsTheFileForOneAndThenForWhoeverLacksItStill) {
  all_say(kMarker);
  (void)said();
  say("h1", "there");
  say("h2", "missing");
  say("h3", "missing");
  EXPECT_THAT(said(), ElementsAre(fill_request(test_order().file, "h2") + "FILE", has_));
  say("h2", "stored");
  all_say("there");
  EXPECT_THAT(said(), ElementsAre(each_)) << "they share a home";
}

TEST_F(SharedTalk, SendsTheFileTwiceAtMostAndLeavesWhoLacksItToAStepOfItsOwn) {
  all_say(kMarker);
  all_say("missing");
  (void)said();
  say("h1", "there");
  say("h2", "missing");
  say("h3", "missing");
  EXPECT_THAT(said(), ElementsAre(fill_request(test_order().file, "*") + "FILE", has_));
  say("h1", "there");
  say("h2", "there");
  say("h3", "missing");
  EXPECT_THAT(said(), ElementsAre(each_));
  EXPECT_TRUE(left("h3"));
  EXPECT_FALSE(again("h3"));
  EXPECT_EQ(last_.size(), 1U);
}

TEST_F(SharedTalk, FailsOneWhoseHomeIsFullInItsOwnWords) {
  all_say(kMarker);
  all_say("missing");
  (void)said();
  say("h2", "failed disk-full No space left on device");
  EXPECT_EQ(failure("h2").kind, LaunchFailureKind::kDiskFull);
  EXPECT_THAT(failure("h2").message, HasSubstr("No space left on device"));
  EXPECT_FALSE(answer("h2").may_run);
  say("h1", "there");
  say("h3", "there");
  EXPECT_THAT(said(), ElementsAre(each_));
  EXPECT_EQ(last_.size(), 1U);
}

TEST_F(SharedTalk, FailsOneOfAnotherArchitecture) {
  say("h2", "monarch-remote 1 Linux riscv64 -");
  EXPECT_EQ(failure("h2").kind, LaunchFailureKind::kArchitecture);
  EXPECT_FALSE(placed_.contains("h2"));
  say("h1", kMarker);
  say("h3", kMarker);
  EXPECT_THAT(said(), ElementsAre(has_));
}

TEST_F(SharedTalk, GivesAllUpWhereOneDoesNotShowItself) {
  say("h1", kMarker);
  say("h3", kMarker);
  EXPECT_EQ(talk_->awaited(), "h2");
  talk_->on_silence();
  collect();
  EXPECT_TRUE(talk_->over());
  EXPECT_TRUE(again("h1") && again("h3")) << "they may try without h2";
  EXPECT_FALSE(again("h2"));
  EXPECT_THAT(said(), IsEmpty()) << "nothing was started anywhere";
}

TEST_F(SharedTalk, LeavesTheSilentAloneOnceAllHaveShownThemselves) {
  all_say(kMarker);
  say("h1", "there");
  say("h3", "there");
  (void)said();
  talk_->on_silence();
  collect();
  EXPECT_TRUE(left("h2"));
  EXPECT_FALSE(again("h2"));
  EXPECT_THAT(said(), ElementsAre(each_));
  say("h2", "there");
  say("h1", "have /w");
  say("h1", "ready");
  say("h3", "have /w");
  EXPECT_EQ(said().size(), 1U);
  talk_->on_silence();
  collect();
  EXPECT_EQ(failure("h1").kind, LaunchFailureKind::kTimeout);
  EXPECT_TRUE(answer("h1").may_run) << "it was told to start";
  EXPECT_TRUE(left("h3")) << "nothing was said to it";
  say("h3", "ready");
  EXPECT_THAT(said(), IsEmpty());
  EXPECT_TRUE(talk_->over());
}

TEST_F(SharedTalk, TellsWhoWasToldToStartWhenTheStepEnds) {
  start_all();
  say("h1", "ready");
  (void)said();
  talk_->on_end("srun: error: h3: task 2: Killed\nsrun: Terminating StepId=1.0\n");
  collect();
  EXPECT_TRUE(answer("h1").may_run);
  EXPECT_EQ(failure("h1").kind, LaunchFailureKind::kClosed);
  EXPECT_EQ(failure("h1").message,
            "the srun that it shares with other hosts ended before its worker answered: srun: Terminating StepId=1.0");
  EXPECT_THAT(failure("h1").words, HasSubstr("task 2: Killed"));
  EXPECT_TRUE(left("h2") && left("h3"));
}

TEST_F(SharedTalk, SaysAWorkersOwnError) {
  start_all();
  all_say("ready");
  hear(step_lines("h2", test_reply(MONARCH_VERSION, "no interface ib0", BootstrapRefusal::kInterface)));
  EXPECT_EQ(failure("h2").kind, LaunchFailureKind::kInterface);
  EXPECT_EQ(failure("h2").message, "no interface ib0");
  hear(step_lines("h3", ""));
  EXPECT_THAT(failure("h3").message, HasSubstr("without an answer"));
  hear("@h1 =zz\n");
  EXPECT_THAT(failure("h1").message, HasSubstr("the worker's answer"));
}

TEST_F(SharedTalk, TakesNonsenseForNothing) {
  say("h1", "there");  // before it has shown itself
  say("h9", kMarker);  // nobody
  say("h1", "have /w");
  hear(std::string(100'000, 'x') + "@h1 " + kMarker + "\n");  // one line
  hear(text("@h1 ", kMarker, std::string(10'000, ' '), "\n"));
  EXPECT_TRUE(placed_.empty());
  all_say(kMarker);
  all_say(kMarker);
  (void)said();
  say("h1", "there");
  say("h1", "there");
  say("h1", "missing");
  say("h1", "ready");
  hear(step_lines("h1", test_reply()));
  EXPECT_THAT(said(), IsEmpty());
  EXPECT_TRUE(last_.empty());
  say("h2", "there");
  say("h3", "there");
  EXPECT_THAT(said(), ElementsAre(each_));
}

TEST_F(SharedTalk, GetsOnByWhatIsAwaitedAlone) {
  std::uint64_t before = talk_->progress();
  const auto got_on = [&] { return std::exchange(before, talk_->progress()) != before; };
  hear("no line of anybody\n");
  say("h2", "there");
  say("h9", kMarker);
  EXPECT_FALSE(got_on()) << "nobody has shown itself";
  all_say(kMarker);
  EXPECT_TRUE(got_on());
  all_say("there");
  EXPECT_TRUE(got_on());
  for (const char* word : {"there", "ready", "=00", "what"}) say("h1", word);
  EXPECT_FALSE(got_on()) << "nobody was asked for that";
  say("h1", "have /w");
  EXPECT_TRUE(got_on());
  say("h1", "ready");
  EXPECT_TRUE(got_on());
  talk_->on_silence();
  EXPECT_TRUE(got_on());
}

TEST_F(SharedTalk, GoesOnWithoutOneThatIsNotWantedAnyMore) {
  say("h1", kMarker);
  say("h2", kMarker);
  talk_->withdraw(2);
  collect();
  EXPECT_THAT(said(), ElementsAre(has_));
  say("h3", kMarker);
  EXPECT_FALSE(placed_.contains("h3"));
  say("h1", "there");
  talk_->withdraw(1);
  collect();
  EXPECT_THAT(said(), ElementsAre(each_));
  talk_->withdraw(0);
  EXPECT_TRUE(talk_->over());
  EXPECT_TRUE(last_.empty());
}

}  // namespace
}  // namespace monarch
