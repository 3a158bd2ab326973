#include "worker/core/vault/vault_question.h"

#include <gtest/gtest.h>

#include <string>

namespace monarch {
namespace {

const std::string kDigest(64, 'a');

std::string question(const std::string& lines) {
  return "VAULT=load\nMESH=trainer\nRANK=3\nGENERATION=4\nSTEP=100\nDIGEST=" + kDigest + lines;
}

std::string why_not(const std::string& message) {
  const auto parsed = parse_vault_question(message);
  return parsed.ok() ? "" : parsed.error().message;
}

TEST(VaultQuestion, NamesACheckpointAndWhoHasIt) {
  const auto parsed = parse_vault_question(question("\nHOSTS=0,4\nNOT=4"));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(*parsed, (VaultQuestion{.kind = VaultAsks::kLoad,
                                    .mesh = "trainer",
                                    .rank = Rank(3),
                                    .generation = 4,
                                    .step = 100,
                                    .digest = kDigest,
                                    .hosts = {HostId(0), HostId(4)},
                                    .not_from = {HostId(4)}}));
}

TEST(VaultQuestion, IsASaveWithoutHosts) {
  std::string save = question("");
  save.replace(6, 4, "save");
  const auto parsed = parse_vault_question(save);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(parsed->kind, VaultAsks::kSave);
  EXPECT_TRUE(parsed->hosts.empty());
}

TEST(VaultQuestion, SaysWhatIsWrong) {
  EXPECT_EQ(why_not(""), "VAULT is save or load");
  EXPECT_EQ(why_not("VAULT=keep"), "VAULT is save or load");
  EXPECT_EQ(why_not("VAULT=load"), "MESH is the name of a mesh");
  EXPECT_EQ(why_not("VAULT=load\nMESH=a\x01"), "MESH is the name of a mesh");
  EXPECT_EQ(why_not("VAULT=load\nMESH=a\nRANK=4294967296"), "RANK is the number of a rank");
  EXPECT_EQ(why_not("VAULT=load\nMESH=a\nRANK=1\nGENERATION=-1"), "GENERATION is the number of a generation");
  EXPECT_EQ(why_not("VAULT=load\nMESH=a\nRANK=1\nGENERATION=1\nSTEP=1.5"), "STEP is the number of a step");
  EXPECT_EQ(why_not("VAULT=load\nMESH=a\nRANK=1\nGENERATION=1\nSTEP=1\nDIGEST=AB"),
            "DIGEST is the sha256 of the checkpoint, 64 hex digits in small letters");
  EXPECT_EQ(why_not(question("\nHOSTS=1,,2")), "HOSTS and NOT are at most 16 numbers of hosts");
  EXPECT_EQ(why_not(question("\nNOT=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16")),
            "HOSTS and NOT are at most 16 numbers of hosts");
  EXPECT_EQ(why_not(std::string(5'000, 'x')), "a question has at most 4096 bytes");
}

TEST(VaultAnswers, AreOneObjectEach) {
  EXPECT_EQ(vault_saved({HostId(0), HostId(4)}, ""), R"({"v":1,"ok":true,"hosts":[0,4]})");
  EXPECT_EQ(vault_saved({HostId(0)}, "h3 is \"away\""), R"({"v":1,"ok":true,"hosts":[0],"short":"h3 is \"away\""})");
  EXPECT_EQ(vault_found(HostId(4), 12), R"({"v":1,"ok":true,"host":4,"bytes":12})");
  EXPECT_EQ(vault_denied("full", "no"), R"({"v":1,"ok":false,"full":"no"})");
  EXPECT_EQ(vault_error("what\n"), R"({"v":1,"error":"what?"})");
}

}  // namespace
}  // namespace monarch
