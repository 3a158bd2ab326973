#include "worker/errand/workspace_main.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "transport/base/files/tree_manifest.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"
#include "worker/errand/blob_cache.h"
#include "worker/errand/tree_builder.h"

namespace monarch {
namespace {

namespace fs = std::filesystem;

constexpr char kUuid[] = "0123456789abcdef0123456789abcdef";

struct Answer {
  int code = 0;
  std::string words;
};

// In a process of its own, with all that is said to it known beforehand: what it needs is.
class WorkspaceMain : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/tree-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    root_ = folder;
    fs::create_directories(cache());
    fs::create_directories(root_ + "/outside");
  }
  void TearDown() override { fs::remove_all(root_); }

  std::string cache() const { return root_ + "/cache"; }
  std::string blobs() const { return cache() + "/monarch/blobs"; }
  std::string state() const { return root_ + "/state/monarch/hosts/job-1a2b/gpu7"; }
  std::string tree() const { return state() + "/workspace"; }

  Answer run(const std::string& input, const std::string& host = "gpu7") const {
    std::ofstream(root_ + "/in", std::ios::binary) << input;
    const pid_t pid = ::fork();
    if (pid == 0) {
      ::dup2(::open((root_ + "/in").c_str(), O_RDONLY | O_CLOEXEC), STDIN_FILENO);
      ::dup2(::open((root_ + "/out").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), STDOUT_FILENO);
      ::setenv("XDG_CACHE_HOME", cache().c_str(), 1);
      ::setenv("XDG_STATE_HOME", (root_ + "/state").c_str(), 1);
      ::umask(077);
      ::_exit(workspace_main({"--job", kUuid, "--host", host, "--job-id", "job-1a2b"}));
    }
    int status = 0;
    ::waitpid(pid, &status, 0);
    return {.code = WEXITSTATUS(status), .words = without_progress(read(root_ + "/out"))};
  }

  // How far it is says only one that takes longer than a second, as a busy disk has it.
  static std::string without_progress(const std::string& words) {
    std::istringstream lines(words);
    std::string kept;
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("at ")) kept += line + "\n";
    }
    return kept;
  }

  static std::string read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  std::string root_;
};

TreeEntry entry(std::string path, TreeEntryKind kind) {
  TreeEntry made;
  made.path = std::move(path);
  made.kind = kind;
  return made;
}

TreeEntry file(std::string path, std::string_view content, bool executable = false) {
  TreeEntry made = entry(std::move(path), TreeEntryKind::kFile);
  made.size = content.size();
  made.sha256 = sha256(content);
  made.executable = executable;
  return made;
}

TreeEntry link(std::string path, std::string target) {
  TreeEntry made = entry(std::move(path), TreeEntryKind::kLink);
  made.target = std::move(target);
  return made;
}

std::string announce(const std::string& manifest) { return text("tree ", manifest.size(), '\n', manifest); }

std::string announce(std::vector<TreeEntry> entries) {
  return announce(encode_manifest(TreeManifest{.entries = std::move(entries)}));
}

const std::vector<TreeEntry> kTree = {file("main.py", "print(1)\n"), entry("pkg", TreeEntryKind::kFolder),
                                      file("pkg/again.py", "print(1)\n"), link("pkg/main", "../main.py"),
                                      file("run.sh", "#!/bin/sh\n", true)};

TEST_F(WorkspaceMain, MakesTheTreeOfWhatItAskedFor) {
  const Answer answer = run(announce(kTree) + "print(1)\n#!/bin/sh\n");
  EXPECT_EQ(answer.words, "need 0\nneed 1\nend\nbuilt 19\n");
  EXPECT_EQ(answer.code, 0);
  EXPECT_EQ(read(tree() + "/pkg/again.py"), "print(1)\n");
  EXPECT_EQ(read(tree() + "/pkg/main"), "print(1)\n");
  struct stat status {};
  ASSERT_EQ(::stat((tree() + "/run.sh").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  ASSERT_EQ(::stat((tree() + "/main.py").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(status.st_nlink, 1U) << "a rank that writes into it must not change the cache";
  ASSERT_EQ(::stat(blobs().c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  EXPECT_EQ(std::distance(fs::directory_iterator(blobs()), {}), 2) << "and nothing that was on its way";
}

TEST_F(WorkspaceMain, AsksOnlyForWhatIsNotThere) {
  ASSERT_EQ(run(announce(kTree) + "print(1)\n#!/bin/sh\n").code, 0);
  EXPECT_EQ(run(announce(kTree), "gpu8").words, "end\nbuilt 0\n") << "another host with the same home";
  std::vector<TreeEntry> edited = kTree;
  edited[0] = file("main.py", "print(2)\n");
  const Answer answer = run(announce(edited) + "print(2)\n", "gpu9");
  EXPECT_EQ(answer.words, "need 0\nend\nbuilt 9\n");
}

TEST_F(WorkspaceMain, ATreeThatIsThereStaysAsItsRanksLeftIt) {
  ASSERT_EQ(run(announce(kTree) + "print(1)\n#!/bin/sh\n").code, 0);
  std::ofstream(tree() + "/checkpoint") << "step 7";
  EXPECT_EQ(run(announce(kTree)).words, "end\nbuilt 0\n");
  EXPECT_EQ(read(tree() + "/checkpoint"), "step 7");
  EXPECT_EQ(run(announce({file("main.py", "print(1)\n")})).words, "end\nbuilt 0\n") << "another tree takes its place";
  EXPECT_FALSE(fs::exists(tree() + "/checkpoint"));
  EXPECT_FALSE(fs::exists(tree() + "/pkg"));
}

TEST_F(WorkspaceMain, WhatARankWritesDoesNotReachTheCache) {
  ASSERT_EQ(run(announce(kTree) + "print(1)\n#!/bin/sh\n").code, 0);
  std::ofstream(tree() + "/main.py") << "broken";
  EXPECT_EQ(run(announce(kTree), "gpu8").code, 0);
  EXPECT_EQ(read(root_ + "/state/monarch/hosts/job-1a2b/gpu8/workspace/main.py"), "print(1)\n");
}

TEST_F(WorkspaceMain, WhatComesIsCheckedByItsHash) {
  const Answer answer = run(announce(kTree) + "print(9)\n#!/bin/sh\n");
  EXPECT_EQ(answer.code, 1);
  EXPECT_NE(answer.words.find("\nfailed refused what came as"), std::string::npos) << answer.words;
  EXPECT_FALSE(fs::exists(tree()));
  EXPECT_TRUE(fs::is_empty(blobs()));
}

TEST_F(WorkspaceMain, WhatWasDamagedOnTheDiskIsAskedForOnceMore) {
  ASSERT_EQ(run(announce(kTree) + "print(1)\n#!/bin/sh\n").code, 0);
  const std::string kept = blobs() + "/" + sha256("print(1)\n");
  std::ofstream(kept) << "print(8)\n";
  const std::string other = root_ + "/state/monarch/hosts/job-1a2b/gpu8";
  const Answer answer = run(announce(kTree) + "print(1)\n", "gpu8");
  EXPECT_EQ(answer.words, "end\nneed 0\nend\nbuilt 9\n");
  EXPECT_EQ(read(other + "/workspace/main.py"), "print(1)\n");
  EXPECT_EQ(read(other + "/workspace/pkg/again.py"), "print(1)\n");
  EXPECT_EQ(read(kept), "print(1)\n");
  std::ofstream(kept) << "print(8)\n";
  const Answer damaged_again = run(announce(kTree) + "print(9)\n", "gpu9");
  EXPECT_EQ(damaged_again.code, 1);
  EXPECT_TRUE(damaged_again.words.starts_with("end\nneed 0\nend\nfailed refused what came as")) << damaged_again.words;
  EXPECT_FALSE(fs::exists(root_ + "/state/monarch/hosts/job-1a2b/gpu9/workspace"));
}

TEST_F(WorkspaceMain, AnInputThatBreaksLeavesNothing) {
  for (const std::string& input :
       {announce(kTree) + "print(1)\n#!", announce(kTree), std::string("tree 500\nmonarch-tree 1\n")}) {
    const Answer answer = run(input);
    EXPECT_EQ(answer.code, 1);
    EXPECT_NE(answer.words.find("failed short the input ended midway\n"), std::string::npos) << answer.words;
    EXPECT_FALSE(fs::exists(tree()));
    EXPECT_TRUE(!fs::exists(blobs()) || fs::is_empty(blobs()));
  }
}

TEST_F(WorkspaceMain, NothingOutsideOfItsTreeIsTouched) {
  std::ofstream(root_ + "/outside/canary") << "alive";
  const std::string hash = sha256("x");
  const auto raw = [&](std::string_view path) { return text("f - 1 ", hash, ' ', path, '\0'); };
  const std::string up = "../../../../../../outside/canary";
  std::vector<std::string> trees = {raw(up),
                                    raw(root_ + "/outside/canary"),
                                    raw("a/../../" + up),
                                    raw(".."),
                                    raw("."),
                                    raw(""),
                                    raw("a//b"),
                                    raw("x\ny"),
                                    raw("a") + raw("a"),
                                    raw("a") + raw("a/b"),
                                    text("l l", '\0', up, '\0'),
                                    text("l l", '\0', root_, "/outside", '\0') + raw("l/canary"),
                                    text("l l", '\0', "..", '\0'),
                                    text("d d", '\0', "l d/l", '\0', "../..", '\0'),
                                    text("l l", '\0', ".", '\0') + raw("l/x"),
                                    std::string("f - 1 ../../../outside/canary d/x\0", 34)};
  for (const std::string& entries : trees) {
    const Answer answer = run(announce("monarch-tree 1\n" + entries) + "xxxx");
    EXPECT_EQ(answer.code, 1) << printable(entries);
    EXPECT_TRUE(answer.words.starts_with("failed refused ")) << printable(entries) << ": " << answer.words;
  }
  for (const std::string& words : {std::string("tree 99999999999\n"), std::string("tree x\n"), std::string("\n"),
                                   std::string("tree -1\n"), std::string(100, 'x'), std::string("tree 3\nabc")}) {
    EXPECT_TRUE(run(words).words.starts_with("failed refused ")) << words;
  }
  EXPECT_EQ(read(root_ + "/outside/canary"), "alive");
  EXPECT_EQ(std::distance(fs::directory_iterator(root_ + "/outside"), {}), 1);
  EXPECT_FALSE(fs::exists(state()));
}

TEST_F(WorkspaceMain, APlantedCacheIsRefusedByName) {
  fs::create_directories(cache() + "/monarch");
  fs::create_symlink(root_ + "/outside", blobs());
  ASSERT_EQ(::chmod((root_ + "/outside").c_str(), 0777),
            0);  // a folder that others may write to, behind a link of one's own
  const Answer answer = run(announce(kTree));
  EXPECT_TRUE(answer.words.starts_with("failed refused " + blobs())) << answer.words;
  fs::remove(blobs());
  fs::create_directories(blobs());
  ASSERT_EQ(::chmod(blobs().c_str(), 0777), 0);
  EXPECT_TRUE(run(announce(kTree)).words.starts_with("failed refused " + blobs()));
  // One that is no file of ours is not taken, and what comes takes its place.
  ASSERT_EQ(::chmod(blobs().c_str(), 0700), 0);
  std::ofstream(root_ + "/outside/evil") << "print(6)\n";
  fs::create_symlink(root_ + "/outside/evil", blobs() + "/" + sha256("print(1)\n"));
  EXPECT_EQ(run(announce(kTree) + "print(1)\n#!/bin/sh\n").words, "need 0\nneed 1\nend\nbuilt 19\n");
  EXPECT_EQ(read(tree() + "/main.py"), "print(1)\n");
  EXPECT_EQ(read(root_ + "/outside/evil"), "print(6)\n");
}

TEST_F(WorkspaceMain, TheTreeGoesWhateverItsRanksMadeOfIt) {
  ASSERT_EQ(run(announce(kTree) + "print(1)\n#!/bin/sh\n").code, 0);
  fs::create_directories(tree() + "/closed/deep");
  std::ofstream(tree() + "/closed/deep/x") << "x";
  fs::create_symlink(root_ + "/outside", tree() + "/closed/out");
  std::ofstream(root_ + "/outside/canary") << "alive";
  ASSERT_EQ(::chmod((tree() + "/closed").c_str(), 0), 0);
  fs::create_directories(state() + "/ranks/plugins");
  std::ofstream(state() + "/ranks/monarch-rank") << "x";
  const Status removed = remove_trees(state());
  EXPECT_TRUE(removed.ok()) << removed.error().message;
  EXPECT_TRUE(fs::is_empty(state()));
  EXPECT_EQ(read(root_ + "/outside/canary"), "alive");
  EXPECT_TRUE(remove_trees(state()).ok()) << "once more changes nothing";
  EXPECT_TRUE(remove_trees(root_ + "/none").ok());
}

TEST_F(WorkspaceMain, TheCacheForgetsWhatWasNotUsedLongest) {
  const auto opened = BlobCache::open({{"XDG_CACHE_HOME", cache()}});
  ASSERT_TRUE(opened.ok()) << opened.error().message;
  BlobCache& blob_cache = **opened;
  const std::int64_t now = ::time(nullptr);
  std::vector<TreeBlob> kept;
  for (const std::string content : {"aaaa", "bbbb", "cccc"}) {
    kept.push_back({.sha256 = sha256(content), .size = 4});
    ASSERT_TRUE(blob_cache.begin().ok());
    ASSERT_TRUE(blob_cache.add(content).ok());
    ASSERT_TRUE(blob_cache.finish(kept.back()).ok());
  }
  ASSERT_TRUE(blob_cache.keep().ok());
  const auto used = [&](std::size_t index, std::int64_t before) {
    const timespec times[2] = {{now - before, 0}, {now - before, 0}};
    ASSERT_EQ(::utimensat(AT_FDCWD, (blobs() + "/" + kept[index].sha256).c_str(), times, 0), 0);
  };
  EXPECT_EQ(blob_cache.trim(0, now), 0U) << "all of them were just used";
  used(0, 9'000);
  used(1, 10'000);
  used(2, 8'000);
  EXPECT_TRUE(blob_cache.has(kept[1])) << "which counts as a use";
  EXPECT_EQ(blob_cache.trim(12, now), 0U);
  EXPECT_EQ(blob_cache.trim(8, now), 1U);
  EXPECT_FALSE(blob_cache.has(kept[0]));
  EXPECT_EQ(blob_cache.trim(0, now), 1U);
  EXPECT_FALSE(blob_cache.has(kept[2]));
  EXPECT_TRUE(blob_cache.has(kept[1]));
}

}  // namespace
}  // namespace monarch
