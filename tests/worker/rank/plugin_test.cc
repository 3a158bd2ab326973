// Plugins that were built beside this test, and files that are none.

#include "worker/rank/plugin.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <string_view>

#include "transport/base/sha256.h"
#include "transport/base/text.h"
#include "worker/rank/elf_file.h"

namespace monarch {
namespace {

std::string built(const char* name) { return std::string(std::getenv("MONARCH_TEST_PLUGINS")) + "/" + name; }

std::string read(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class PluginTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "plugin-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::string write(const std::string& bytes) {
    const std::string path = folder_ + "/x.so";
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  std::string copies() const { return folder_ + "/copies"; }
  // Without the path.
  std::string refusal(const std::string& path, const std::string& sha256 = {}) const {
    const auto plugin = Plugin::open(path, sha256, copies());
    if (plugin.ok()) return "none";
    std::string words = plugin.error().message;
    for (std::size_t at = words.find(path); at != std::string::npos; at = words.find(path)) {
      words.replace(at, path.size(), "X");
    }
    return words;
  }

  std::string folder_;
};

TEST_F(PluginTest, IsLoadedWithItsClassesAndControllers) {
  const std::string path = built("libgreeter.so");
  const auto plugin = Plugin::open(path, sha256(read(path)), copies());
  ASSERT_TRUE(plugin.ok()) << plugin.error().message;
  const auto found = (*plugin)->find_class("Greeter");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_EQ((*found)->endpoint_count, 2U);
  EXPECT_STREQ((*found)->endpoints[0].signature, "s->s");
  EXPECT_TRUE((*plugin)->find_controller("drive").ok());
  EXPECT_EQ((*plugin)->find_class("Greter").error().message,
            text("plugin ", path, " has no class Greter; did you mean Greeter?"));
  EXPECT_EQ((*plugin)->find_controller("x").error().message,
            text("plugin ", path, " has no controller x; it has drive"));
}

TEST_F(PluginTest, IsTheOneThatTheJobBeganWith) {
  const std::string path = built("libgreeter.so");
  EXPECT_EQ(refusal(path, std::string(64, '0')), text("plugin X was changed since the job began: its sha256 is ",
                                                      sha256(read(path)), ", and was ", std::string(64, '0')));
}

// As `cp` does it, which writes into the very file.
TEST_F(PluginTest, GoesOnWhateverIsWrittenIntoItsFile) {
  const std::string path = write(read(built("libgreeter.so")));
  const auto plugin = Plugin::open(path, "", copies());
  ASSERT_TRUE(plugin.ok()) << plugin.error().message;
  std::filesystem::resize_file(path, 0);
  const auto found = (*plugin)->find_class("Greeter");
  ASSERT_TRUE(found.ok()) << found.error().message;
  EXPECT_STREQ((*found)->endpoints[0].signature, "s->s");
  write(read(built("liblater_abi.so")));
  EXPECT_EQ(refusal(path).substr(0, 24), "plugin X speaks version ") << "whoever loads it now gets what is there now";
}

TEST_F(PluginTest, IsOneFileForAllRanksOfAHostThatADebuggerCanOpen) {
  const std::string path = built("libgreeter.so");
  const auto first = copy_plugin(path, "", copies());
  const auto second = copy_plugin(path, "", copies());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->name, second->name);
  EXPECT_EQ(first->name, text(copies(), '/', sha256(read(path)).substr(0, 16), "-libgreeter.so"));
  EXPECT_EQ(read(first->name), read(path));
  EXPECT_EQ(std::filesystem::status(first->name).permissions(), std::filesystem::perms::owner_read);
  const std::filesystem::directory_iterator files(copies());
  EXPECT_EQ(std::distance(begin(files), end(files)), 1);
  // A host that went down in the middle of a copy leaves a shorter one.
  std::filesystem::permissions(first->name, std::filesystem::perms::owner_all);
  std::filesystem::resize_file(first->name, 100);
  EXPECT_TRUE(copy_plugin(path, "", copies()).ok());
  EXPECT_EQ(read(first->name), read(path));
}

TEST_F(PluginTest, IsSealedMemoryWhereNoFileCanBeMade) {
  const std::string path = write(read(built("libgreeter.so")));
  const auto copy = copy_plugin(path, "", "/proc/nonexistent");
  ASSERT_TRUE(copy.ok()) << copy.error().message;
  EXPECT_EQ(copy->name, text("/proc/", ::getpid(), "/fd/", copy->file.get()));
  const auto plugin = Plugin::open(path, "", "/proc/nonexistent");
  ASSERT_TRUE(plugin.ok()) << plugin.error().message;
  std::filesystem::resize_file(path, 0);
  EXPECT_TRUE((*plugin)->find_class("Greeter").ok());
}

TEST_F(PluginTest, SaysWhatIsWrongWithAFileThatIsNone) {
  EXPECT_EQ(refusal(folder_ + "/none.so"), "plugin X: No such file or directory");
  EXPECT_EQ(refusal(folder_), "plugin X is no file");
  EXPECT_EQ(refusal(write("")), "plugin X is empty");
  EXPECT_EQ(refusal(write("#!/bin/sh\n")), "plugin X: it is no shared object");
  EXPECT_EQ(refusal(write(read(built("libgreeter.so")).substr(0, 30))),
            "plugin X: it is a shared object that was cut off");
  EXPECT_EQ(refusal("/bin/true").substr(0, 8), "plugin X") << "a program";
}

TEST_F(PluginTest, SaysForWhichMachinesItIs) {
  std::string bytes = read(built("libgreeter.so"));
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  header.e_machine = EM_RISCV;
  std::memcpy(bytes.data(), &header, sizeof header);
  EXPECT_EQ(refusal(write(bytes)).substr(0, 47), "plugin X: it is for riscv, and this host is x86");
  header.e_ident[EI_CLASS] = ELFCLASS32;
  header.e_machine = EM_386;
  std::memcpy(bytes.data(), &header, sizeof header);
  EXPECT_EQ(refusal(write(bytes)).substr(0, 37), "plugin X: it is for i386 of 32 bits, ");
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_machine = EM_X86_64;
  header.e_type = ET_EXEC;
  std::memcpy(bytes.data(), &header, sizeof header);
  EXPECT_EQ(refusal(write(bytes)), "plugin X: it is no shared object: build it with -shared -fPIC");
}

TEST_F(PluginTest, SaysWhichLibraryIsMissing) {
  std::string bytes = read(built("libgreeter.so"));
  const std::string needed = "libstdc++.so.6";
  const std::size_t at = bytes.find(needed);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, needed.size(), "libnobody.so.6");
  EXPECT_EQ(refusal(write(bytes)),
            "plugin X cannot be loaded: libnobody.so.6: cannot open shared object file: No such file or directory");
}

TEST_F(PluginTest, SaysThatItHasNoFolder) {
  EXPECT_EQ(refusal(built("libbeside.so")).substr(0, 76),
            "plugin X: it looks for libraries in $ORIGIN/lib, and has no folder here: lin");
}

TEST_F(PluginTest, SaysWhichInterfaceItSpeaks) {
  EXPECT_EQ(refusal(built("liblater_abi.so")),
            "plugin X speaks version 2 of the interface, and this monarch 1: build it with the headers of this one");
  EXPECT_EQ(refusal(built("libno_plugin.so")).substr(0, 53), "plugin X has no function monarch_plugin_v1_get: MONAR");
}

TEST_F(PluginTest, BelievesNothingInAFile) {
  const std::string whole = read(built("libgreeter.so"));
  EXPECT_TRUE(check_elf(whole).ok());
  // Behind what is loaded lie the names for a debugger.
  Elf64_Ehdr header;
  std::memcpy(&header, whole.data(), sizeof header);
  std::size_t loaded = 0;
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, whole.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD) loaded = std::max<std::size_t>(loaded, segment.p_offset + segment.p_filesz);
  }
  for (std::size_t size = 0; size < loaded; size += size < 4'096 ? 1 : 997) {
    EXPECT_FALSE(check_elf(std::string_view(whole).substr(0, size)).ok()) << size;
  }
  // Headers and segments of any numbers are read within the file.
  std::mt19937_64 random(7);
  for (int times = 0; times < 20'000; ++times) {
    std::string changed = whole.substr(0, 4'096);
    for (int i = 0; i < 4; ++i) changed[random() % 1'024] = static_cast<char>(random());
    (void)check_elf(changed);
  }
}

}  // namespace
}  // namespace monarch
