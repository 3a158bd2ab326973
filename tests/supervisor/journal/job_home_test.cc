#include "supervisor/journal/job_home.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "supervisor/journal/sync_round.h"
#include "tests/supervisor/journal/temporary_directory.h"

namespace monarch {
namespace {

using monarch::testing::TemporaryDirectory;

SecureDirectory made(const std::string& path) {
  std::filesystem::create_directory(path);
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  auto directory = SecureDirectory::open(path);
  EXPECT_TRUE(directory.ok());
  return std::move(*directory);
}

// As a supervisor of the directory does, whose term becomes durable with it.
Status begin(const SecureDirectory& job, bool force = false) {
  MONARCH_ASSIGN(const HomeFile home, check_home(job, force));
  if (home == HomeFile::kThere) return {};
  EXPECT_EQ(::faccessat(job.fd(), kHomeFile, F_OK, 0) == 0, force) << "it has no name before it is durable";
  MONARCH_ASSIGN(UniqueFd copy, job.duplicate());
  std::vector<FileBeside> beside{{.name = kHomeFile, .aside = true}};
  std::uint64_t waits = 0;
  EXPECT_EQ(sync_round(*posix_journal_files(std::move(copy)), {}, beside, waits), 0);
  EXPECT_EQ(beside.front().stage, FileBeside::Stage::kDurable);
  return {};
}

TEST(JobHome, IsTheSameForTheNextSupervisorOfTheDirectory) {
  const TemporaryDirectory folder;
  const SecureDirectory job = made(folder.path() + "/job");
  EXPECT_TRUE(begin(job).ok());
  EXPECT_EQ(check_home(job, false).value(), HomeFile::kThere);
}

TEST(JobHome, ACopyOfTheDirectoryIsRefusedWithTheFirstOnesName) {
  const TemporaryDirectory folder;
  ASSERT_TRUE(begin(made(folder.path() + "/job")).ok());
  std::filesystem::copy(folder.path() + "/job", folder.path() + "/copy");
  const SecureDirectory copy = made(folder.path() + "/copy");
  const Status refused = begin(copy);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, ErrorCode::kBusy);
  EXPECT_NE(refused.error().message.find(folder.path() + "/job, and this is another directory"), std::string::npos)
      << refused.error().message;
  EXPECT_TRUE(begin(copy, true).ok());
  EXPECT_TRUE(begin(copy).ok()) << "what was forced is its home from then on";
}

TEST(JobHome, IsOnOneMachineAndDevicesCountWithinABoot) {
  const JobHome home{.machine = "m", .boot_id = "b", .device = 1, .inode = 2, .path = "/j"};
  JobHome now = home;
  now.path = "/moved";
  EXPECT_TRUE(is_same_home(home, now));
  now.device = 9;
  EXPECT_FALSE(is_same_home(home, now));
  now.boot_id = "another";
  EXPECT_TRUE(is_same_home(home, now));
  now.machine = "n";
  EXPECT_FALSE(is_same_home(home, now));
}

TEST(JobHome, WhatCannotBeReadIsNoPermission) {
  const TemporaryDirectory folder;
  const SecureDirectory job = made(folder.path() + "/job");
  ASSERT_TRUE(job.write_file(kHomeFile, "{").ok());
  EXPECT_FALSE(check_home(job, false).ok());
  EXPECT_TRUE(check_home(job, true).ok());
}

}  // namespace
}  // namespace monarch
