#pragma once

// RemoteShell: a host played by this machine. It runs the remote command as sshd would, in a home of its own and with
// an environment of its own, and carries the bytes of a conversation to it and back.
//
// Thread: the caller's; it waits for the shell.

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "supervisor/launch/talk/remote_conversation.h"
#include "transport/base/clock.h"
#include "transport/base/unique_fd.h"

namespace monarch {

inline constexpr int kNoMount = 99;  // exit status of a shell whose file system could not be mounted

struct RemoteShell {
  std::string home;
  std::vector<std::string> login = {"/bin/dash"};  // and `-c COMMAND`
  std::string inner = "/bin/sh";                   // instead of the /bin/sh of the command
  std::string path = "/usr/bin:/bin";
  std::string before;                   // noise: a command of /bin/sh that is run before the login shell
  std::string mount_options;            // not empty: $HOME is a tmpfs with these
  unsigned long mount_flags = 0;        // and these
  std::optional<std::size_t> cut = {};  // the connection is closed after so many bytes of the file
};

struct RemoteRun {
  RemoteAnswer answer = LaunchFailure{};
  std::string words;
  int files = 0;  // how often the file was sent
  bool timed_out = false;
  bool no_mount = false;
  const LaunchFailure* failure() const { return std::get_if<LaunchFailure>(&answer); }
  const BootstrapReply* reply() const { return std::get_if<BootstrapReply>(&answer); }
  const RemoteEnded* ended() const { return std::get_if<RemoteEnded>(&answer); }
};

namespace remote_shell {

inline std::string command(const RemoteShell& shell) {
  std::string command(remote_command());
  const std::string usual = "exec /bin/sh ";
  return command.replace(0, usual.size(), "exec " + shell.inner + " ");
}

[[noreturn]] inline void become(const RemoteShell& shell, int in, int out, int err) {
  ::dup2(in, STDIN_FILENO);
  ::dup2(out, STDOUT_FILENO);
  ::dup2(err, STDERR_FILENO);
  (void)::signal(SIGPIPE, SIG_DFL);
  if (!shell.mount_options.empty()) {
    const bool mounted =
        ::unshare(CLONE_NEWNS) == 0 && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
        ::mount("tmpfs", shell.home.c_str(), "tmpfs", shell.mount_flags, shell.mount_options.c_str()) == 0;
    if (!mounted) ::_exit(kNoMount);
  }
  std::vector<std::string> words = shell.login;
  words.emplace_back("-c");
  words.push_back(command(shell));
  if (!shell.before.empty()) {
    words.insert(words.begin(), {"/bin/sh", "-c", shell.before + "; exec \"$@\"", "noise"});
  }
  std::vector<std::string> lines = {"HOME=" + shell.home, "USER=alice", "PATH=" + shell.path, "LANG=C.UTF-8"};
  std::vector<char*> argv;
  std::vector<char*> environment;
  for (std::string& word : words) argv.push_back(word.data());
  for (std::string& line : lines) environment.push_back(line.data());
  argv.push_back(nullptr);
  environment.push_back(nullptr);
  (void)::chdir("/");
  ::execve(argv[0], argv.data(), environment.data());
  ::_exit(127);
}

struct Pipe {
  UniqueFd read;
  UniqueFd write;
};
inline Pipe make_pipe() {
  int ends[2] = {-1, -1};
  (void)::pipe2(ends, O_CLOEXEC);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace remote_shell

inline RemoteRun converse(const RemoteShell& shell, RemoteOrder order, const std::string& file) {
  using remote_shell::Pipe;
  (void)::signal(SIGPIPE, SIG_IGN);  // a shell that has ended reads nothing
  Pipe in = remote_shell::make_pipe();
  Pipe out = remote_shell::make_pipe();
  Pipe err = remote_shell::make_pipe();
  const pid_t pid = ::fork();
  if (pid == 0) remote_shell::become(shell, in.read.get(), out.write.get(), err.write.get());
  in.read.reset();
  out.write.reset();
  err.write.reset();
  (void)::fcntl(in.write.get(), F_SETFL, O_NONBLOCK);

  RemoteRun run;
  RemoteConversation conversation(std::move(order));
  std::string waiting;
  const Instant deadline = boot_now() + Duration::seconds(20);
  bool cut = false;
  std::array<char, 65536> buffer{};
  while ((out.read.valid() || err.read.valid()) && boot_now() < deadline) {
    const RemoteTurn turn = conversation.take_turn();
    waiting += turn.bytes;
    if (turn.file) {
      ++run.files;
      cut = shell.cut.has_value();
      waiting += file.substr(0, shell.cut.value_or(file.size()));
    }
    if ((conversation.answer() || cut) && waiting.empty()) in.write.reset();  // all was said
    pollfd polled[3] = {
        {out.read.get(), POLLIN, 0}, {err.read.get(), POLLIN, 0}, {waiting.empty() ? -1 : in.write.get(), POLLOUT, 0}};
    (void)::poll(polled, 3, 100);
    if (polled[2].revents != 0) {
      const ssize_t sent = ::write(in.write.get(), waiting.data(), waiting.size());
      if (sent > 0) waiting.erase(0, static_cast<std::size_t>(sent));
      if (sent < 0 && errno != EAGAIN) waiting.clear();  // it does not read any more; what it says tells why
    }
    for (int i = 0; i < 2; ++i) {
      UniqueFd& end = i == 0 ? out.read : err.read;
      if (polled[i].revents == 0 || !end.valid()) continue;
      const ssize_t got = ::read(end.get(), buffer.data(), buffer.size());
      if (got <= 0) {
        end.reset();
        continue;
      }
      const std::string_view bytes(buffer.data(), static_cast<std::size_t>(got));
      i == 0 ? conversation.on_output(bytes) : conversation.on_words(bytes);
    }
  }
  run.timed_out = out.read.valid() || err.read.valid();
  in.write.reset();
  if (run.timed_out) ::kill(pid, SIGKILL);
  int status = 0;
  ::waitpid(pid, &status, 0);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  run.no_mount = code == kNoMount;
  conversation.on_end(code);
  run.answer = *conversation.answer();
  run.words = conversation.words();
  return run;
}

}  // namespace monarch
