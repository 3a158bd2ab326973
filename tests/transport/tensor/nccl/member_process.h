#pragma once

// MemberProcess: an nccl_member (tests/nccl/nccl_member.cc), or another program, as a test runs it: its lines, and its
// end.
//
// Thread: the test's. Lifetime: its process ends with it.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"

namespace monarch {

class MemberProcess {
 public:
  using Environment = std::vector<std::pair<std::string, std::string>>;

  static std::string folder() {
    const char* const said = ::getenv("MONARCH_TEST_NCCL_FOLDER");
    return said == nullptr ? "." : said;
  }

  explicit MemberProcess(const std::vector<std::string>& arguments, const Environment& environment = {})
      : MemberProcess(folder() + "/nccl_member", arguments, environment) {}
  MemberProcess(const std::string& program, const std::vector<std::string>& arguments, const Environment& environment) {
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& one : words) argv.push_back(one.data());
    argv.push_back(nullptr);
    int in[2];
    int out[2];
    if (::pipe2(in, O_CLOEXEC) != 0 || ::pipe2(out, O_CLOEXEC) != 0) std::abort();
    pid_ = ::fork();
    if (pid_ == 0) {
      ::dup2(in[0], STDIN_FILENO);
      ::dup2(out[1], STDOUT_FILENO);
      for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
      ::execvp(program.c_str(), argv.data());
      ::_exit(127);
    }
    UniqueFd(in[0]).reset();
    UniqueFd(out[1]).reset();
    to_ = UniqueFd(in[1]);
    from_ = UniqueFd(out[0]);
  }
  MemberProcess(const MemberProcess&) = delete;
  MemberProcess& operator=(const MemberProcess&) = delete;
  ~MemberProcess() { kill(); }

  void tell(const std::string& words) {
    EXPECT_EQ(::write(to_.get(), words.data(), words.size()), ssize_t(words.size()));
  }
  void kill() {
    if (pid_ <= 0) return;
    (void)::kill(pid_, SIGKILL);
    (void)::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }

  // The next line; nothing: it has ended, or says none within half a minute.
  std::optional<std::string> line() {
    const Instant until = boot_now() + Duration::seconds(30);
    for (;;) {
      const std::size_t end = read_.find('\n');
      if (end != std::string::npos) {
        std::string line = read_.substr(0, end);
        read_.erase(0, end + 1);
        return line;
      }
      pollfd ready{from_.get(), POLLIN, 0};
      (void)::poll(&ready, 1, 1'000);
      char buffer[4'096];
      const ssize_t got = ready.revents == 0 ? -1 : ::read(from_.get(), buffer, sizeof buffer);
      if (got == 0 || (got < 0 && boot_now() > until)) return std::nullopt;
      if (got > 0) read_.append(buffer, static_cast<std::size_t>(got));
    }
  }
  std::vector<std::string> all_lines() {
    std::vector<std::string> lines;
    while (auto one = line()) lines.push_back(std::move(*one));
    return lines;
  }

 private:
  pid_t pid_ = -1;
  UniqueFd to_;
  UniqueFd from_;
  std::string read_;
};

}  // namespace monarch
