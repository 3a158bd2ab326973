// Two vaults of one job, each on a thread of its own, with real sockets between them; who plays daemon and rank is the
// test.

#include "worker/vault/vault.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>

#include "transport/messages/vault.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/sealed_memory.h"
#include "transport/wire/seqpacket_message.h"
#include "transport/wire/seqpacket_socket.h"

namespace monarch::vault {
namespace {

constexpr int kPatienceMilliseconds = 20'000;
const std::string kDigest(64, 'd');

bool readable(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  return ::poll(&waiting, 1, kPatienceMilliseconds) == 1;
}

class VaultTest : public ::testing::Test {
 protected:
  struct Host {
    VaultSetup setup;
    std::unique_ptr<Vault> vault;
    std::thread thread;
    UniqueFd daemon;
    VaultReport report;
  };
  struct Said {
    std::string json;
    std::string content;  // of the descriptor, if one came
  };

  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "vault-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    auto signals = SignalFd::create({SIGTERM});
    ASSERT_TRUE(signals.ok());
    signals_ = std::move(*signals);
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) start(i);
  }

  void TearDown() override {
    (void)::kill(::getpid(), SIGTERM);  // blocked in each thread: what is pending ends both loops
    for (Host& host : hosts_) {
      if (host.thread.joinable()) host.thread.join();
    }
    while (signals_ && signals_->next()) continue;
    std::filesystem::remove_all(root_);
  }

  void start(std::uint32_t i) {
    auto keys = make_curve_key_pair();
    ASSERT_TRUE(keys.ok());
    Host& host = hosts_[i];
    host.setup = {.job = {},
                  .host_name = "h" + std::to_string(i),
                  .host = HostId(i),
                  .address = "127.0.0.1",
                  .public_key = keys->public_key.to_text(),
                  .secret_key = std::string(keys->secret_key.bytes()),
                  .memory = 16U << 20U,
                  .directory = root_ + "/" + std::to_string(i),
                  .keeper_pid = ::getpid()};
    std::filesystem::create_directory(host.setup.directory);
    auto vault = Vault::start(host.setup, *signals_);
    ASSERT_TRUE(vault.ok()) << vault.error().message;
    host.vault = std::move(*vault);
    host.thread = std::thread([running = host.vault.get()] { running->run(); });
    connect_daemon(host);
  }

  void connect_daemon(Host& host) {
    auto socket = connect_seqpacket(host.setup.directory + "/vault.d");
    ASSERT_TRUE(socket.ok()) << socket.error().message;
    host.daemon = std::move(*socket);
    tell(host, host.setup);
    hear_report(host);
  }

  template <class Message>
  static void tell(Host& host, const Message& message) {
    const auto packed = pack_message(frame_of(message), {}, limits::kSeqpacketInlineBytes);
    ASSERT_TRUE(packed.ok());
    ASSERT_EQ(send_message(host.daemon.get(), *packed), SendOutcome::kSent);
  }

  static void hear_report(Host& host) {
    ASSERT_TRUE(readable(host.daemon.get()));
    auto received = receive_message(host.daemon.get(), limits::kSeqpacketPayloadBytes);
    ASSERT_TRUE(received.ok()) << received.error().message;
    ASSERT_TRUE(received->has_value());
    auto report = decode_payload<VaultReport>((*received)->frame.payload);
    ASSERT_TRUE(report.ok());
    host.report = *report;
  }

  // A mesh `m` of one rank, at its first generation, on host 0 with copies on host 1.
  void tell_table(std::uint64_t version, std::uint64_t generation, std::optional<std::uint64_t> committed) {
    for (Host& host : hosts_) {
      VaultTable table{.version = version,
                       .meshes = {{"m", 1}},
                       .gangs = {{.mesh = MeshId(0),
                                  .gang = GangId(0),
                                  .generation = generation,
                                  .committed = committed,
                                  .resumed = {},
                                  .targets = {HostId(1)},
                                  .passed = {},
                                  .sources = {{HostId(0), Rank(0), 1}}}},
                       .peers = {}};
      for (const Host& other : hosts_) {
        if (&other == &host) continue;
        table.peers.push_back(
            {other.setup.host, other.setup.host_name, "127.0.0.1", other.report.port, other.setup.public_key});
      }
      tell(host, table);
      do hear_report(host);
      while (host.report.table != version && !HasFatalFailure());
    }
  }

  static Said ask(const Host& host, const std::string& question, int descriptor = -1) {
    auto socket = connect_seqpacket(host.setup.directory + "/vault");
    EXPECT_TRUE(socket.ok());
    if (!socket.ok()) return {};
    iovec part{const_cast<char*>(question.data()), question.size()};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (descriptor >= 0) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* const rights = CMSG_FIRSTHDR(&message);
      rights->cmsg_level = SOL_SOCKET;
      rights->cmsg_type = SCM_RIGHTS;
      rights->cmsg_len = CMSG_LEN(sizeof(int));
      std::memcpy(CMSG_DATA(rights), &descriptor, sizeof descriptor);
    }
    EXPECT_EQ(::sendmsg(socket->get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(question.size()));
    EXPECT_TRUE(readable(socket->get()));
    std::array<char, 4'096> bytes{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> back{};
    iovec into{bytes.data(), bytes.size()};
    msghdr answer{};
    answer.msg_iov = &into;
    answer.msg_iovlen = 1;
    answer.msg_control = back.data();
    answer.msg_controllen = back.size();
    const ssize_t got = ::recvmsg(socket->get(), &answer, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    Said said{.json = std::string(bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0), .content = {}};
    if (const cmsghdr* rights = CMSG_FIRSTHDR(&answer); rights != nullptr) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(rights), sizeof fd);
      const UniqueFd found(fd);
      const auto size = sealed_memory_size(found.get());
      EXPECT_TRUE(size.ok());
      if (size.ok()) said.content = *read_sealed_memory(found.get(), *size);
    }
    return said;
  }

  static std::string question(const std::string& kind, std::uint64_t generation, std::uint64_t step,
                              const std::string& rest = "") {
    return "VAULT=" + kind + "\nMESH=m\nRANK=0\nGENERATION=" + std::to_string(generation) +
           "\nSTEP=" + std::to_string(step) + "\nDIGEST=" + kDigest + rest;
  }

  std::string root_;
  std::unique_ptr<SignalFd> signals_;
  std::array<Host, 2> hosts_;
};

TEST_F(VaultTest, CopiesWhatARankSavesAndFindsItFromAnotherHost) {
  ASSERT_FALSE(HasFatalFailure());
  tell_table(1, 1, {});
  std::string content(5U << 20U, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * 31 >> 4U);
  const auto memory = make_sealed_memory("checkpoint", content);
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(ask(hosts_[0], question("save", 1, 10), memory->get()).json, R"({"v":1,"ok":true,"hosts":[0,1]})");
  tell_table(2, 1, 10);
  EXPECT_EQ(hosts_[1].report.used, content.size());
  const Said here = ask(hosts_[1], question("load", 1, 10, "\nHOSTS=0,1"));
  EXPECT_EQ(here.json, R"({"v":1,"ok":true,"host":1,"bytes":5242880})");
  EXPECT_EQ(here.content, content);
  const Said fetched = ask(hosts_[1], question("load", 1, 10, "\nHOSTS=0,1\nNOT=1"));
  EXPECT_EQ(fetched.json, R"({"v":1,"ok":true,"host":0,"bytes":5242880})");
  EXPECT_EQ(fetched.content, content);
}

TEST_F(VaultTest, AnswersWhatIsNoQuestionAndWhatIsNoMemory) {
  ASSERT_FALSE(HasFatalFailure());
  tell_table(1, 1, {});
  EXPECT_EQ(ask(hosts_[0], "VAULT=what").json, R"({"v":1,"error":"VAULT is save or load"})");
  EXPECT_EQ(ask(hosts_[0], question("save", 1, 10)).json, R"({"v":1,"error":"a save comes with one descriptor"})");
  EXPECT_EQ(ask(hosts_[0], question("save", 1, 10), STDERR_FILENO).json,
            R"({"v":1,"error":"the descriptor is no memfd that is sealed against writing, growing and shrinking"})");
  const auto memory = make_sealed_memory("checkpoint", std::string(17U << 20U, 'x'));
  ASSERT_TRUE(memory.ok());
  EXPECT_EQ(
      ask(hosts_[0], question("save", 1, 10), memory->get()).json,
      R"({"v":1,"ok":false,"full":"checkpoints.memory of host h0 is 16MiB: 0B are taken, and m/0 has 17MiB of step 10"})");
}

TEST_F(VaultTest, TakesTheHighestFreePortOfItsRange) {
  ASSERT_FALSE(HasFatalFailure());
  const std::uint16_t taken = hosts_[0].report.port;
  // ZeroMQ gives the name of the ZAP handler free some time after its socket has been closed.
  std::vector<std::unique_ptr<ZmqContext>> contexts;
  auto keys = make_curve_key_pair();
  auto loop = EventLoop::create();
  ASSERT_TRUE(keys.ok() && loop.ok());
  ZmqLoop zmq_loop(**loop);
  const auto open = [&](PortRange ports) {
    contexts.push_back(*ZmqContext::create({.io_threads = 1}));
    return VaultLinks::open(
        *contexts.back(), zmq_loop, *keys, {.job = {}, .address = "127.0.0.1", .ports = ports},
        {.on_message = [](HostId, VaultVia, const vault_event::Message&, std::string_view) {}, .on_up = [](HostId) {}});
  };
  {
    const auto links = open({static_cast<std::uint16_t>(taken - 20), taken});
    ASSERT_TRUE(links.ok()) << links.error().message;
    EXPECT_LT((*links)->port(), taken);
    EXPECT_GT((*links)->port(), taken - 20);
  }
  {
    // As a keeper reserves one for a rank: bound, and not listened at.
    const UniqueFd reserved(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const int on = 1;
    sockaddr_in address{};
    socklen_t size = sizeof address;
    address.sin_family = AF_INET;
    ASSERT_EQ(::setsockopt(reserved.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), 0);
    ASSERT_EQ(::bind(reserved.get(), reinterpret_cast<const sockaddr*>(&address), size), 0);
    ASSERT_EQ(::getsockname(reserved.get(), reinterpret_cast<sockaddr*>(&address), &size), 0);
    const std::uint16_t port = ntohs(address.sin_port);
    const auto links = open({static_cast<std::uint16_t>(port - 20), port});
    ASSERT_TRUE(links.ok()) << links.error().message;
    EXPECT_LT((*links)->port(), port);
  }
  const auto none = open({taken, taken});
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kBusy);
}

TEST_F(VaultTest, ListensToNobodyWhoDoesNotKnowTheSecretAndToTheNextDaemon) {
  ASSERT_FALSE(HasFatalFailure());
  tell_table(1, 1, {});
  auto stranger = connect_seqpacket(hosts_[0].setup.directory + "/vault.d");
  ASSERT_TRUE(stranger.ok());
  hosts_[0].daemon = std::move(*stranger);
  VaultSetup forged = hosts_[0].setup;
  forged.secret_key = hosts_[1].setup.secret_key;
  tell(hosts_[0], forged);
  ASSERT_TRUE(readable(hosts_[0].daemon.get()));
  EXPECT_FALSE(receive_message(hosts_[0].daemon.get(), limits::kSeqpacketPayloadBytes).ok());
  connect_daemon(hosts_[0]);
  EXPECT_EQ(hosts_[0].report.table, 1U);
}

}  // namespace
}  // namespace monarch::vault
