// Where readers of the same machine come to a publisher: a file in a folder of its user, or a name without one.

#include "transport/tensor/link_socket.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>
#include <thread>

#include "tests/transport/tensor/tensor_gang.h"

namespace monarch::tensor {
namespace {

class LinkSocketTest : public ::testing::Test {
 protected:
  LinkSocketTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "monarch-test-XXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
  }
  ~LinkSocketTest() override { std::filesystem::remove_all(folder_); }

  // As a rank does whose keeper has given it a folder.
  std::unique_ptr<OwnerThread> owner() const {
    return OwnerThread::start({.rank = {"trainer", 0, 1}, .address = {}, .sockets = folder_ + "/0.0."}).value();
  }
  std::size_t files() const {
    const auto all = std::filesystem::directory_iterator(folder_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  std::string folder_;
};

TEST_F(LinkSocketTest, IsAFileOfItsUserAlone) {
  auto one = owner();
  const auto other = owner();  // another process of the rank
  const std::string path = one->card().path;
  EXPECT_TRUE(path.starts_with(folder_ + "/0.0.") && path.ends_with(".t")) << path;
  EXPECT_NE(path, other->card().path);
  EXPECT_EQ(files(), 2U);
  struct stat status {};
  ASSERT_EQ(::stat(path.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode, static_cast<mode_t>(S_IFSOCK | 0600));
  EXPECT_TRUE(connect_on_machine(path).ok());
  one.reset();
  EXPECT_EQ(connect_on_machine(path).error().code, ErrorCode::kGone);
  EXPECT_EQ(files(), 1U);
}

// Whoever may not open it cannot fill its queue either, in which others would wait behind him.
TEST_F(LinkSocketTest, IsNoneToAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root becomes another user";
  const auto own = owner();
  for (const mode_t mode : {0700U, 0777U}) {
    ASSERT_EQ(::chmod(folder_.c_str(), mode), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      if (::setresuid(65'534, 65'534, 65'534) != 0) ::_exit(1);
      const auto connected = connect_on_machine(own->card().path);
      ::_exit(!connected.ok() && connected.error().errno_value == EACCES ? 0 : 2);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0) << mode;
  }
}

TEST_F(LinkSocketTest, IsThereAgainWhereSomebodyHasRemovedIt) {
  const auto own = owner();
  const std::string path = own->card().path;
  const UniqueFd before = connect_on_machine(path).value();
  ASSERT_EQ(::unlink(path.c_str()), 0);
  const Instant patience = boot_now() + Duration::seconds(30);
  while (!connect_on_machine(path).ok() && boot_now() < patience) std::this_thread::yield();
  auto publisher = Publisher::open(*own, {.name = "weights", .publishers = {0}}).value();
  const Matrix matrix{4, 4};
  ASSERT_TRUE(publisher->begin(1).ok());
  ASSERT_TRUE(publisher->lend(matrix.kind(), whole({4, 4})).ok());
  ASSERT_TRUE(publisher->commit().ok());
  ColumnReader reader(matrix, 0, 4, {.machine = {}, .shm = true, .verbs = false, .tcp = false});
  reader.finds({.gang = 0, .rank = 0, .generation = 1, .card = own->card()});
  EXPECT_EQ(pulled(reader.run()).by_shm, 1U);
}

// A folder that its keeper has removed is not made anew by who is to end with it.
TEST_F(LinkSocketTest, MakesNoFolder) {
  const std::string folder = folder_ + "/w-12345678-0";
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  LinkListener listener = listen_on_machine(folder + "/0.0.").value();
  ASSERT_TRUE(listener.file != nullptr);
  std::filesystem::remove_all(folder);
  EXPECT_TRUE(listener.file->is_missing());
  EXPECT_FALSE(listen_again(listener).ok());
  EXPECT_FALSE(std::filesystem::exists(folder));
}

TEST_F(LinkSocketTest, HasANameWithoutAFileWhereThereIsNoFolder) {
  for (const std::string& stem : {std::string(), folder_ + "/none/0.0.", folder_ + "/" + std::string(100, 'x') + "."}) {
    const auto listener = listen_on_machine(stem);
    ASSERT_TRUE(listener.ok());
    EXPECT_TRUE(listener->path.starts_with("@monarch-tensors-")) << listener->path;
    EXPECT_TRUE(connect_on_machine(listener->path).ok());
  }
  EXPECT_EQ(files(), 0U);
}

// A card is the word of somebody else: it leads to no other socket of this user.
TEST_F(LinkSocketTest, IsSoughtWhereRanksHaveOneAlone) {
  const auto own = owner();
  const std::string other = folder_ + "/agent";
  std::filesystem::create_symlink(own->card().path, other);
  EXPECT_EQ(connect_on_machine(other).error().message, text("`", other, "` is no socket of this machine"));
  EXPECT_FALSE(connect_on_machine("relative.t").ok());
}

}  // namespace
}  // namespace monarch::tensor
