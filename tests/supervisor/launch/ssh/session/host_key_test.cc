// Which host keys are trusted: what known_hosts files say, and what follows from it. No server.

#include "supervisor/launch/ssh/session/host_key.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "supervisor/launch/ssh/session/known_hosts.h"
#include "supervisor/launch/ssh/session/libssh.h"
#include "tests/supervisor/launch/ssh/ssh_server.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

constexpr char kOne[] = "AAAAC3NzaC1lZDI1NTE5AAAAIHaSw601QLuAPAILOu5mzYiHEjI06gxucUPArdc/9DHt";
constexpr char kOnePrint[] = "SHA256:hA/Or20GTGdVLLL7N3U9N5K3GmEqH6JLSopKLDqqrVE";
constexpr char kTwo[] = "AAAAC3NzaC1lZDI1NTE5AAAAID/EzP50WHDiwNmfcfMP8GVsje3UHMHX09N2sNvmheLz";
constexpr char kTwoPrint[] = "SHA256:tizwNQktrV1RbSqpvEx12LMkiK4VwNPYc/rWB77LEi8";

class KnownHosts : public ::testing::Test {
 protected:
  void SetUp() override {
    const Status loaded = load_libssh();
    if (!loaded.ok()) GTEST_SKIP() << loaded.error().message;
  }
  std::vector<KnownKey> keys_in(std::string_view lines, const std::string& host = "gpu7") {
    auto keys = known_keys({folder_.write("known", lines)}, host);
    EXPECT_TRUE(keys.ok());
    return keys.ok() ? *keys : std::vector<KnownKey>();
  }
  Scratch folder_;
};

TEST_F(KnownHosts, TellsTheKeyOfAHostAndItsLine) {
  const auto keys = keys_in(text("# mine\n\ngpu6 ssh-ed25519 ", kTwo, "\ngpu7,10.0.0.7 ssh-ed25519 ", kOne, " a@b\n"));
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_EQ(keys[0].key.type, "ssh-ed25519");
  EXPECT_EQ(keys[0].key.base64, kOne);
  EXPECT_EQ(keys[0].key.fingerprint, kOnePrint);
  EXPECT_EQ(keys[0].place, folder_.path() + "/known:4");
  EXPECT_EQ(keys[0].as, KnownAs::kHost);
}

TEST_F(KnownHosts, FindsAHashedHost) {
  const char* hashed = "|1|oPFJCiDQIRyZe0S8NX4Zct6riuM=|IlIr2Fab35gkyv/E4OTAhA6ljMI=";
  const std::string lines = text(hashed, " ssh-ed25519 ", kOne, "\n");
  EXPECT_EQ(keys_in(lines).size(), 1U);
  EXPECT_EQ(keys_in(lines, "gpu8").size(), 0U);
}

TEST_F(KnownHosts, TellsOnePortFromAnother) {
  const std::string lines = text("[gpu7]:2222 ssh-ed25519 ", kOne, "\n");
  EXPECT_EQ(keys_in(lines, "[gpu7]:2222").size(), 1U);
  EXPECT_EQ(keys_in(lines, "[gpu7]:2223").size(), 0U);
  EXPECT_EQ(keys_in(lines, "gpu7").size(), 0U);
}

TEST_F(KnownHosts, ReadsTabsAndMarks) {
  const auto keys = keys_in(text("@revoked\t*\tssh-ed25519\t", kOne, "\r\n@cert-authority * ssh-ed25519 ", kTwo, "\n"));
  ASSERT_EQ(keys.size(), 2U);
  EXPECT_EQ(keys[0].as, KnownAs::kRevoked);
  EXPECT_EQ(keys[0].key.base64, kOne);
  EXPECT_EQ(keys[1].as, KnownAs::kAuthority);
  EXPECT_EQ(keys[1].key.base64, kTwo);
}

TEST_F(KnownHosts, GoesOnAfterALineThatCannotBeRead) {
  const std::string junk =
      "gpu7\ngpu7 ssh-ed25519\ngpu7 ssh-ed25519 !!!!\ngpu7 ssh-nonesuch AAAA\n@revoked\n@revoked gpu7\n\x01\xff\n";
  EXPECT_EQ(keys_in(text(junk, "gpu7 ssh-ed25519 ", kOne)).size(), 1U);
}

TEST_F(KnownHosts, HasNothingOfAMissingFileAndRefusesOneThatCannotBeRead) {
  const auto missing = known_keys({folder_.path() + "/none"}, "gpu7");
  ASSERT_TRUE(missing.ok());
  EXPECT_TRUE(missing->empty());
  EXPECT_FALSE(known_keys({folder_.path()}, "gpu7").ok());
}

TEST_F(KnownHosts, RemembersAKeyBehindALastLineThatIsOpen) {
  const std::string file = folder_.write("known", text("gpu6 ssh-ed25519 ", kTwo));
  ASSERT_TRUE(remember_key(file, "gpu7", HostKey{"ssh-ed25519", kOne, kOnePrint}).ok());
  EXPECT_EQ(read_text(file), text("gpu6 ssh-ed25519 ", kTwo, "\ngpu7 ssh-ed25519 ", kOne, "\n"));
}

TEST_F(KnownHosts, MakesTheFileAndItsFolderForTheOwnerAlone) {
  const std::string file = folder_.path() + "/.ssh/known_hosts";
  ASSERT_TRUE(remember_key(file, "gpu7", HostKey{"ssh-ed25519", kOne, kOnePrint}).ok());
  struct stat status {};
  ASSERT_EQ(::stat(file.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  ASSERT_EQ(::stat((folder_.path() + "/.ssh").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
}

SshTarget gpu7() {
  SshTarget target;
  target.name = "gpu7";
  target.address = "10.0.0.7";
  target.user = "alice";
  target.known_hosts = {"/k"};
  return target;
}

const HostKey kPresented{"ssh-ed25519", kOne, kOnePrint};
const KnownKey kSame{kPresented, KnownAs::kHost, "/k:1", "/k"};
const KnownKey kOther{{"ssh-ed25519", kTwo, kTwoPrint}, KnownAs::kHost, "/k:2", "/k"};
const KnownKey kRsa{{"ssh-rsa", "AAAA", "SHA256:rsa"}, KnownAs::kHost, "/k:3", "/k"};

KnownKey revoked(KnownKey key) {
  key.as = KnownAs::kRevoked;
  return key;
}

LaunchFailureKind refusal(const SshTarget& target, const std::vector<KnownKey>& known, std::string* message = nullptr) {
  const auto verdict = judge_host_key(target, kPresented, known);
  const auto* refused = std::get_if<HostKeyRefusal>(&verdict);
  if (refused != nullptr && message != nullptr) *message = refused->message;
  return refused == nullptr ? LaunchFailureKind::kOther : refused->kind;
}

TEST(HostKeyPolicy, TrustsAListedKeyBesideOthers) {
  const auto verdict = judge_host_key(gpu7(), kPresented, {kRsa, kOther, kSame});
  ASSERT_TRUE(std::holds_alternative<HostKeyTrust>(verdict));
  EXPECT_EQ(std::get<HostKeyTrust>(verdict), HostKeyTrust::kKnown);
}

TEST(HostKeyPolicy, SaysThatAnAuthorityIsThereWhichItDoesNotRead) {
  std::string message;
  const KnownKey authority{{"ssh-ed25519", kTwo, kTwoPrint}, KnownAs::kAuthority, "/k:4", "/k"};
  EXPECT_EQ(refusal(gpu7(), {authority}, &message), LaunchFailureKind::kHostKeyUnknown);
  for (const char* part : {"/k:4 trusts a @cert-authority for it", "does not read certificates", "--accept-new"}) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  }
  KnownKey signer = authority;
  signer.key = kPresented;
  EXPECT_EQ(refusal(gpu7(), {signer}), LaunchFailureKind::kHostKeyUnknown) << "who signs is not who is trusted";
  SshTarget target = gpu7();
  target.accept_new_host_keys = true;
  const auto verdict = judge_host_key(target, kPresented, {authority});
  ASSERT_TRUE(std::holds_alternative<HostKeyTrust>(verdict));
  EXPECT_EQ(std::get<HostKeyTrust>(verdict), HostKeyTrust::kNew);
}

TEST(HostKeyPolicy, RefusesAChangedKeyAndShowsBothAndThePlace) {
  std::string message;
  EXPECT_EQ(refusal(gpu7(), {kRsa, kOther}, &message), LaunchFailureKind::kHostKeyChanged);
  for (const char* part : {"gpu7 (10.0.0.7:22)", kOnePrint, kTwoPrint, "/k:2", "ssh-keygen -f '/k' -R '10.0.0.7'"}) {
    EXPECT_NE(message.find(part), std::string::npos) << part << " in " << message;
  }
  SshTarget accepting = gpu7();
  accepting.accept_new_host_keys = true;
  EXPECT_EQ(refusal(accepting, {kOther}), LaunchFailureKind::kHostKeyChanged);
  EXPECT_EQ(refusal(gpu7(), {kRsa}), LaunchFailureKind::kHostKeyChanged);
}

TEST(HostKeyPolicy, RefusesAnUnknownKeyUnlessNewOnesAreAccepted) {
  EXPECT_EQ(refusal(gpu7(), {}), LaunchFailureKind::kHostKeyUnknown);
  SshTarget accepting = gpu7();
  accepting.accept_new_host_keys = true;
  const auto verdict = judge_host_key(accepting, kPresented, {});
  ASSERT_TRUE(std::holds_alternative<HostKeyTrust>(verdict));
  EXPECT_EQ(std::get<HostKeyTrust>(verdict), HostKeyTrust::kNew);
}

TEST(HostKeyPolicy, HoldsAPinAgainstAllElse) {
  SshTarget pinned = gpu7();
  pinned.host_key = kTwoPrint;
  pinned.accept_new_host_keys = true;
  EXPECT_EQ(refusal(pinned, {kSame}), LaunchFailureKind::kHostKeyChanged);
  pinned.host_key = kOnePrint;
  EXPECT_TRUE(std::holds_alternative<HostKeyTrust>(judge_host_key(pinned, kPresented, {kOther})));
}

TEST(HostKeyPolicy, RefusesARevokedKeyEvenIfListedOrPinned) {
  SshTarget pinned = gpu7();
  pinned.host_key = kOnePrint;
  EXPECT_EQ(refusal(gpu7(), {kSame, revoked(kSame)}), LaunchFailureKind::kHostKeyRevoked);
  EXPECT_EQ(refusal(pinned, {revoked(kSame)}), LaunchFailureKind::kHostKeyRevoked);
  EXPECT_EQ(refusal(gpu7(), {revoked(kOther)}), LaunchFailureKind::kHostKeyUnknown);
}

TEST(HostKeyPolicy, NegotiatesTheKnownTypesFirst) {
  EXPECT_EQ(host_key_algorithms({}).rfind("ssh-ed25519,", 0), 0U);
  EXPECT_EQ(host_key_algorithms({kRsa}).rfind("rsa-sha2-512,rsa-sha2-256,ssh-ed25519,", 0), 0U);
  EXPECT_EQ(host_key_algorithms({revoked(kRsa)}).rfind("ssh-ed25519,", 0), 0U);
}

TEST(SshTarget, RefusesNamesThatAreOptionsOrCommands) {
  for (const char* user : {"", "-oProxyCommand=x", "a;rm", "$(id)", "a b", "a\nb", "a'b", "`id`"}) {
    EXPECT_FALSE(is_ssh_user(user)) << user;
  }
  for (const char* user : {"alice", "a.b-c_d", "alice@corp.example", "Alice"}) EXPECT_TRUE(is_ssh_user(user)) << user;
  for (const char* host : {"", "-v", "a;b", "a b", "$(id)", "a\nb", ".a"}) EXPECT_FALSE(is_ssh_address(host)) << host;
  for (const char* host : {"node01", "10.0.0.7", "fe80::1%eth0", "::1", "a.example"}) {
    EXPECT_TRUE(is_ssh_address(host)) << host;
  }
}

TEST(SshTarget, PrintsACommandThatReproducesTheConnection) {
  SshTarget jump = gpu7();
  jump.address = "login1";
  jump.port = 2222;
  SshTarget target = gpu7();
  target.identities = {"/home/a b/id"};
  EXPECT_EQ(reproducer({jump, target}),
            "ssh -o BatchMode=yes -o ConnectTimeout=10 -J alice@login1:2222 -i '/home/a b/id' -o UserKnownHostsFile=/k "
            "alice@10.0.0.7 true");
}

TEST(Reproducer, RunsWhatShowsTheFailure) {
  EXPECT_EQ(shown_by(LaunchFailureKind::kShellNoise, ""), "true");
  EXPECT_EQ(shown_by(LaunchFailureKind::kDiskFull, ""), "df -h ~ ~/.cache ~/.local/state");
  EXPECT_EQ(shown_by(LaunchFailureKind::kArchitecture, "/opt/w"), "uname -m");
  EXPECT_EQ(shown_by(LaunchFailureKind::kExec, "/opt/a worker"), "ls -l '/opt/a worker'; df '/opt/a worker'");
  EXPECT_EQ(shown_by(LaunchFailureKind::kExec, ""), "true");
}

TEST(Libssh, NamesVersionsThatHaveHoles) {
  EXPECT_NE(libssh_concern("0.9.6"), "");
  EXPECT_NE(libssh_concern("0.10.5"), "");
  EXPECT_NE(libssh_concern("0.11.1"), "");
  EXPECT_EQ(libssh_concern("0.10.6"), "");
  EXPECT_EQ(libssh_concern("0.11.4"), "");
  EXPECT_EQ(libssh_concern("0.12.0"), "");
}

}  // namespace
}  // namespace monarch
