#include "cli/away/viewer_frames.h"

#include <gtest/gtest.h>

namespace monarch {

namespace {

std::string header(std::uint8_t kind, std::uint64_t size) {
  std::string bytes(1, static_cast<char>(kind));
  for (int shift = 56; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>((size >> shift) & 0xFFU));
  return bytes;
}

std::string refusal(std::string_view bytes) {
  ViewerFrameReader reader;
  reader.feed(bytes);
  const auto frame = reader.next();
  return frame.ok() ? "" : frame.error().message;
}

}  // namespace

TEST(ViewerFrames, ComeOutAsTheyWentInHoweverTheyAreCut) {
  const std::string bytes = encode_frame(ViewerFrameKind::kOut, "hello\n") + encode_frame(ViewerFrameKind::kPing) +
                            encode_frame(ViewerFrameKind::kErr, std::string(kViewerPayloadBytes, 'x'));
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{4096}, bytes.size()}) {
    ViewerFrameReader reader;
    std::vector<ViewerFrame> frames;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      reader.feed(std::string_view(bytes).substr(at, step));
      for (;;) {
        auto frame = reader.next();
        ASSERT_TRUE(frame.ok());
        if (!*frame) break;
        frames.push_back(std::move(**frame));
      }
    }
    ASSERT_EQ(frames.size(), 3U);
    EXPECT_EQ(frames[0], (ViewerFrame{.kind = ViewerFrameKind::kOut, .payload = "hello\n"}));
    EXPECT_EQ(frames[1], (ViewerFrame{.kind = ViewerFrameKind::kPing, .payload = ""}));
    EXPECT_EQ(frames[2].payload.size(), kViewerPayloadBytes);
    EXPECT_TRUE(reader.empty());
  }
}

TEST(ViewerFrames, AreRefusedByTheirLengthBeforeAByteOfThemHasCome) {
  EXPECT_EQ(refusal(header(18, 1ULL << 63U)), "a frame of 9223372036854775808 bytes, of which 262144 are the most");
  EXPECT_EQ(refusal(header(18, kViewerPayloadBytes + 1)), "a frame of 262145 bytes, of which 262144 are the most");
  EXPECT_EQ(refusal(header(18, kViewerPayloadBytes)), "");
}

TEST(ViewerFrames, OfAKindThatNobodyKnowsAreRefusedByTheirFirstByte) {
  EXPECT_EQ(refusal("GET / HTTP/1.1"), "a frame of the unknown kind 71");
  EXPECT_EQ(refusal(std::string(1, '\0')), "a frame of the unknown kind 0");
  for (const int kind : {7, 15, 24, 255}) EXPECT_NE(refusal(std::string(1, static_cast<char>(kind))), "") << kind;
}

TEST(ViewerFrames, OrdersReadBackAsTheyWereWritten) {
  const ViewerOrder order{.words = {"status", "hello-3fa2", "--mesh=a b", ""},
                          .job = "hello-3fa2",
                          .variables = {{"TERM", "xterm"}, {"NO_COLOR", ""}},
                          .terminal = "terminal:80 pipe -",
                          .junit = true,
                          .artifacts = true,
                          .lingers = 60,
                          .token = "abc",
                          .taken = 1ULL << 40U};
  const auto read = decode_order(encode_order(order));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(*read, order);
}

TEST(ViewerFrames, OrdersHoldNothingThatNoCommandLineOrEnvironmentCanHave) {
  EXPECT_FALSE(decode_order("").ok());
  EXPECT_FALSE(decode_order("[]").ok());
  EXPECT_FALSE(decode_order(R"({"v":1})").ok());
  EXPECT_FALSE(decode_order(R"({"v":1,"words":["a\u0000b"],"variables":[]})").ok());
  EXPECT_FALSE(decode_order(R"({"v":1,"words":[7],"variables":[]})").ok());
  EXPECT_FALSE(decode_order(R"({"v":1,"words":[],"variables":[["A=B","c"]]})").ok());
  EXPECT_FALSE(decode_order(R"({"v":1,"words":[],"variables":[["A"]]})").ok());
  EXPECT_EQ(decode_order(R"({"v":2,"words":[],"variables":[]})").error().code, ErrorCode::kUnsupported);
}

TEST(ViewerFrames, FilesHaveNamesThatLeadNowhereElse) {
  const auto taken = [](const std::string& name) { return decode_file(encode_file({.name = name, .size = 3})).ok(); };
  EXPECT_TRUE(taken("junit.xml"));
  EXPECT_TRUE(taken("artifacts/spec.yaml"));
  EXPECT_TRUE(taken("artifacts/logs/trainer/0.1.out"));
  for (const char* name : {"", "/etc/passwd", "junit.xml/a", "artifacts", "artifacts/", "artifacts/../junit.xml",
                           "artifacts/a/../../b", "artifacts//a", "artifacts/.", "artifacts/a/", "artifacts/.bashrc",
                           "artifacts/a/b/c/d/e", "../junit.xml", "artifacts/a\nb", "artifacts/\x1b[2J", "spec.yaml"}) {
    EXPECT_FALSE(taken(name)) << name;
  }
  EXPECT_EQ(decode_file(encode_file({.name = "../x", .size = 1})).error().message,
            "a file called `../x`, which is none that was asked for");
}

TEST(ViewerFrames, EndsSayHowTheViewerEndedAndWhatIsKnownOfTheJob) {
  const ViewerEnd end{
      .exit_code = 7, .signal = 2, .job = {.life = "ended", .phase = "failed", .exit_code = 7, .running = 3}};
  const auto read = decode_end(encode_end(end));
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, end);
  EXPECT_FALSE(decode_end(R"({"v":1,"exit_code":256,"signal":0})").ok());
  EXPECT_FALSE(decode_end(R"({"v":1,"exit_code":-1,"signal":0})").ok());
  EXPECT_FALSE(decode_end(R"({"v":1,"exit_code":0,"signal":65})").ok());
}

TEST(ViewerFrames, NumbersAreAsManyAsWereAskedFor) {
  EXPECT_EQ(*decode_numbers(encode_numbers({15, 1ULL << 63U}), 2), (std::vector<std::uint64_t>{15, 1ULL << 63U}));
  EXPECT_FALSE(decode_numbers(encode_numbers({15}), 2).ok());
  EXPECT_FALSE(decode_numbers("1234567", 1).ok());
}

}  // namespace monarch
