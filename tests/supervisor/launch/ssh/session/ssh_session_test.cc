// Sessions against a real sshd on loopback: the host's key, the login, and the ways in which neither comes about.

#include "supervisor/launch/ssh/session/ssh_session.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <filesystem>
#include <iterator>
#include <memory>
#include <thread>

#include "tests/supervisor/launch/ssh/ssh_server.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

using Opened = std::variant<std::unique_ptr<SshSession>, SshFailure>;

class SshSessionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::string lacks = SshServer::lacks();
    if (!lacks.empty()) GTEST_SKIP() << "this machine lacks " << lacks;
    server_ = std::make_unique<SshServer>();
    ASSERT_EQ(server_->failure(), "");
    target_ = server_->target();
  }

  // The failure that it must be.
  SshFailure refused(const SshTarget& target, int cancel = -1) {
    Opened opened = SshSession::open({target}, cancel);
    if (auto* failure = std::get_if<SshFailure>(&opened)) return *failure;
    ADD_FAILURE() << "it logged in";
    return {};
  }
  void let_in(const SshTarget& target) {
    const Opened opened = SshSession::open({target}, -1);
    if (const auto* failure = std::get_if<SshFailure>(&opened)) ADD_FAILURE() << failure->failure.message;
  }
  std::string replace_known_hosts(const std::string& lines) { return server_->folder().write("other_hosts", lines); }
  std::string name() const { return text("[127.0.0.1]:", server_->port()); }
  std::string foreign_key_line() {
    const std::string path = server_->folder().path() + "/foreign";
    EXPECT_TRUE(make_key(path));
    const std::string line = read_text(path + ".pub");
    return line.substr(0, line.rfind(' '));
  }
  bool nobody_tried_to_log_in() const {
    const std::string log = server_->log();
    return log.find("Connection from") != std::string::npos && log.find("publickey") == std::string::npos &&
           log.find("Accepted") == std::string::npos && log.find("Failed") == std::string::npos;
  }

  std::unique_ptr<SshServer> server_;
  SshTarget target_;
};

void expect_part(const std::string& message, const std::string& part) {
  EXPECT_NE(message.find(part), std::string::npos) << part << " in: " << message;
}

TEST_F(SshSessionTest, LogsInByAKeyFileAndTellsTheAddressThatReachedTheHost) {
  Opened opened = SshSession::open({target_}, -1);
  if (const auto* failure = std::get_if<SshFailure>(&opened)) FAIL() << failure->failure.message;
  const auto address = std::get<std::unique_ptr<SshSession>>(opened)->local_address();
  ASSERT_TRUE(address.ok());
  EXPECT_EQ(*address, "127.0.0.1");
}

TEST_F(SshSessionTest, ClosesItsConnectionWhenItEnds) {
  const auto descriptors = [] {
    const auto all = std::filesystem::directory_iterator("/proc/self/fd");
    return std::distance(begin(all), end(all));
  };
  let_in(target_);  // what libraries open once is open from here on
  const auto before = descriptors();
  let_in(target_);
  EXPECT_EQ(descriptors(), before);
}

TEST_F(SshSessionTest, LogsInByTheKeyOfAnAgent) {
  target_.agent_socket = server_->start_agent();
  ASSERT_NE(target_.agent_socket, "");
  target_.identities.clear();
  let_in(target_);
}

// A server that hangs up at the second key that it does not know, and an agent full of such keys.
class SshImpatientTest : public SshSessionTest {
 protected:
  void SetUp() override {
    SshSessionTest::SetUp();
    if (IsSkipped()) return;
    impatient_ = std::make_unique<SshServer>("ed25519", "MaxAuthTries 2");
    ASSERT_EQ(impatient_->failure(), "");
    target_ = impatient_->target();
    for (int i = 0; i < 5; ++i) {
      strangers_.push_back(text(impatient_->folder().path(), "/stranger", i));
      ASSERT_TRUE(make_key(strangers_.back()));
    }
  }
  void fill_agent(const std::vector<std::string>& more = {}) {
    std::vector<std::string> keys = strangers_;
    keys.insert(keys.end(), more.begin(), more.end());
    target_.agent_socket = impatient_->start_agent(keys);
    ASSERT_NE(target_.agent_socket, "");
  }
  std::unique_ptr<SshServer> impatient_;
  std::vector<std::string> strangers_;
};

TEST_F(SshImpatientTest, OffersTheKeyFileBeforeTheAgentsOtherKeys) {
  fill_agent();
  let_in(target_);
}

TEST_F(SshImpatientTest, OffersTheAgentsKeyThatBelongsToAFileWithAPassphraseFirst) {
  fill_agent({impatient_->identity()});
  const std::string& file = target_.identities[0];
  ASSERT_EQ(run_command({"ssh-keygen", "-q", "-p", "-P", "", "-N", "a phrase", "-f", file}), 0);
  let_in(target_);
  ASSERT_EQ(::unlink((file + ".pub").c_str()), 0);
  let_in(target_);
}

TEST_F(SshImpatientTest, OffersNoOtherKeysWhereTheFilesAloneAreWanted) {
  fill_agent();
  target_.identities = {strangers_[4]};
  target_.identities_only = true;
  const SshFailure failure = refused(target_);
  EXPECT_EQ(failure.failure.kind, LaunchFailureKind::kAuthentication);
  EXPECT_EQ(impatient_->log().find("ED25519 SHA256:"), impatient_->log().rfind("ED25519 SHA256:")) << impatient_->log();
}

TEST_F(SshImpatientTest, SaysThatAnAgentWithManyKeysIsCutOff) {
  fill_agent();
  target_.identities.clear();
  expect_part(refused(target_).failure.message, "MaxAuthTries");
}

// A server that knows no key, and trusts who signs them.
class SshCertificateTest : public SshSessionTest {
 protected:
  void SetUp() override {
    SshSessionTest::SetUp();
    if (IsSkipped()) return;
    signer_ = server_->folder().path() + "/signer";
    ASSERT_TRUE(make_key(signer_));
    trusting_ = std::make_unique<SshServer>("ed25519", text("TrustedUserCAKeys ", signer_, ".pub"));
    ASSERT_EQ(trusting_->failure(), "");
    target_ = trusting_->target();
    trusting_->folder().write("authorized_keys", "");
  }
  // Writes KEY-cert.pub.
  void sign(const std::string& key, const std::string& validity = "+1h") {
    ASSERT_EQ(run_command(
                  {"ssh-keygen", "-q", "-s", signer_, "-I", "test", "-n", target_.user, "-V", validity, key + ".pub"}),
              0);
  }
  std::string signer_;
  std::unique_ptr<SshServer> trusting_;
};

TEST_F(SshCertificateTest, LogsInByTheOneBesideAKeyFile) {
  for (const char* type : {"ed25519", "rsa", "ecdsa"}) {
    const std::string key = text(trusting_->folder().path(), "/certified-", type);
    ASSERT_TRUE(make_key(key, type));
    target_.identities = {key};
    EXPECT_EQ(refused(target_).failure.kind, LaunchFailureKind::kAuthentication) << type;
    sign(key);
    let_in(target_);
  }
}

TEST_F(SshCertificateTest, LogsInByAFileOfItsOwnWithTheKeyThatItIsOf) {
  const std::string other = trusting_->folder().path() + "/other";
  ASSERT_TRUE(make_key(other));
  sign(other);
  sign(trusting_->identity());
  const std::string moved = trusting_->folder().path() + "/moved.pub";
  std::filesystem::rename(trusting_->identity() + "-cert.pub", moved);
  target_.certificates = {other + "-cert.pub", moved};
  let_in(target_);
  target_.certificates = {other + "-cert.pub", "/nonesuch"};
  const std::string message = refused(target_).failure.message;
  expect_part(message, "certificate file /nonesuch: none that can be read; key file");
  EXPECT_EQ(message.find(other), std::string::npos) << "it is of another key: " << message;
}

TEST_F(SshCertificateTest, SaysHowToSeeWhyOneIsRefused) {
  sign(trusting_->identity(), "20200101:20200102");
  const std::string file = trusting_->identity() + "-cert.pub";
  expect_part(refused(target_).failure.message, text("with the certificate ", file, ": refused (ssh-keygen -L -f ",
                                                     file, " shows for whom it is, and until when); key file"));
}

TEST_F(SshCertificateTest, LogsInByTheOneThatAnAgentHasOfAKeyFile) {
  sign(trusting_->identity());
  target_.agent_socket = trusting_->start_agent();
  ASSERT_NE(target_.agent_socket, "");
  ASSERT_EQ(::unlink((trusting_->identity() + "-cert.pub").c_str()), 0);
  ASSERT_EQ(run_command({"ssh-keygen", "-q", "-p", "-P", "", "-N", "a phrase", "-f", trusting_->identity()}), 0);
  target_.identities_only = true;
  let_in(target_);
}

TEST_F(SshSessionTest, OffersTheAgentsOtherKeysLast) {
  const std::string other = server_->folder().path() + "/stranger";
  ASSERT_TRUE(make_key(other));
  target_.agent_socket = server_->start_agent({other, server_->identity()});
  target_.identities = {other};
  let_in(target_);
}

TEST_F(SshSessionTest, TakesAPinnedKeyWithoutKnownHostsAndRefusesAnyOther) {
  target_.known_hosts.clear();
  target_.host_key = server_->fingerprint();
  let_in(target_);
  target_.host_key = "SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
  const SshFailure failure = refused(target_);
  EXPECT_EQ(failure.failure.kind, LaunchFailureKind::kHostKeyChanged);
  EXPECT_EQ(failure.failure.phase, "host key");
  expect_part(failure.failure.message, server_->fingerprint());
  expect_part(failure.failure.message, target_.host_key);
}

TEST_F(SshSessionTest, RefusesAChangedKeyBeforeAnyLogin) {
  target_.known_hosts = {replace_known_hosts(name() + " " + foreign_key_line() + "\n")};
  const SshFailure failure = refused(target_);
  EXPECT_EQ(failure.failure.kind, LaunchFailureKind::kHostKeyChanged);
  expect_part(failure.failure.message, server_->fingerprint());
  expect_part(failure.failure.message, target_.known_hosts[0] + ":1 has ssh-ed25519 SHA256:");
  expect_part(failure.failure.again, "ssh -o BatchMode=yes");
  EXPECT_FALSE(failure.worth_retrying);
  EXPECT_TRUE(nobody_tried_to_log_in()) << server_->log();
}

TEST_F(SshSessionTest, RefusesAnUnknownKeyBeforeAnyLogin) {
  target_.known_hosts = {server_->folder().path() + "/none"};
  EXPECT_EQ(refused(target_).failure.kind, LaunchFailureKind::kHostKeyUnknown);
  EXPECT_TRUE(nobody_tried_to_log_in()) << server_->log();
}

TEST_F(SshSessionTest, RefusesARevokedKeyThatIsListedAsWell) {
  const std::string key = server_->host_key_line();
  target_.known_hosts = {replace_known_hosts(text(name(), " ", key, "\n@revoked * ", key, "\n"))};
  const SshFailure failure = refused(target_);
  EXPECT_EQ(failure.failure.kind, LaunchFailureKind::kHostKeyRevoked);
  expect_part(failure.failure.message, target_.known_hosts[0] + ":2");
  EXPECT_TRUE(nobody_tried_to_log_in()) << server_->log();
}

TEST_F(SshSessionTest, AcceptsANewKeyOnceAndKnowsItFromThenOn) {
  target_.known_hosts = {server_->folder().path() + "/fresh/known_hosts"};
  target_.accept_new_host_keys = true;
  let_in(target_);
  EXPECT_EQ(read_text(target_.known_hosts[0]), text(name(), " ", server_->host_key_line(), "\n"));
  target_.accept_new_host_keys = false;
  let_in(target_);
}

TEST_F(SshSessionTest, ComparesAKeyOfTheKnownTypeWhereAServerHasSeveral) {
  const std::string second = server_->folder().path() + "/second";
  ASSERT_TRUE(make_key(second, "ecdsa"));
  SshServer two("ed25519", "HostKey " + second);
  ASSERT_EQ(two.failure(), "");
  const std::string line = read_text(second + ".pub");
  SshTarget target = two.target();
  target.known_hosts = {replace_known_hosts(text("[127.0.0.1]:", two.port(), " ", line))};
  let_in(target);
}

TEST_F(SshSessionTest, NamesWhatWasTriedAndWhatTheServerTakesWhenNoKeyIsAccepted) {
  const std::string other = server_->folder().path() + "/stranger";
  ASSERT_TRUE(make_key(other));
  target_.identities = {other, server_->folder().path() + "/none"};
  target_.agent_socket = server_->folder().path() + "/no-agent";
  const SshFailure failure = refused(target_);
  EXPECT_EQ(failure.failure.kind, LaunchFailureKind::kAuthentication);
  EXPECT_EQ(failure.failure.phase, "authenticate");
  for (const std::string& part :
       {text("as ", target_.user), std::string("the server takes publickey, password"), other + ": refused",
        text("key file ", server_->folder().path(), "/none: No such file"),
        text("ssh-agent at ", target_.agent_socket)}) {
    expect_part(failure.failure.message, part);
  }
}

TEST_F(SshSessionTest, SaysThatAServerTakesNoKeys) {
  const SshServer closed("ed25519", "PubkeyAuthentication no");
  ASSERT_EQ(closed.failure(), "");
  const SshFailure failure = refused(closed.target());
  EXPECT_EQ(failure.failure.kind, LaunchFailureKind::kAuthentication);
  expect_part(failure.failure.message, "monarch logs in by keys alone");
}

TEST_F(SshSessionTest, DoesNotUseAKeyFileThatOthersMayRead) {
  ASSERT_EQ(::chmod(target_.identities[0].c_str(), 0644), 0);
  const SshFailure failure = refused(target_);
  EXPECT_EQ(failure.failure.kind, LaunchFailureKind::kAuthentication);
  expect_part(failure.failure.message, "chmod 600");
}

TEST_F(SshSessionTest, AsksNobodyForAPassphrase) {
  const std::string locked = server_->folder().path() + "/locked";
  ASSERT_TRUE(make_key(locked, "ed25519", "a phrase"));
  target_.identities = {locked};
  expect_part(refused(target_).failure.message, "has a passphrase");
}

TEST_F(SshSessionTest, TriesTheKeyFileWhereTheAgentIsEmptyOrHangs) {
  const std::string path = server_->folder().path() + "/hung";
  const UniqueFd listener(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  ASSERT_EQ(::bind(listener.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(::listen(listener.get(), 1), 0);
  target_.agent_socket = path;
  target_.connect_timeout = Duration::seconds(4);
  let_in(target_);
}

// A port of 127.0.0.1 that behaves as a test wants.
class Port {
 public:
  explicit Port(int backlog) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    address_.sin_family = AF_INET;
    address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address_;
    auto* generic = reinterpret_cast<sockaddr*>(&address_);
    EXPECT_EQ(::bind(socket_.get(), generic, size), 0);
    EXPECT_EQ(::getsockname(socket_.get(), generic, &size), 0);
    if (backlog >= 0 && ::listen(socket_.get(), backlog) != 0) ADD_FAILURE() << "listen";
  }
  std::uint16_t number() const { return ntohs(address_.sin_port); }
  UniqueFd accept() const { return UniqueFd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)); }
  // Further connections get no answer to their SYN.
  void fill() {
    for (int i = 0; i < 4; ++i) {
      UniqueFd one(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
      (void)::connect(one.get(), reinterpret_cast<const sockaddr*>(&address_), sizeof address_);
      waiting_.push_back(std::move(one));
    }
  }

 private:
  UniqueFd socket_;
  sockaddr_in address_{};
  std::vector<UniqueFd> waiting_;
};

TEST_F(SshSessionTest, TellsARefusedPortFromAHostWithoutAName) {
  const Port closed(-1);
  target_.port = closed.number();
  const SshFailure failure = refused(target_);
  EXPECT_EQ(failure.failure.kind, LaunchFailureKind::kRefused);
  EXPECT_EQ(failure.failure.phase, "connect");
  EXPECT_FALSE(failure.worth_retrying);
  target_.address = "nonesuch.invalid";
  EXPECT_EQ(refused(target_).failure.kind, LaunchFailureKind::kName);
}

TEST_F(SshSessionTest, GivesABlackHoleItsTimeAndNoMore) {
  Port hole(0);
  hole.fill();
  target_.port = hole.number();
  target_.connect_timeout = Duration::seconds(3);
  const SshFailure failure = refused(target_);
  EXPECT_EQ(failure.failure.kind, LaunchFailureKind::kTimeout);
  EXPECT_GE(failure.failure.elapsed, Duration::seconds(3));
  EXPECT_LT(failure.failure.elapsed, Duration::seconds(5));
  expect_part(failure.failure.message, "no answer within 3s");
}

TEST_F(SshSessionTest, EndsADialThatIsCancelledAtOnce) {
  Port hole(0);
  hole.fill();
  target_.port = hole.number();
  target_.connect_timeout = Duration::seconds(60);
  const UniqueFd cancel(::eventfd(1, EFD_CLOEXEC));
  EXPECT_LT(refused(target_, cancel.get()).failure.elapsed, Duration::seconds(10));
}

TEST_F(SshSessionTest, CallsSilenceAndAHangUpBeforeTheBannerWorthRetrying) {
  const Port port(4);
  target_.port = port.number();
  target_.connect_timeout = Duration::milliseconds(300);
  SshFailure failure = refused(target_);
  EXPECT_EQ(failure.failure.kind, LaunchFailureKind::kTimeout);
  EXPECT_TRUE(failure.worth_retrying);

  target_.connect_timeout = Duration::seconds(10);
  std::thread server([&] {
    (void)port.accept();  // the silent one of above
    (void)port.accept();
  });
  failure = refused(target_);
  server.join();
  EXPECT_EQ(failure.failure.kind, LaunchFailureKind::kClosed) << failure.failure.message;
  EXPECT_TRUE(failure.worth_retrying);
}

TEST_F(SshSessionTest, CallsAHangUpAfterTheBannerClosed) {
  const Port port(4);
  target_.port = port.number();
  std::thread server([&] {
    const UniqueFd peer = port.accept();
    const std::string_view banner = "SSH-2.0-OpenSSH_9.2\r\n";
    EXPECT_EQ(::write(peer.get(), banner.data(), banner.size()), static_cast<ssize_t>(banner.size()));
    char byte = 0;
    EXPECT_EQ(::read(peer.get(), &byte, 1), 1);  // its banner: it has seen ours, or will before the end
  });
  const SshFailure failure = refused(target_);
  server.join();
  EXPECT_EQ(failure.failure.kind, LaunchFailureKind::kClosed) << failure.failure.message;
  EXPECT_FALSE(failure.worth_retrying);
}

TEST_F(SshSessionTest, RefusesAServerThatSpeaksSomethingElse) {
  const Port port(4);
  target_.port = port.number();
  std::thread server([&] {
    const UniqueFd peer = port.accept();
    const std::string junk = "HTTP/1.1 400 Bad Request\r\n\r\n" + std::string(20'000, '\x07');
    (void)::send(peer.get(), junk.data(), junk.size(), MSG_NOSIGNAL);
    char byte = 0;
    (void)!::read(peer.get(), &byte, 1);
  });
  const SshFailure failure = refused(target_);
  server.join();
  EXPECT_EQ(failure.failure.phase, "connect");
  EXPECT_EQ(failure.failure.message.find('\x07'), std::string::npos);
}

}  // namespace
}  // namespace monarch
