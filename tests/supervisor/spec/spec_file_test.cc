#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "tests/supervisor/spec/spec_text.h"
#include "transport/base/limits.h"

namespace monarch {
namespace {

class SpecFile : public ::testing::Test {
 protected:
  SpecFile() {
    std::string name = std::filesystem::temp_directory_path().string() + "/spec-file-XXXXXX";
    folder_ = ::mkdtemp(name.data());
  }
  ~SpecFile() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& name, const std::string& text) {
    const std::string path = folder_ + "/" + name;
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }

  std::string refusal(const std::string& path) {
    const auto source = read_spec_file(path);
    return source.ok() ? "was read" : source.error().message;
  }

  std::string folder_;
};

TEST_F(SpecFile, GivesTextNameAndFolder) {
  const std::string path = write("a.yaml", "version: 1\n");
  const auto source = read_spec_file(path);
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source->text, "version: 1\n");
  EXPECT_EQ(source->name, path);
  EXPECT_EQ(source->directory, folder_);
}

TEST_F(SpecFile, NamesPathAndReason) {
  EXPECT_EQ(refusal(folder_ + "/none.yaml"),
            "cannot read the spec " + folder_ + "/none.yaml: No such file or directory");
  EXPECT_EQ(refusal(folder_), "cannot read the spec " + folder_ + ": it is a folder");
  EXPECT_EQ(refusal("/dev/null"), "cannot read the spec /dev/null: it is neither a file nor a pipe");
  EXPECT_EQ(refusal(""), "cannot read the spec : No such file or directory");
  EXPECT_EQ(refusal("/\x1b[2J"), "cannot read the spec /\\x1b[2J: No such file or directory");
}

TEST_F(SpecFile, ReadsAPipeToItsEndAsOfTheWorkingDirectory) {
  const std::string path = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  std::thread writer([&path] {  // in pieces, and a while after it was opened
    std::ofstream pipe(path);
    for (int i = 0; i < 3; ++i) pipe << std::string(40'000, '#') << std::endl;
  });
  const auto source = read_spec_file(path);
  writer.join();
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source->text.size(), 3 * 40'001U);
  EXPECT_EQ(source->directory, std::filesystem::current_path().string());
  EXPECT_TRUE(source->is_stream);
}

TEST_F(SpecFile, WaitsForAPipeNoLongerThanItMay) {
  const std::string path = folder_ + "/pipe";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  const auto source = read_spec_file(path, Duration::milliseconds(20));
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.error().message, "cannot read the spec " + path + ": it is a pipe that did not end within 20ms");
}

TEST_F(SpecFile, RefusesMoreThanAMebibyte) {
  const auto refused_as_too_large = [&](const std::string& bytes) {
    const auto source = read_spec_file(write("spec", bytes));
    return source.ok() && ids(load_spec(*source)) == std::vector<std::string>{"E0002"};
  };
  const std::string mark = "\xEF\xBB\xBF";
  EXPECT_FALSE(refused_as_too_large(std::string(limits::kSpecBytes, '#')));
  EXPECT_FALSE(refused_as_too_large(mark + std::string(limits::kSpecBytes, '#')));
  EXPECT_TRUE(refused_as_too_large(std::string(limits::kSpecBytes + 1, '#')));
  EXPECT_TRUE(refused_as_too_large(mark + std::string(limits::kSpecBytes + 1, '#')));
  EXPECT_TRUE(refused_as_too_large(std::string(3 * limits::kSpecBytes, '#')));
}

TEST_F(SpecFile, ReadsStandardInputToItsEnd) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  ASSERT_EQ(::write(ends[1], "version: 1\n", 11), 11);
  ::close(ends[1]);
  const auto source = read_spec_stdin(ends[0]);
  ::close(ends[0]);
  ASSERT_TRUE(source.ok()) << source.error().message;
  EXPECT_EQ(source->text, "version: 1\n");
  EXPECT_EQ(source->name, "<stdin>");
  EXPECT_EQ(source->directory, std::filesystem::current_path().string());
}

TEST_F(SpecFile, NamesWhatStandardInputIsInstead) {
  const int folder = ::open(folder_.c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(read_spec_stdin(folder).error().message, "cannot read the spec <stdin>: Is a directory");
  ::close(folder);
  const int terminal = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
  EXPECT_EQ(read_spec_stdin(terminal).error().message, "cannot read the spec <stdin>: standard input is a terminal");
  ::close(terminal);
}

TEST_F(SpecFile, HashesAPluginAndNothingElse) {
  const auto said = [](const std::string& path, Duration patience = Duration::forever()) {
    const auto hashed = users_surroundings(patience).hash_plugin(path);
    return hashed.ok() ? *hashed : hashed.error().message;
  };
  const std::string path = write("p.so", "abc");
  EXPECT_EQ(said(path), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  EXPECT_EQ(said(path, Duration::zero()), path + " was not read to its end within 0s");
  ASSERT_EQ(::chmod(path.c_str(), 0646), 0);
  EXPECT_EQ(said(path), path + " may be written to by everybody: chmod o-w");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  std::filesystem::resize_file(path, (1U << 30U) + 1);
  EXPECT_EQ(said(path), path + " has 1GiB, and a plugin has 1GiB at most");
  EXPECT_EQ(said("/proc/self/environ"), "/proc/self/environ is made up by the kernel");
  EXPECT_EQ(said(folder_), folder_ + " is no file");
}

// The file's group here is that of who runs this, which may be the user's own or not.
TEST_F(SpecFile, TakesNoPluginThatOthersMayWriteTo) {
  const auto said = [](const std::string& path) {
    const auto hashed = users_surroundings().hash_plugin(path);
    return hashed.ok() ? std::string("taken") : hashed.error().message;
  };
  const std::string path = write("q.so", "abc");
  if (::geteuid() != 0) GTEST_SKIP() << "only root gives files away";
  ASSERT_EQ(::chmod(path.c_str(), 0664), 0);
  EXPECT_EQ(said(path), "taken") << "root is alone in its group";
  ASSERT_EQ(::chown(path.c_str(), 0, 1), 0);
  EXPECT_EQ(said(path), path + " may be written to by the group 1: chmod g-w");
  ASSERT_EQ(::chmod(path.c_str(), 0644), 0);
  EXPECT_EQ(said(path), "taken");
  ASSERT_EQ(::chown(path.c_str(), 1, 1), 0);
  EXPECT_EQ(said(path), path + " belongs to user 1, who may write to it: use a copy of yours");
}

TEST_F(SpecFile, SaysWhatMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::string path = write("secret.yaml", "");
  ASSERT_EQ(::chmod(path.c_str(), 0), 0);
  EXPECT_EQ(refusal(path), "cannot read the spec " + path + ": Permission denied");
}

}  // namespace
}  // namespace monarch
