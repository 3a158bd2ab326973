#include "supervisor/workspace/scan.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <thread>

#include "supervisor/workspace/pack.h"
#include "supervisor/workspace/pack_thread.h"
#include "transport/base/sanitizers.h"
#include "transport/base/sha256.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

namespace fs = std::filesystem;

class Workspace : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/workspace-XXXXXX";
    ASSERT_NE(::mkdtemp(folder), nullptr);
    root_ = folder;
    spec_.path = root_ + "/tree";
    fs::create_directories(spec_.path);
    fs::create_directories(root_ + "/job");
    job_ = UniqueFd(::open((root_ + "/job").c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  }
  void TearDown() override { fs::remove_all(root_); }

  void write(const std::string& path, const std::string& content) const {
    const std::string whole = spec_.path + "/" + path;
    fs::create_directories(whole.substr(0, whole.rfind('/')));
    std::ofstream(whole, std::ios::binary) << content;
  }

  std::vector<std::string> paths() const {
    const auto scanned = scan_workspace(spec_);
    EXPECT_TRUE(scanned.ok()) << scanned.error().message;
    std::vector<std::string> paths;
    for (const TreeEntry& entry : scanned->tree.entries) paths.push_back(entry.path);
    return paths;
  }

  using Paths = std::vector<std::string>;
  std::string root_;
  WorkspaceSpec spec_;
  UniqueFd job_;
};

TEST_F(Workspace, IsAllButWhatItsRulesLeaveOut) {
  write("main.py", "print(1)\n");
  write("pkg/__init__.py", "");
  write("pkg/__pycache__/x.pyc", "x");
  write("pkg/native.so", "elf");
  write("runs/1/model.ckpt", "big");
  write(".git/config", "[core]");
  write(".gitignore", "__pycache__/\n*.so\n");
  write(".monarchignore", "!native.so\n");
  spec_.exclude = {"/runs"};
  EXPECT_EQ(paths(), (Paths{".gitignore", ".monarchignore", "main.py", "pkg", "pkg/__init__.py", "pkg/native.so"}));
  const auto scanned = scan_workspace(spec_);
  EXPECT_EQ(scanned->files, 5U);
  EXPECT_EQ(scanned->bytes, 9U + 3 + 18 + 11);
  EXPECT_TRUE(scanned->left_out.empty()) << "what a rule leaves out is no news";
}

TEST_F(Workspace, ParentsComeBeforeWhatLiesInThem) {
  write("a/b", "1");
  write("a-b", "2");
  write("a.d/x", "3");
  EXPECT_EQ(paths(), (Paths{"a", "a-b", "a.d", "a.d/x", "a/b"}));
  const auto pack = WorkspacePack::make(job_.get(), spec_);
  ASSERT_TRUE(pack.ok()) << pack.error().message;
}

TEST_F(Workspace, WhatCannotBeSentIsNamed) {
  write("a", "1");
  write("d/b", "2");
  fs::create_symlink("../a", spec_.path + "/d/inside");
  fs::create_symlink("/etc/passwd", spec_.path + "/d/absolute");
  fs::create_symlink("../../x", spec_.path + "/d/up");
  fs::create_symlink(".", spec_.path + "/loop");
  ASSERT_EQ(::mkfifo((spec_.path + "/fifo").c_str(), 0600), 0);
  write("new\nline", "3");
  const auto scanned = scan_workspace(spec_);
  ASSERT_TRUE(scanned.ok()) << scanned.error().message;
  EXPECT_EQ(paths(), (Paths{"a", "d", "d/b", "d/inside", "loop"}));
  Paths left_out = scanned->left_out;
  std::sort(left_out.begin(), left_out.end());
  EXPECT_EQ(left_out,
            (Paths{"d/absolute: leads out of the tree, to `/etc/passwd`", "d/up: leads out of the tree, to `../../x`",
                   "fifo: is a fifo", "new\\x0aline: has a control character"}));
}

TEST_F(Workspace, WhatMayHoldASecretIsLeftOutByNameUnlessItIsWanted) {
  for (const char* path : {".env", "app/.env", ".netrc", ".aws/credentials", ".kube/config", "x/.docker/config.json",
                           ".docker/config.json", ".env.production", ".git-credentials", ".npmrc", ".pypirc", ".pgpass",
                           "_netrc", ".vault-token"}) {
    write(path, "secret");
  }
  write("deploy", "-----BEGIN RSA PRIVATE KEY-----\nMIIE\n");
  write("key.ppk", "PuTTY-User-Key-File-3: ssh-ed25519\n");
  write(".env.example", "TOKEN=\n");
  write("about_keys.py", "BEGIN = '-----BEGIN RSA PRIVATE KEY-----'\n");
  for (const char* path : {"tls/server.pem", "tls/ca.pem", "id_ed25519", "keys/id_github"}) {
    write(path, "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n");
  }
  for (const char* path : {"id_map.py", ".docker/daemon.json", "config.json", "env", "kube/config"})
    write(path, "none");
  // A virtual environment, a package, certificates.
  for (const char* path : {"venv/.env/bin", "id_mapping/map.py", "id_list", "certifi/cacert.pem"})
    write(path, "public");
  spec_.include = {"ca.pem", "/app/.env"};
  const auto scanned = scan_workspace(spec_);
  ASSERT_TRUE(scanned.ok()) << scanned.error().message;
  EXPECT_EQ(paths(), (Paths{".docker",
                            ".docker/daemon.json",
                            ".env.example",
                            "about_keys.py",
                            "app",
                            "app/.env",
                            "certifi",
                            "certifi/cacert.pem",
                            "config.json",
                            "env",
                            "id_list",
                            "id_map.py",
                            "id_mapping",
                            "id_mapping/map.py",
                            "keys",
                            "kube",
                            "kube/config",
                            "tls",
                            "tls/ca.pem",
                            "venv",
                            "venv/.env",
                            "venv/.env/bin",
                            "x",
                            "x/.docker"}));
  Paths left_out = scanned->left_out;
  std::sort(left_out.begin(), left_out.end());
  ASSERT_EQ(left_out.size(), 18U);
  EXPECT_EQ(left_out.front(), ".aws: may hold a secret; `workspace.include` takes it");
  // A rule of the user's that leaves it out is no news.
  spec_.exclude = {"id_*",   ".env*",   ".netrc",  ".aws",   ".kube",        ".docker", "*.pem", ".git-credentials",
                   ".npmrc", ".pypirc", ".pgpass", "_netrc", ".vault-token", "deploy",  "*.ppk"};
  EXPECT_TRUE(scan_workspace(spec_)->left_out.empty());
}

TEST_F(Workspace, OneThatIsTooLargeNamesItsLargestFiles) {
  for (int i = 0; i < 12; ++i) write(text("data/", i), std::string(static_cast<std::size_t>(1024 * (i + 1)), 'x'));
  spec_.max_bytes = 10'240;
  const auto scanned = scan_workspace(spec_);
  ASSERT_FALSE(scanned.ok());
  EXPECT_EQ(scanned.error().code, ErrorCode::kBusy);
  const std::string& message = scanned.error().message;
  EXPECT_NE(
      message.find("has 78KiB in 12 files, more than the 10KiB of workspace.max_size; its largest: data/11 (12KiB), "
                   "data/10 (11KiB)"),
      std::string::npos)
      << message;
  EXPECT_EQ(message.find("data/1 ("), std::string::npos) << "ten are enough";
  spec_.exclude = {"data"};
  EXPECT_TRUE(scan_workspace(spec_).ok());
}

TEST_F(Workspace, OneThatIsNotThereIsSaid) {
  spec_.path += "/none";
  EXPECT_EQ(scan_workspace(spec_).error().code, ErrorCode::kNotFound);
  EXPECT_NE(scan_workspace(spec_).error().message.find(spec_.path), std::string::npos);
}

TEST_F(Workspace, PackHoldsEachContentOnceAndAsItWas) {
  write("a", "same");
  write("b", "other");
  write("c", "same");
  write("empty", "");
  write("run.sh", "#!/bin/sh\n");
  ASSERT_EQ(::chmod((spec_.path + "/run.sh").c_str(), 0755), 0);
  const auto made = WorkspacePack::make(job_.get(), spec_);
  ASSERT_TRUE(made.ok()) << made.error().message;
  write("a", "edited while the job runs");
  const auto pack = WorkspacePack::open(job_.get());
  ASSERT_TRUE(pack.ok()) << pack.error().message;
  EXPECT_EQ((*pack)->manifest(), (*made)->manifest());
  EXPECT_EQ((*pack)->files(), 5U);
  EXPECT_EQ((*pack)->bytes(), 23U);
  ASSERT_EQ((*pack)->blobs().size(), 4U);
  for (const TreeBlob& blob : (*pack)->blobs()) {
    if (blob.size == 0) continue;
    const auto bytes = (*pack)->read(blob.offset, blob.size);
    ASSERT_TRUE(bytes.ok()) << bytes.error().message;
    EXPECT_EQ(sha256(*bytes), blob.sha256);
  }
  const auto tree = parse_manifest((*pack)->manifest());
  ASSERT_TRUE(tree.ok()) << tree.error().message;
  EXPECT_TRUE(tree->entries.back().executable);
  EXPECT_FALSE(tree->entries.front().executable);
  struct stat status {};
  ASSERT_EQ(::stat((root_ + "/job/workspace.blobs").c_str(), &status), 0);
  EXPECT_EQ(status.st_size, 19) << "same, other and the script";
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  WorkspacePack::remove(job_.get());
  EXPECT_TRUE(fs::is_empty(root_ + "/job"));
  EXPECT_EQ(WorkspacePack::open(job_.get()).error().code, ErrorCode::kNotFound);
}

TEST_F(Workspace, APackThatWasCutIsNone) {
  write("a", "content");
  ASSERT_TRUE(WorkspacePack::make(job_.get(), spec_).ok());
  ASSERT_EQ(::truncate((root_ + "/job/workspace.blobs").c_str(), 3), 0);
  EXPECT_FALSE(WorkspacePack::open(job_.get()).ok());
}

TEST_F(Workspace, ADamagedPackIsNotMadeAgainOutOfWhatTheFolderIsNow) {
  write("a", "first");
  ASSERT_TRUE(WorkspacePack::make(job_.get(), spec_).ok());
  ASSERT_EQ(::unlinkat(job_.get(), kPackBlobsFile, 0), 0);
  write("a", "second");
  const auto loop = EventLoop::create();
  ASSERT_TRUE(loop.ok());
  std::optional<ErrorCode> told;
  UniqueFd job(::fcntl(job_.get(), F_DUPFD_CLOEXEC, 0));
  const auto thread = PackThread::start(**loop, std::move(job), spec_, [&](MadePack made) {
    if (!made.ok()) told = made.error().code;
    (*loop)->stop();
  });
  ASSERT_TRUE(thread.ok());
  (*loop)->at((*loop)->now() + Duration::seconds(20), [&] { (*loop)->stop(); });
  (*loop)->run();
  EXPECT_EQ(told, ErrorCode::kGone);
}

TEST_F(Workspace, AFileThatGoesOnChangingIsSaid) {
  write("log", std::string((kSanitized ? 2U : 8U) << 20U, 'x'));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    const UniqueFd file(::open((spec_.path + "/log").c_str(), O_WRONLY | O_CLOEXEC));
    for (std::uint64_t n = 0; !done; ++n) (void)!::pwrite(file.get(), &n, sizeof n, 0);
  });
  const auto pack = WorkspacePack::make(job_.get(), spec_);
  done = true;
  writer.join();
  ASSERT_FALSE(pack.ok());
  EXPECT_NE(pack.error().message.find("log changes while it is read"), std::string::npos) << pack.error().message;
}

TEST_F(Workspace, AFileThatMayNotBeReadIsSaid) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  write("secret", "x");
  ASSERT_EQ(::chmod((spec_.path + "/secret").c_str(), 0), 0);
  const auto pack = WorkspacePack::make(job_.get(), spec_);
  ASSERT_FALSE(pack.ok());
  EXPECT_EQ(pack.error().message, "the workspace " + spec_.path + ": opening secret: Permission denied");
}

TEST_F(Workspace, LeavesKeysOfAHomeAtHome) {
  write(".ssh/id_ed25519", "k");
  write("a", "x");
  const auto pack = WorkspacePack::make(job_.get(), spec_);
  ASSERT_TRUE(pack.ok()) << pack.error().message;
  EXPECT_EQ((*pack)->left_out(), std::vector<std::string>{".ssh: holds keys, and is never copied"});
  const auto tree = parse_manifest((*pack)->manifest());
  ASSERT_TRUE(tree.ok());
  ASSERT_EQ(tree->entries.size(), 1U);
  EXPECT_EQ(tree->entries[0].path, "a");
}

}  // namespace
}  // namespace monarch
