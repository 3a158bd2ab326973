#include "transport/wire/seqpacket_listener.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/transport/loop/loop_fixture.h"
#include "transport/wire/seqpacket_channel.h"
#include "transport/wire/unix_address.h"

namespace monarch {
namespace {

class Listener : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    std::string pattern = (std::filesystem::temp_directory_path() / "monarch-listener-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
    path_ = folder_ + "/s";
  }
  void TearDown() override {
    listener_.reset();
    std::filesystem::remove_all(folder_);
  }
  Status listen(std::string path) {
    auto made = SeqpacketListener::create(loop(), std::move(path), [this](UniqueFd peer, PeerCredentials credentials) {
      peers_.push_back(std::move(peer));
      credentials_.push_back(credentials);
    });
    if (!made.ok()) return made.error();
    listener_ = std::move(*made);
    return {};
  }
  // What a killed process leaves: a socket file at which nobody listens.
  void leave_stale_socket() {
    const UniqueFd dead(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    const auto address = unix_address(path_);
    ASSERT_TRUE(address.ok());
    ASSERT_EQ(::bind(dead.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
  }

  std::string folder_;
  std::string path_;
  std::unique_ptr<SeqpacketListener> listener_;
  std::vector<UniqueFd> peers_;
  std::vector<PeerCredentials> credentials_;
};

TEST_F(Listener, AcceptsAPeerOfOurUidAndFramesFlow) {
  ASSERT_TRUE(listen(path_).ok());
  auto client_socket = connect_seqpacket(path_);
  ASSERT_TRUE(client_socket.ok()) << client_socket.error().message;
  ASSERT_TRUE(run_until([this] { return peers_.size() == 1; }));
  EXPECT_EQ(credentials_[0].uid, ::geteuid());
  EXPECT_EQ(credentials_[0].pid, ::getpid());
  EXPECT_NE(::fcntl(peers_[0].get(), F_GETFD) & FD_CLOEXEC, 0);

  std::vector<Frame> frames;
  const auto keep = [&frames](Frame frame, std::vector<UniqueFd>) { frames.push_back(std::move(frame)); };
  auto server = SeqpacketChannel::create(loop(), std::move(peers_[0]), {.on_frame = keep, .on_closed = [](Error) {}});
  auto client =
      SeqpacketChannel::create(loop(), std::move(*client_socket), {.on_frame = keep, .on_closed = [](Error) {}});
  ASSERT_TRUE(server.ok() && client.ok());
  ASSERT_TRUE((*client)->send(Frame{.header = {.type = 80}, .payload = "attach"}).ok());
  ASSERT_TRUE(run_until([&] { return frames.size() == 1; }));
  EXPECT_EQ(frames[0].payload, "attach");
}

TEST_F(Listener, IsThereAgainWhereItsFoldersWereRemoved) {
  const std::string ours = folder_ + "/monarch-1";
  ASSERT_TRUE(listen(ours + "/w-1/s").ok()) << "folders of ours are made";
  auto before = connect_seqpacket(ours + "/w-1/s");
  ASSERT_TRUE(before.ok());
  ASSERT_TRUE(run_until([this] { return peers_.size() == 1; }));
  std::filesystem::remove_all(ours);
  ASSERT_TRUE(run_until([&] { return std::filesystem::exists(ours + "/w-1/s"); }));
  EXPECT_TRUE(connect_seqpacket(ours + "/w-1/s").ok());
  ASSERT_TRUE(run_until([this] { return peers_.size() == 2; }));
  char byte = 0;
  EXPECT_EQ(::recv(before->get(), &byte, 1, MSG_DONTWAIT), -1) << "who is connected stays so";
  EXPECT_EQ(errno, EAGAIN);
  listener_.reset();
  EXPECT_FALSE(std::filesystem::exists(ours + "/w-1/s"));
}

TEST_F(Listener, MakesNoFolderOfOthersAndWaitsUntilItIsThere) {
  const std::string theirs = folder_ + "/login";
  std::filesystem::create_directory(theirs);
  ASSERT_TRUE(listen(theirs + "/monarch/s").ok());
  std::filesystem::remove_all(theirs);
  EXPECT_FALSE(run_until([&] { return std::filesystem::exists(theirs); }, SocketFile::kLookPeriod * 2));
  std::filesystem::create_directory(theirs);
  EXPECT_TRUE(run_until([&] { return std::filesystem::exists(theirs + "/monarch/s"); }));
}

TEST_F(Listener, LeavesItsPlaceToWhoTookIt) {
  ASSERT_TRUE(listen(path_).ok());
  ASSERT_EQ(::unlink(path_.c_str()), 0);
  leave_stale_socket();
  EXPECT_FALSE(run_until([&] { return connect_seqpacket(path_).ok(); }, SocketFile::kLookPeriod * 2));
  listener_.reset();
  EXPECT_TRUE(std::filesystem::exists(path_)) << "it is another's";
}

TEST_F(Listener, ItsFileIs0600UnderAnyUmask) {
  for (const mode_t mask : {0000U, 0077U, 0777U}) {
    const mode_t saved = ::umask(mask);
    const Status status = listen(path_);
    ::umask(saved);
    ASSERT_TRUE(status.ok()) << status.error().message;
    struct stat file {};
    ASSERT_EQ(::lstat(path_.c_str(), &file), 0);
    EXPECT_EQ(file.st_mode & 07777U, 0600U);
    listener_.reset();
  }
}

TEST_F(Listener, RemovesItsFileWhenItGoesButNotAnothers) {
  ASSERT_TRUE(listen(path_).ok());
  listener_.reset();
  EXPECT_FALSE(std::filesystem::exists(path_));
  ASSERT_TRUE(listen(path_).ok());
  std::filesystem::remove(path_);
  leave_stale_socket();
  listener_.reset();
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(Listener, ReplacesASocketAtWhichNobodyAnswers) {
  leave_stale_socket();
  EXPECT_EQ(connect_seqpacket(path_).error().code, ErrorCode::kGone);
  ASSERT_TRUE(listen(path_).ok());
  EXPECT_TRUE(connect_seqpacket(path_).ok());
}

TEST_F(Listener, IsBusyWhereAnotherListens) {
  ASSERT_TRUE(listen(path_).ok());
  const auto second = SeqpacketListener::create(loop(), path_, [](UniqueFd, PeerCredentials) {});
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  EXPECT_TRUE(connect_seqpacket(path_).ok());
}

TEST_F(Listener, DoesNotReplaceWhatIsNoSocket) {
  { const UniqueFd file(::open(path_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600)); }
  EXPECT_EQ(listen(path_).error().code, ErrorCode::kInvalid);
  EXPECT_TRUE(std::filesystem::exists(path_));
}

TEST_F(Listener, TakesPathsOf107BytesAndRefusesLongerOnes) {
  const std::string longest = folder_ + "/" + std::string(kUnixPathBytes - folder_.size() - 1, 'p');
  ASSERT_TRUE(listen(longest).ok());
  EXPECT_TRUE(connect_seqpacket(longest).ok());
  EXPECT_EQ(listen(longest + "p").error().code, ErrorCode::kInvalid);
  EXPECT_EQ(connect_seqpacket(longest + "p").error().code, ErrorCode::kInvalid);
}

TEST_F(Listener, ConnectingWithoutASocketIsNotFound) {
  EXPECT_EQ(connect_seqpacket(path_).error().code, ErrorCode::kNotFound);
}

TEST_F(Listener, ConnectingNeverWaitsForAFullBacklog) {
  ASSERT_TRUE(listen(path_).ok());
  std::vector<UniqueFd> waiting;
  for (;;) {
    auto socket = connect_seqpacket(path_);
    if (!socket.ok()) {
      EXPECT_EQ(socket.error().code, ErrorCode::kBusy);
      break;
    }
    waiting.push_back(std::move(*socket));
    ASSERT_LT(waiting.size(), 5000U);
  }
  ASSERT_TRUE(run_until([&] { return peers_.size() == waiting.size(); }));
}

TEST_F(Listener, DropsAndCountsPeersOfOtherUids) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can connect as somebody else";
  ASSERT_TRUE(listen(path_).ok());
  // Open the doors, so that it is the uid that is refused.
  ASSERT_EQ(::chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(::chmod(path_.c_str(), 0666), 0);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto address = unix_address(path_);
    const int fd = ::socket(AF_UNIX, SOCK_SEQPACKET, 0);
    if (::setresgid(65534, 65534, 65534) != 0 || ::setresuid(65534, 65534, 65534) != 0) ::_exit(2);
    ::_exit(::connect(fd, reinterpret_cast<const sockaddr*>(&*address), sizeof *address) == 0 ? 0 : 3);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  ASSERT_TRUE(run_until([this] { return listener_->refused_peers() == 1; }));
  EXPECT_TRUE(peers_.empty());
}

}  // namespace
}  // namespace monarch
