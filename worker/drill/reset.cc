// Reset: every TCP connection of a rank, and of what it has started, is taken to pieces through a copy of its socket.

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/process/read_small.h"
#include "worker/core/strike_plan.h"
#include "worker/drill/effect.h"
#include "worker/drill/targets.h"

namespace monarch {

namespace {

constexpr char kPtraceScope[] = "/proc/sys/kernel/yama/ptrace_scope";

// The state of a TCP socket; nothing for anything else.
std::optional<int> tcp_state(int fd) {
  int protocol = 0;
  socklen_t size = sizeof protocol;
  if (::getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &size) != 0 || protocol != IPPROTO_TCP) return std::nullopt;
  tcp_info info{};
  size = sizeof info;
  if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return std::nullopt;
  return info.tcpi_state;
}

bool is_connected(int fd) {
  const auto state = tcp_state(fd);
  return state && *state != TCP_CLOSE && *state != TCP_LISTEN && *state != TCP_SYN_SENT;
}

struct Resets {
  std::uint32_t done = 0;
  std::uint32_t failed = 0;
  bool refused = false;  // the kernel gives no copy
};

// WARNING: connect(2) with AF_UNSPEC ends a connection for both sides (the other one gets RST); on a socket that
// listens it would end that.
void disconnect(int fd, Resets& resets) {
  if (!is_connected(fd)) return;
  sockaddr nowhere{};
  nowhere.sa_family = AF_UNSPEC;
  const bool done = ::connect(fd, &nowhere, sizeof nowhere) == 0 && tcp_state(fd) == TCP_CLOSE;
  done ? ++resets.done : ++resets.failed;
}

Resets reset_all_of(const ProcessEntry& process) {
  Resets resets;
  const UniqueFd pidfd = open_process(process);
  if (!pidfd.valid()) return resets;
  const std::string folder = text("/proc/", process.pid, "/fd");
  const UniqueFd listed(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  resets.refused = !listed.valid() && errno == EACCES;  // it hides its memory
  for (const std::string& name : names_in(folder)) {
    int number = 0;
    (void)std::from_chars(name.data(), name.data() + name.size(), number);
    const UniqueFd copy(static_cast<int>(::syscall(SYS_pidfd_getfd, pidfd.get(), number, 0)));
    if (copy.valid()) {
      disconnect(copy.get(), resets);
    } else if (errno == EPERM) {
      resets.refused = true;
    }
  }
  return resets;
}

class Reset final : public Effect {
 public:
  explicit Reset(std::vector<ProcessEntry> processes) : processes_(std::move(processes)) {}

  Status strike(Duration /*patience*/, StrikeSeen& seen) override {
    seen.struck_at = wall_now();
    Resets all;
    for (const ProcessEntry& process : with_their_own(processes_)) {
      const Resets some = reset_all_of(process);
      if (some.done > 0) seen.struck.push_back(process.pid);
      all = {all.done + some.done, all.failed + some.failed, all.refused || some.refused};
    }
    if (all.failed > 0) {
      return Error{ErrorCode::kTimeout,
                   text("of ", all.done + all.failed, " connections ", all.failed, " were not closed")};
    }
    if (all.done > 0) return {};
    if (all.refused) return Error{ErrorCode::kUnsupported, tracing_refused(read_number(kPtraceScope))};
    return Error{ErrorCode::kNotFound, "it has no TCP connection"};
  }
  Status give_back(Duration /*patience*/) override { return {}; }

 private:
  std::vector<ProcessEntry> processes_;
};

}  // namespace

PlannedEffect plan_reset(const StrikeOrder& order) {
  MONARCH_ASSIGN(StrikeTargets targets, targets_of(order));
  return std::unique_ptr<Effect>(std::make_unique<Reset>(std::move(targets.processes)));
}

}  // namespace monarch
