// What a configuration file of OpenSSH says of a host.

#include "supervisor/launch/ssh/ssh_config.h"

#include <gtest/gtest.h>

#include "tests/supervisor/client/scratch.h"

namespace monarch {
namespace {

SshConfigAnswer answer(std::string_view lines, const std::string& host) {
  const auto config = parse_ssh_config(lines, "c");
  EXPECT_TRUE(config.ok()) << config.error().message;
  if (!config.ok()) return {};
  auto found = look_up(*config, host, "/home/a");
  EXPECT_TRUE(found.ok()) << found.error().message;
  return found.ok() ? *found : SshConfigAnswer();
}

std::string refusal(std::string_view lines, const std::string& host = "gpu7") {
  const auto config = parse_ssh_config(lines, "c");
  if (!config.ok()) return config.error().message;
  const auto found = look_up(*config, host, "/home/a");
  return found.ok() ? "" : found.error().message;
}

TEST(SshConfig, TakesTheFirstValueOfEachKeyword) {
  const auto found = answer(
      "User early\nHost gpu*\n  HostName %h.example\n  User late\n  Port=2222\n  IdentityFile ~/.ssh/%r\n"
      "Host *\n  Port 22\n  IdentityFile \"/k/a b\"\n",
      "gpu7");
  EXPECT_EQ(found.user, "early");
  EXPECT_EQ(found.host_name, "gpu7.example");
  EXPECT_EQ(found.port, 2222);
  EXPECT_EQ(found.identities, (std::vector<std::string>{"/home/a/.ssh/early", "/k/a b"}));
}

TEST(SshConfig, TellsWhetherKeysOtherThanThoseOfTheFilesAreTried) {
  EXPECT_FALSE(answer("User a\n", "gpu7").identities_only);
  EXPECT_TRUE(answer("IdentitiesOnly Yes\nIdentitiesOnly no\n", "gpu7").identities_only);
  EXPECT_FALSE(answer("IdentitiesOnly no\nIdentitiesOnly yes\n", "gpu7").identities_only);
  EXPECT_EQ(refusal("IdentitiesOnly perhaps\n"), "c:1: `perhaps` is neither yes nor no");
}

TEST(SshConfig, TellsCertificatesInOrder) {
  const auto found =
      answer("CertificateFile ~/a-cert.pub\nHost gpu*\n  CertificateFile /c/%n\n  CertificateFile none\n", "gpu7");
  EXPECT_EQ(found.certificates, (std::vector<std::string>{"/home/a/a-cert.pub", "/c/gpu7"}));
}

TEST(SshConfig, LeavesOutWhatAPatternExcludes) {
  const std::string_view lines = "Host gpu* !gpu9\n  User u\nMatch all\n  Port 7\n";
  EXPECT_EQ(answer(lines, "gpu1").user, "u");
  EXPECT_EQ(answer(lines, "gpu9").user, "");
  EXPECT_EQ(answer(lines, "login").user, "");
  EXPECT_EQ(answer(lines, "login").port, 7);
}

TEST(SshConfig, TellsTheJumpHostsInOrderAndNoneOfNone) {
  EXPECT_EQ(answer("ProxyJump a@login1:2222,login2\n", "gpu7").jumps,
            (std::vector<std::string>{"a@login1:2222", "login2"}));
  EXPECT_TRUE(answer("ProxyJump none\nProxyCommand nc x\n", "gpu7").jumps.empty());
}

TEST(SshConfig, RefusesWhatItWouldHaveToRun) {
  EXPECT_EQ(refusal("\nProxyCommand nc %h %p\n"), "c:2: ProxyCommand is not run; use ProxyJump, or `jump` in the spec");
  EXPECT_EQ(refusal("Host other\nProxyCommand nc %h %p\n"), "");
  EXPECT_EQ(refusal("Match exec \"touch /tmp/x\"\n").rfind("c:1: Match is not read", 0), 0U);
}

TEST(SshConfig, NamesThePlaceOfWhatCannotBe) {
  EXPECT_EQ(refusal("Port ssh\n"), "c:1: `ssh` is no port");
  EXPECT_EQ(refusal("Port 65536\n"), "c:1: `65536` is no port");
  EXPECT_EQ(refusal("# x\nUser\n"), "c:2: User has no value");
  EXPECT_EQ(refusal("User \"a\n"), "c:1: a quote is not closed");
  EXPECT_EQ(refusal("IdentityFile %L\n"), "c:1: `%L`: only %%, %d, %h, %n and %r are known here");
}

TEST(SshConfig, FollowsIncludeAndGoesOnInTheBlockAroundIt) {
  const Scratch home;
  home.write(".ssh/more/one", "User one\nHost elsewhere\n  Port 5\n");
  const std::string file = home.write(".ssh/config", "Host gpu*\n  Include more/*\n  Port 6\nHost *\n  User two\n");
  const auto config = load_ssh_config(file, home.path());
  ASSERT_TRUE(config.ok()) << config.error().message;
  const auto gpu = look_up(*config, "gpu7", home.path());
  ASSERT_TRUE(gpu.ok());
  EXPECT_EQ(gpu->user, "one");
  EXPECT_EQ(gpu->port, 6);
  EXPECT_EQ(look_up(*config, "login", home.path())->user, "two");
}

TEST(SshConfig, EndsAnIncludeOfItself) {
  const Scratch home;
  const std::string file = home.write(".ssh/config", "Include config\n");
  const auto config = load_ssh_config(file, home.path());
  ASSERT_FALSE(config.ok());
  EXPECT_NE(config.error().message.find("Include goes too deep"), std::string::npos);
}

TEST(SshConfig, RefusesAFileThatIsNotThere) { EXPECT_FALSE(load_ssh_config("/nonexistent/config", "/home/a").ok()); }

}  // namespace
}  // namespace monarch
