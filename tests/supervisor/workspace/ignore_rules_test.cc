#include "supervisor/workspace/ignore_rules.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>
#include <sstream>

#include "transport/base/text.h"

namespace monarch {
namespace {

namespace fs = std::filesystem;

struct Tree {
  std::vector<std::string> paths;                // a folder ends in a slash
  std::map<std::string, std::string> git_files;  // by folder
};

std::string without_slash(const std::string& path) {
  return path.substr(0, path.size() - (path.ends_with('/') ? 1 : 0));
}

// As a scan asks: nothing in a folder that is left out.
std::set<std::string> left_out_by_us(const Tree& tree) {
  IgnoreRules rules;
  for (const auto& [folder, content] : tree.git_files) rules.add_file(IgnoreSource::kGit, folder, content);
  std::set<std::string> left_out;
  for (const std::string& path : tree.paths) {
    for (std::size_t end = path.find('/'); end + 1 != 0; end = path.find('/', end + 1)) {
      if (rules.leaves_out(path.substr(0, end), true)) left_out.insert(without_slash(path));
    }
    if (!path.ends_with('/') && rules.leaves_out(path, false)) left_out.insert(path);
  }
  return left_out;
}

int run_git(const std::vector<std::string>& arguments, const std::string& folder, const std::string& in,
            const std::string& out) {
  std::vector<char*> argv;
  std::vector<std::string> words = {"git", "-C", folder, "-c", "core.excludesFile=/dev/null"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t pid = ::fork();
  if (pid == 0) {
    ::dup2(::open(in.c_str(), O_RDONLY | O_CLOEXEC), STDIN_FILENO);
    ::dup2(::open(out.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), STDOUT_FILENO);
    ::setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
    ::execvp("git", argv.data());
    ::_exit(127);
  }
  int status = 0;
  ::waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}

class AgainstGit : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/ignore-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    root_ = folder;
    if (run_git({"init", "-q", root_ + "/tree"}, "/", "/dev/null", root_ + "/said") == 127) {
      GTEST_SKIP() << "there is no git to compare with";
    }
  }
  void TearDown() override { fs::remove_all(root_); }

  std::set<std::string> left_out_by_git(const Tree& tree) {
    const std::string folder = root_ + "/tree";
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename() != ".git") fs::remove_all(entry.path());
    }
    std::string asked;
    for (const std::string& path : tree.paths) {
      const std::string whole = folder + "/" + path;
      fs::create_directories(whole.substr(0, whole.rfind('/')));
      if (!path.ends_with('/')) std::ofstream(whole) << "x";
      asked += without_slash(path) + '\0';
    }
    for (const auto& [where, content] : tree.git_files) {
      std::ofstream(folder + "/" + where + "/.gitignore", std::ios::binary) << content;
    }
    std::ofstream(root_ + "/asked", std::ios::binary) << asked;
    EXPECT_LE(run_git({"check-ignore", "--no-index", "-z", "--stdin"}, folder, root_ + "/asked", root_ + "/said"), 1);
    std::ifstream file(root_ + "/said", std::ios::binary);
    std::set<std::string> left_out;
    for (std::string path; std::getline(file, path, '\0');) left_out.insert(path);
    return left_out;
  }

  void compare(const Tree& tree) {
    std::string shown;
    for (const auto& [folder, content] : tree.git_files) shown += text("[", folder, "/.gitignore]\n", content, "\n");
    EXPECT_EQ(left_out_by_us(tree), left_out_by_git(tree)) << shown;
  }

  std::string root_;
};

const std::vector<std::string> kPaths = {
    "a",         "a.o",         "b.txt",    "src/",    "src/a.o",    "src/main.c",  "src/gen/",
    "src/gen/a", "src/gen/a.o", "build/",   "build/x", "build/keep", "doc/build/",  "doc/build/y",
    "doc/x.pdf", "#hash",       "!bang",    "sp ace",  "trail ",     "foo/bar/baz", "foo/bar/qux/z",
    "x]y",       "back\\slash", "ab/c/d/e", "-dash",   "~tilde",     "UPPER.O"};

TEST_F(AgainstGit, EveryRuleOfItsManualIsKept) {
  for (const char* content : {"*.o",
                              "/a.o",
                              "src/a.o",
                              "src/*.o",
                              "build",
                              "build/",
                              "/build/",
                              "build/*\n!build/keep",
                              "build/\n!build/keep",
                              "*\n!src\n!src/main.c",
                              "*\n!*/\n!*.c",
                              "**/gen",
                              "**/gen/",
                              "src/**",
                              "src/**/a",
                              "**/a",
                              "foo/**/z",
                              "foo/*/z",
                              "foo/bar",
                              "/foo/bar/",
                              "\\#hash",
                              "#hash",
                              "\\!bang",
                              "!bang",
                              "sp ace",
                              "trail\\ ",
                              "trail ",
                              "trail\\  ",
                              "*.o\r\n!a.o\r\n",
                              "\xef\xbb\xbf*.o",
                              "a\n!a\na",
                              "",
                              "\n\n  \n",
                              "/",
                              "!",
                              "!/",
                              "//",
                              "/*",
                              "/*\n!/src",
                              "*/",
                              "*/*",
                              "x\\]y",
                              "x]y",
                              "[a-b]*",
                              "[!a]*",
                              "back\\\\slash",
                              "back\\slash",
                              "ab/**/e",
                              "ab/**/**/e",
                              "ab/***/e",
                              "a**",
                              "/a**",
                              "src/g**",
                              "foo/ba**/z",
                              "**",
                              "/**",
                              "**/",
                              "**/*",
                              "[[:upper:]]*",
                              "*.O",
                              "?",
                              "??",
                              "foo/",
                              "foo//",
                              "foo/bar/qux/",
                              "a/b/c/d/",
                              "\\",
                              "a\\",
                              "[",
                              "[a",
                              "*[",
                              "-dash",
                              "~tilde",
                              "\\~tilde",
                              "src/main.c ",
                              "\tb.txt",
                              "b.txt\t",
                              "doc/*.pdf\n!doc/x.pdf",
                              "doc\n!doc/x.pdf",
                              "! a",
                              "**foo",
                              "**foo/bar",
                              "foo**bar",
                              "foo/**",
                              "foo/**/",
                              "**/foo/**/z",
                              "*a*/*",
                              "**/b*"}) {
    compare({.paths = kPaths, .git_files = {{"", content}}});
  }
}

TEST_F(AgainstGit, TheNearestFileCountsFirst) {
  compare({.paths = kPaths, .git_files = {{"", "*.o"}, {"src", "!a.o"}}});
  compare({.paths = kPaths, .git_files = {{"", "*.o"}, {"src", "!*.o"}, {"src/gen", "a.o"}}});
  compare({.paths = kPaths, .git_files = {{"", "!main.c"}, {"src", "/main.c\n/gen"}}});
  compare({.paths = kPaths, .git_files = {{"", "/src/gen"}, {"src", "!gen"}}});
  compare({.paths = kPaths, .git_files = {{"", "src"}, {"src", "!main.c"}}});
  compare({.paths = kPaths, .git_files = {{"foo", "bar/baz"}, {"foo/bar", "!baz\nqux/z"}}});
}

TEST_F(AgainstGit, MadeUpFilesAreReadTheSame) {
  const auto seed = static_cast<std::mt19937::result_type>(20'260'714);
  std::mt19937 random(seed);
  const auto one_of = [&](const std::vector<std::string>& words) { return words[random() % words.size()]; };
  const std::vector<std::string> parts = {"a", "b", "ab", "a.o", "c", "ba"};
  const std::vector<std::string> pieces = {"a",  "b", "*",   "**", "/",   "?",   "[ab]", "[!a]",
                                           ".o", "c", "\\a", "/",  "***", "[a-", "\\"};
  for (int round = 0; round < 60; ++round) {
    Tree tree;
    std::set<std::string> folders = {""};
    std::set<std::string> taken;
    for (int i = 0; i < 25; ++i) {
      std::string folder;
      for (auto depth = random() % 4; depth > 0; --depth)
        folder += (folder.empty() ? "" : "/") + one_of({"a", "b", "ab"});
      folders.insert(folder);
      taken.insert((folder.empty() ? "" : folder + "/") + one_of({"c", "a.o", "ba", "cab", "bb.o"}));
    }
    tree.paths.assign(taken.begin(), taken.end());
    for (const std::string& folder : folders) {
      // Only such as the files made.
      const bool there = folder.empty() || taken.lower_bound(folder + "/") != taken.lower_bound(folder + "0");
      if (!there || (!folder.empty() && random() % 3 != 0)) continue;
      std::string content;
      for (auto lines = 1 + random() % 5; lines > 0; --lines) {
        if (random() % 3 == 0) content += "!";
        for (auto count = 1 + random() % 5; count > 0; --count) content += one_of(pieces);
        content += "\n";
      }
      tree.git_files[folder] = content;
    }
    SCOPED_TRACE(text("seed ", seed, ", round ", round));
    compare(tree);
    if (HasFailure()) return;
  }
}

TEST(IgnoreRules, TheSpecAndMonarchignoreCountBeforeGitignore) {
  IgnoreRules rules;
  rules.add_file(IgnoreSource::kGit, "", "*.so\n*.log\nbuild/\n");
  rules.add_file(IgnoreSource::kGit, "lib", "data\n");
  rules.add_file(IgnoreSource::kMonarch, "", "!*.so\n!lib/data\n*.ckpt\n");
  rules.add_pattern(IgnoreSource::kSpec, "secret.so");
  rules.add_pattern(IgnoreSource::kSpec, "#odd");
  EXPECT_FALSE(rules.leaves_out("lib/x.so", false)) << "taken in again";
  EXPECT_FALSE(rules.leaves_out("lib/data", false)) << "also what a deeper .gitignore leaves out";
  EXPECT_TRUE(rules.leaves_out("a.log", false));
  EXPECT_TRUE(rules.leaves_out("a.ckpt", false));
  EXPECT_TRUE(rules.leaves_out("build", true));
  EXPECT_FALSE(rules.leaves_out("build", false));
  EXPECT_TRUE(rules.leaves_out("lib/secret.so", false));
  EXPECT_TRUE(rules.leaves_out("#odd", false)) << "in the spec it is no comment";
  EXPECT_FALSE(rules.leaves_out("main.py", false));
}

TEST(IgnoreRules, WhatGitKeepsForItselfIsNeverTaken) {
  IgnoreRules rules;
  rules.add_file(IgnoreSource::kMonarch, "", "!.git\n");
  EXPECT_TRUE(rules.leaves_out(".git", true));
  EXPECT_TRUE(rules.leaves_out("module/.git", false));
  EXPECT_FALSE(rules.leaves_out(".gitignore", false));
  EXPECT_FALSE(rules.leaves_out("x.git", true));
}

}  // namespace
}  // namespace monarch
