#include "transport/zmq/curve.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace monarch {
namespace {

TEST(CurveKeyPair, IsDerivedAgainFromItsSecret) {
  auto made = make_curve_key_pair();
  ASSERT_TRUE(made.ok());
  auto kept = CurveSecretKey::from_bytes(made->secret_key.bytes());
  ASSERT_TRUE(kept.ok());
  const auto derived = curve_key_pair_of(std::move(kept).value());
  ASSERT_TRUE(derived.ok());
  EXPECT_EQ(derived->public_key, made->public_key);
  EXPECT_EQ(derived->secret_key.bytes(), made->secret_key.bytes());
}

TEST(CurveKeyPair, EachIsAnother) {
  const auto first = make_curve_key_pair();
  const auto second = make_curve_key_pair();
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_NE(first->public_key, second->public_key);
  EXPECT_NE(first->secret_key.bytes(), second->secret_key.bytes());
}

// The vector of RFC 26 and zmq_curve_keypair(3).
TEST(CurveKeyPair, AgreesWithTheManualsExample) {
  auto secret = CurveSecretKey::parse("JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6");
  ASSERT_TRUE(secret.ok());
  const auto pair = curve_key_pair_of(std::move(secret).value());
  ASSERT_TRUE(pair.ok());
  EXPECT_EQ(pair->public_key.to_text(), "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7");
}

TEST(CurvePublicKey, SurvivesItsText) {
  const auto pair = make_curve_key_pair();
  ASSERT_TRUE(pair.ok());
  const std::string z85 = pair->public_key.to_text();
  EXPECT_EQ(z85.size(), kCurveTextBytes);
  const auto parsed = CurvePublicKey::parse(z85);
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(*parsed, pair->public_key);
}

TEST(CurvePublicKey, RefusesWhatIsNoKey) {
  for (const std::string& bad : {std::string(), std::string(39, 'a'), std::string(41, 'a'), std::string(40, ' '),
                                 std::string(40, '\xff'), std::string(40, '\0'), std::string(40, '#')}) {
    const auto parsed = CurvePublicKey::parse(bad);
    ASSERT_FALSE(parsed.ok()) << bad;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalid);
  }
  EXPECT_FALSE(CurvePublicKey::from_bytes(std::string(31, 'a')).ok());
}

TEST(CurveSecretKey, DoesNotShowWhatItRefuses) {
  const auto parsed = CurveSecretKey::parse("secret but too short");
  ASSERT_FALSE(parsed.ok());
  EXPECT_EQ(parsed.error().message.find("secret"), std::string::npos);
}

// VmFlags of proc_pid_smaps(5): dd is MADV_DONTDUMP.
TEST(CurveSecretKey, IsLeftOutOfDumpsOfCore) {
  const auto secret = CurveSecretKey::parse("JTKVSB%%)wK0E.X)V>+}o?pNmC{O&4W4b!Ni{Lh6");
  ASSERT_TRUE(secret.ok());
  const auto address = reinterpret_cast<std::uintptr_t>(secret->bytes().data());
  std::ifstream maps("/proc/self/smaps");
  bool here = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    char dash = 0;
    std::istringstream range(line);
    if (range >> std::hex >> from >> dash >> to && dash == '-') here = from <= address && address < to;
    if (!here || !line.starts_with("VmFlags:")) continue;
    EXPECT_NE((line + " ").find(" dd "), std::string::npos) << line;
    return;
  }
  GTEST_SKIP() << "/proc/self/smaps does not tell";
}

TEST(CurveSecretKey, IsMovedAndNeverCopied) {
  static_assert(!std::is_copy_constructible_v<CurveSecretKey> && !std::is_copy_assignable_v<CurveSecretKey>);
  auto secret = CurveSecretKey::from_bytes(std::string(32, 's'));
  ASSERT_TRUE(secret.ok());
  const char* const place = secret->bytes().data();
  const CurveSecretKey moved = std::move(*secret);
  EXPECT_EQ(moved.bytes().data(), place);
}

}  // namespace
}  // namespace monarch
