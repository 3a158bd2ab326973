// What is said where there is no driver, or none that works: by a process each, for a process has one answer.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <string>

#include "transport/base/unique_fd.h"

namespace monarch::tensor {
namespace {

std::string folder(const char* variable) {
  const char* const value = std::getenv(variable);
  EXPECT_NE(value, nullptr) << variable;
  return value == nullptr ? "" : value;
}

// What a process says whose libraries are looked for there. fail: FAKE_CUDA_FAIL.
std::string said_with(const std::string& path, const std::string& fail = "") {
  const std::string program = folder("MONARCH_TEST_LOAD_LIBCUDA");
  std::array<int, 2> ends{};
  EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const UniqueFd reads(ends[0]);
  UniqueFd writes(ends[1]);
  const pid_t child = ::fork();
  if (child == 0) {
    (void)::dup2(writes.get(), STDOUT_FILENO);
    (void)::setenv("LD_LIBRARY_PATH", path.c_str(), 1);
    if (!fail.empty()) (void)::setenv("FAKE_CUDA_FAIL", fail.c_str(), 1);
    (void)::execl(program.c_str(), program.c_str(), nullptr);
    ::_exit(127);
  }
  writes.reset();
  std::string said;
  std::array<char, 512> part{};
  for (ssize_t got = 0; (got = ::read(reads.get(), part.data(), part.size())) > 0;) {
    said.append(part.data(), static_cast<std::size_t>(got));
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << said;
  return said;
}

TEST(LoadLibcuda, LoadsTheDriverWhenItIsAskedAndNotBefore) {
  EXPECT_EQ(said_with(folder("LD_LIBRARY_PATH")), "not loaded before\nloaded\nGPU 0 (fake GPU 0)\nthe same again\n");
}

TEST(LoadLibcuda, SaysInTheLoadersWordsThatThereIsNoDriver) {
  const std::string said = said_with("/nonexistent");
  if (said.find("\nloaded\n") != std::string::npos) GTEST_SKIP() << "this machine has a driver of NVIDIA's";
  EXPECT_EQ(
      said,
      "not loaded before\nnot loaded\nno NVIDIA driver: libcuda.so.1: cannot open shared object file: No such file or "
      "directory\nthe same again\n");
}

TEST(LoadLibcuda, NamesTheStubOfTheToolkit) {
  EXPECT_EQ(said_with(folder("MONARCH_TEST_STUB_CUDA")),
            "not loaded before\nloaded\nno NVIDIA driver: libcuda.so.1: cuInit: CUDA_ERROR_STUB_LIBRARY (the stub of "
            "NVIDIA's toolkit, and no driver)\nthe same again\n");
}

TEST(LoadLibcuda, NamesTheErrorOfADriverThatDoesNotBegin) {
  EXPECT_EQ(said_with(folder("LD_LIBRARY_PATH"), "cuInit:100:1"),
            "not loaded before\nloaded\nno NVIDIA driver: libcuda.so.1 of CUDA 13.0: cuInit: CUDA_ERROR_NO_DEVICE (no "
            "CUDA-capable device is detected)\nthe same again\n");
  EXPECT_EQ(
      said_with(folder("LD_LIBRARY_PATH"), "cuInit:4711:1"),
      "not loaded before\nloaded\nno NVIDIA driver: libcuda.so.1 of CUDA 13.0: cuInit: error 4711\nthe same again\n");
}

TEST(LoadLibcuda, NamesTheFunctionThatAnOldDriverLacks) {
  EXPECT_EQ(
      said_with(folder("MONARCH_TEST_OLD_CUDA")),
      "not loaded before\nloaded\nno NVIDIA driver: libcuda.so.1 has no cuStreamIsCapturing: it is too old\nthe same "
      "again\n");
}

}  // namespace
}  // namespace monarch::tensor
