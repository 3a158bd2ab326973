#include "transport/zmq/admission.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

CurvePublicKey key(std::uint8_t fill) {
  std::array<std::uint8_t, kCurveKeyBytes> bytes{};
  bytes.fill(fill);
  return CurvePublicKey(bytes);
}

Instant at(int milliseconds) { return Instant::since_boot(Duration::milliseconds(milliseconds)); }

using Answers = std::vector<Admission::Answer>;

TEST(Admission, AnswersAKnownKeyAtOnce) {
  Admission admission({});
  EXPECT_TRUE(admission.replace({.users = {{key(1), "worker/h1"}}, .denied = {}}).empty());
  EXPECT_EQ(admission.ask(7, key(1), at(0)), (Admission::Answer{7, "worker/h1"}));
  EXPECT_EQ(admission.next_due(), Instant::never());
}

TEST(Admission, KeepsAnUnknownKeyUntilItsTimeIsOver) {
  Admission admission({.unknown_key_wait = Duration::seconds(1)});
  EXPECT_EQ(admission.ask(1, key(1), at(0)), std::nullopt);
  EXPECT_EQ(admission.ask(2, key(2), at(100)), std::nullopt);
  EXPECT_EQ(admission.next_due(), at(1'000));
  EXPECT_TRUE(admission.expire(at(999)).empty());
  EXPECT_EQ(admission.expire(at(1'000)), (Answers{{1, std::nullopt}}));
  EXPECT_EQ(admission.next_due(), at(1'100));
}

TEST(Admission, ANewTableAnswersThoseItNamesAndLeavesTheOthersWaiting) {
  Admission admission({.unknown_key_wait = Duration::seconds(1)});
  EXPECT_EQ(admission.ask(1, key(1), at(0)), std::nullopt);
  EXPECT_EQ(admission.ask(2, key(2), at(0)), std::nullopt);
  EXPECT_EQ(admission.ask(3, key(3), at(0)), std::nullopt);
  EXPECT_EQ(admission.replace({.users = {{key(2), "worker/h2"}}, .denied = {key(3)}}),
            (Answers{{2, "worker/h2"}, {3, std::nullopt}}));
  EXPECT_EQ(admission.expire(at(1'000)), (Answers{{1, std::nullopt}}));
}

TEST(Admission, ATableReplacesTheOneBefore) {
  Admission admission({});
  EXPECT_TRUE(admission.replace({.users = {{key(1), "worker/h1"}}, .denied = {}}).empty());
  EXPECT_TRUE(admission.replace({.users = {{key(2), "worker/h2"}}, .denied = {}}).empty());
  EXPECT_EQ(admission.ask(1, key(1), at(0)), std::nullopt);
}

TEST(Admission, RefusesADeniedKeyAtOnceThoughATableAllowsIt) {
  Admission admission({});
  EXPECT_TRUE(admission.replace({.users = {{key(1), "worker/h1"}}, .denied = {key(1)}}).empty());
  EXPECT_EQ(admission.ask(1, key(1), at(0)), (Admission::Answer{1, std::nullopt}));
}

TEST(Admission, RefusesAtOnceWhenTooManyWait) {
  Admission admission({.waiting = 2});
  EXPECT_EQ(admission.ask(1, key(1), at(0)), std::nullopt);
  EXPECT_EQ(admission.ask(2, key(2), at(0)), std::nullopt);
  EXPECT_EQ(admission.ask(3, key(3), at(0)), (Admission::Answer{3, std::nullopt}));
}

}  // namespace
}  // namespace monarch
