#include "worker/core/commit_question.h"

#include <gtest/gtest.h>

#include <string>

#include "transport/base/json.h"
#include "worker/core/notify.h"

namespace monarch {
namespace {

TEST(Commit, IsAStepAndWhatWasWritten) {
  const auto asked = parse_commit("COMMIT=1200\nWHAT=sha256:0a1b\nX=1");
  ASSERT_TRUE(asked.ok());
  EXPECT_EQ(*asked, (CommitRequest{.step = 1'200, .what = "sha256:0a1b"}));
  EXPECT_EQ(*parse_commit("OF=gang\nCOMMIT=0\n"), (CommitRequest{.step = 0, .what = "", .whole = true}));
  EXPECT_FALSE(parse_commit("COMMIT=7\nOF=rank")->whole);
}

TEST(Commit, SaysWhatIsWrongWithIt) {
  const auto why = [](const std::string& message) { return parse_commit(message).error().message; };
  for (const char* step : {"", "-1", "1.5", "12 ", "18446744073709551616", "last"}) {
    EXPECT_EQ(why(std::string("COMMIT=") + step), "COMMIT is the number of a step") << step;
  }
  const std::string long_name(kCommitWhatBytes + 1, 'x');
  for (const std::string& what : {long_name, std::string("a\tb"), std::string("caf\xc3\xa9")}) {
    EXPECT_EQ(why("COMMIT=1\nWHAT=" + what), "WHAT is a digest or a name of at most 128 printable characters of ASCII");
  }
  EXPECT_EQ(why("COMMIT=1\nOF=mesh"), "OF is rank or gang");
  EXPECT_EQ(why("COMMIT=1\n" + std::string(kNotifyBytes, 'x')), "a question has at most 4096 bytes");
}

TEST(Commit, IsAnsweredByOneObjectOfJsonWhateverTheWords) {
  const CommitRequest asked{.number = 3, .step = 12};
  EXPECT_EQ(commit_answer(asked, {.committed = true}), R"({"v":1,"ok":true,"step":12,"gang":null})");
  EXPECT_EQ(commit_answer(asked, {.committed = true, .gang = 11}), R"({"v":1,"ok":true,"step":12,"gang":11})");
  const auto refused = parse_json(commit_answer(asked, {.why = "a \"b\" \\ \n\xff"}));
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->get_string("refused"), "a \"b\" \\ ??");
  EXPECT_EQ(parse_json(commit_error("no\n"))->get_string("error"), "no?");
}

TEST(Committed, IsReadFromTheEnvironmentThatTheRankWasStartedWith) {
  const std::map<std::string, std::string> gang = {{"MONARCH_COMMITTED_STEP", "40"},
                                                   {"MONARCH_COMMITTED_GENERATION", "2"}};
  EXPECT_EQ(committed_answer(gang, {{"MONARCH_COMMITTED_WHAT", "a\"b"}}),
            R"({"v":1,"step":40,"what":"a\"b","generation":2})");
  EXPECT_EQ(committed_answer({}, gang), R"({"v":1,"step":40,"what":"","generation":2})");
  EXPECT_EQ(committed_answer({}, {}), R"({"v":1,"step":null})");
  EXPECT_EQ(committed_answer({{"MONARCH_COMMITTED_STEP", "x"}}, {}), R"({"v":1,"step":null})");
}

}  // namespace
}  // namespace monarch
