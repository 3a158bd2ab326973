// Two vaults of one job, each on a thread of its own, with real sockets between them; who plays daemon and rank is the
// test.

#include "worker/vault/vault.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>

#include "tests/transport/base/lower_limit.h"
#include "tests/worker/servant_lab.h"
#include "transport/messages/vault.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/sealed_memory.h"
#include "transport/wire/seqpacket_message.h"
#include "transport/wire/seqpacket_socket.h"

namespace monarch::vault {
namespace {

const std::string kDigest(64, 'd');

class VaultTest : public ServantLab<Vault, VaultSetup, VaultReport> {
 protected:
  struct Said {
    std::string json;
    std::string content;  // of the descriptor, if one came
  };

  VaultTest() : ServantLab("vault.d") {}
  void complete(VaultSetup& setup) override { setup.memory = 16U << 20U; }

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
    const auto socket = connect_seqpacket(host.setup.directory + "/vault");
    EXPECT_TRUE(socket.ok());
    if (!socket.ok()) return {};
    say(*socket, question, descriptor);
    return hear(*socket);
  }

  static void say(const UniqueFd& socket, const std::string& question, int descriptor) {
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
    EXPECT_EQ(::sendmsg(socket.get(), &message, MSG_NOSIGNAL), static_cast<ssize_t>(question.size()));
  }

  static Said hear(const UniqueFd& socket) {
    EXPECT_TRUE(becomes_readable(socket.get()));
    std::array<char, 4'096> bytes{};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> back{};
    iovec into{bytes.data(), bytes.size()};
    msghdr answer{};
    answer.msg_iov = &into;
    answer.msg_iovlen = 1;
    answer.msg_control = back.data();
    answer.msg_controllen = back.size();
    const ssize_t got = ::recvmsg(socket.get(), &answer, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
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

// The first copy opens the connection by which the second goes; the third has the memory of one that was given up.
TEST_F(VaultTest, CopiesEachStepThatFollows) {
  ASSERT_FALSE(HasFatalFailure());
  for (std::uint64_t step = 1; step <= 6; ++step) {
    tell_table(2 * step, 1, step > 1 ? std::optional(step - 1) : std::nullopt);
    std::string content((3U << 20U) + step * 1'000, '\0');
    for (std::size_t i = 0; i < content.size(); ++i) content[i] = static_cast<char>(i * (31 + step) >> 4U);
    const auto memory = make_sealed_memory("checkpoint", content);
    ASSERT_TRUE(memory.ok());
    EXPECT_EQ(ask(hosts_[0], question("save", 1, step), memory->get()).json, R"({"v":1,"ok":true,"hosts":[0,1]})");
    tell_table(2 * step + 1, 1, step);
    if (step == 5) continue;  // of this one the memory is used again: nobody has it
    EXPECT_EQ(ask(hosts_[1], question("load", 1, step, "\nHOSTS=0,1")).content, content) << step;
  }
}

// What a rank saves is not lost where the vault has no descriptor for it just now.
TEST_F(VaultTest, LeavesAQuestionUnreadWhileItCannotHoldWhatComesWithIt) {
  ASSERT_FALSE(HasFatalFailure());
  tell_table(1, 1, {});
  const auto memory = make_sealed_memory("checkpoint", "a few bytes");
  const auto socket = connect_seqpacket(hosts_[0].setup.directory + "/vault");
  ASSERT_TRUE(memory.ok() && socket.ok());
  EXPECT_EQ(ask(hosts_[0], "VAULT=what").json, R"({"v":1,"error":"VAULT is save or load"})") << "it was let in";
  {
    const int next = ::dup(socket->get());
    ASSERT_GE(next, 0);
    ASSERT_EQ(::close(next), 0);
    const LowerLimit none(RLIMIT_NOFILE, static_cast<rlim_t>(next));
    say(*socket, question("save", 1, 10), memory->get());
    pollfd answered{socket->get(), POLLIN, 0};
    EXPECT_EQ(::poll(&answered, 1, 100), 0);
  }
  EXPECT_EQ(hear(*socket).json, R"({"v":1,"ok":true,"hosts":[0,1]})");
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

TEST_F(VaultTest, ListensToNobodyWhoDoesNotKnowTheSecretAndToTheNextDaemon) {
  ASSERT_FALSE(HasFatalFailure());
  tell_table(1, 1, {});
  auto stranger = connect_seqpacket(hosts_[0].setup.directory + "/vault.d");
  ASSERT_TRUE(stranger.ok());
  hosts_[0].daemon = std::move(*stranger);
  VaultSetup forged = hosts_[0].setup;
  forged.secret_key = hosts_[1].setup.secret_key;
  tell(hosts_[0], forged);
  ASSERT_TRUE(becomes_readable(hosts_[0].daemon.get()));
  EXPECT_FALSE(receive_message(hosts_[0].daemon.get(), limits::kSeqpacketPayloadBytes).ok());
  connect_daemon(hosts_[0]);
  EXPECT_EQ(hosts_[0].report.table, 1U);
}

}  // namespace
}  // namespace monarch::vault
