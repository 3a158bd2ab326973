#pragma once

// A guard that the test plays: it starts what it is told to, with the descriptors that came, and tells each end. What
// is to run in the place of srun, squeue and scancel are scripts in a folder that the launcher is given as its PATH.
//
// Thread: the test's.

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/launch/guard.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/keeper.h"
#include "transport/messages/message.h"
#include "transport/messages/rank.h"
#include "transport/wire/codec.h"
#include "transport/wire/seqpacket_channel.h"

namespace monarch {

class PlayedGuard {
 public:
  PlayedGuard(EventLoop& loop, UniqueFd socket) : loop_(loop) {
    auto channel = SeqpacketChannel::create(
        loop, std::move(socket),
        {.on_frame = [this](const Frame& frame, std::vector<UniqueFd> fds) { on_frame(frame, std::move(fds)); },
         .on_closed = [](const Error&) {}});
    channel_ = std::move(*channel);
  }
  PlayedGuard(const PlayedGuard&) = delete;
  PlayedGuard& operator=(const PlayedGuard&) = delete;
  ~PlayedGuard() {
    for (auto& [key, child] : children_) {
      (void)::kill(-child.pid, SIGKILL);
      (void)::waitpid(child.pid, nullptr, 0);
      loop_.forget(child.watch);
    }
  }

  // Leaves as a guard does that was killed: what it started lives on, until the test's end.
  void leave() { channel_.reset(); }
  std::size_t running() const { return children_.size(); }
  // How many are to live on when the guard ends before its job.
  std::size_t spared() const { return spared_; }
  const std::vector<std::vector<std::string>>& started() const { return started_; }
  void forget_started() { started_.clear(); }

 private:
  struct Child {
    pid_t pid = 0;
    Generation generation;
    UniqueFd pidfd;
    WatchId watch = 0;
  };

  void on_frame(const Frame& frame, std::vector<UniqueFd> fds) {
    const auto type = frame.header.type;
    if (type == number_of<Stop>()) {
      const auto found = children_.find(frame.header.process.rank);
      if (found != children_.end()) (void)::kill(-found->second.pid, SIGKILL);
    }
    if (type == number_of<KeeperLetLive>()) {
      const auto spared = decode_payload<KeeperLetLive>(frame.payload);
      if (spared.ok() && children_.contains(spared->process.rank)) ++spared_;
    }
    if (type != number_of<KeeperSpawn>()) return;
    auto spawn = decode_payload<KeeperSpawn>(frame.payload);
    if (!spawn.ok() || fds.size() != 3) return;
    std::vector<char*> words;
    for (std::string& word : spawn->program) words.push_back(word.data());
    words.push_back(nullptr);
    started_.push_back(spawn->program);
    const pid_t pid = ::fork();
    if (pid == 0) {
      (void)::setpgid(0, 0);
      for (int i = 0; i < 3; ++i) (void)::dup2(fds[static_cast<std::size_t>(i)].get(), i);
      (void)::execv(words[0], words.data());
      ::_exit(127);
    }
    (void)::setpgid(pid, pid);
    const RankId key = frame.header.process.rank;
    Child& child = children_[key];
    child.pid = pid;
    child.generation = frame.header.process.generation;
    child.pidfd = UniqueFd(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
    child.watch = *loop_.watch(child.pidfd.get(), Interest::kRead, [this, key](Readiness) { on_end(key); });
  }

  void on_end(RankId key) {
    const auto found = children_.find(key);
    int status = 0;
    (void)::waitpid(found->second.pid, &status, 0);
    loop_.forget(found->second.watch);
    KeeperChanged changed;
    changed.report.process.rank = key;
    changed.report.process.generation = found->second.generation;
    changed.report.phase = RankPhase::kEnded;
    changed.report.end = WIFEXITED(status) ? RankEnd{.kind = EndKind::kExited, .value = WEXITSTATUS(status)}
                                           : RankEnd{.kind = EndKind::kSignaled, .value = WTERMSIG(status)};
    children_.erase(found);
    if (!channel_) return;
    FrameHeader header;
    header.type = number_of<KeeperChanged>();
    (void)channel_->send(Frame{header, encode_payload(changed)});
  }

  EventLoop& loop_;
  std::unique_ptr<SeqpacketChannel> channel_;
  std::map<RankId, Child> children_;
  std::vector<std::vector<std::string>> started_;
  std::size_t spared_ = 0;
};

// Both ends of what lies between a supervisor and its guard.
inline std::pair<UniqueFd, UniqueFd> guard_sockets() {
  int ends[2] = {-1, -1};
  (void)::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends);
  return {UniqueFd(ends[0]), UniqueFd(ends[1])};
}

}  // namespace monarch
