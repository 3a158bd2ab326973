#include "supervisor/launch/ssh/session/dial.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>

#include "supervisor/launch/ssh/session/resolve.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"

namespace monarch {

namespace {

LaunchFailureKind kind_of(int error) {
  switch (error) {
    case ECONNREFUSED: return LaunchFailureKind::kRefused;
    case ENETUNREACH:
    case EHOSTUNREACH:
    case ENETDOWN:
    case EHOSTDOWN: return LaunchFailureKind::kUnreachable;
    case ETIMEDOUT: return LaunchFailureKind::kTimeout;
    case ECONNRESET: return LaunchFailureKind::kClosed;
    default: return LaunchFailureKind::kOther;
  }
}

// The error of the connection as the system has it; 0: it stands.
struct Attempt {
  UniqueFd socket;
  int error = 0;
  WaitEnd waited = WaitEnd::kReady;
};

Attempt connect_to(const addrinfo& address, const Patience& patience) {
  Attempt attempt;
  attempt.socket = UniqueFd(::socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!attempt.socket.valid()) {
    attempt.error = errno;
    return attempt;
  }
  const int on = 1;
  // Without it everything works, and waits a little more often.
  (void)::setsockopt(attempt.socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (::connect(attempt.socket.get(), address.ai_addr, address.ai_addrlen) == 0) return attempt;
  attempt.error = errno;
  if (attempt.error != EINPROGRESS) return attempt;
  attempt.waited = wait_for(attempt.socket.get(), POLLOUT, patience);
  socklen_t size = sizeof attempt.error;
  if (attempt.waited == WaitEnd::kReady &&
      ::getsockopt(attempt.socket.get(), SOL_SOCKET, SO_ERROR, &attempt.error, &size) != 0) {
    attempt.error = errno;
  }
  return attempt;
}

}  // namespace

Patience Patience::part(std::int64_t of) const {
  const Instant now = boot_now();
  Patience some((deadline_.until() - now) / of, cancel_, now);
  some.whole_ = this;
  return some;
}

bool Patience::over(Instant now) const {
  const bool whole = whole_ != nullptr && whole_->over(now);
  return deadline_.over(now) || whole;
}

WaitEnd wait_for(int fd, short events, const Patience& patience) {
  std::vector<pollfd> watched = {{fd, events, 0}};
  return wait_for_any(watched, patience);
}

WaitEnd wait_for_any(std::vector<pollfd>& watched, const Patience& patience) {
  const std::size_t own = watched.size();
  for (;;) {
    const WaitEnd end = wait_until(watched, patience.look_by(boot_now()), patience.cancel());
    const bool over = patience.over(boot_now());
    if (end != WaitEnd::kTimeout || over) return end;
    watched.resize(own);
  }
}

WaitEnd wait_until(std::vector<pollfd>& watched, Instant until, int cancel) {
  watched.push_back({cancel, POLLIN, 0});
  for (;;) {
    const int ready = ::poll(watched.data(), watched.size(), EventLoop::wait_milliseconds(boot_now(), until));
    if (ready < 0 && errno != EINTR) return WaitEnd::kReady;  // the caller's next call on it says what is wrong
    if (ready > 0) return watched.back().revents != 0 ? WaitEnd::kCancelled : WaitEnd::kReady;
    if (boot_now() >= until) return WaitEnd::kTimeout;
  }
}

std::variant<UniqueFd, DialFailure> dial(const SshTarget& target, const Patience& patience) {
  auto resolved = resolve(target, patience);
  if (auto* failure = std::get_if<DialFailure>(&resolved)) return std::move(*failure);
  std::size_t left = 0;
  for (const addrinfo* a = std::get<Addresses>(resolved).get(); a != nullptr; a = a->ai_next) ++left;

  // Of several addresses each has its share of the time; the last failure is told.
  DialFailure failure{LaunchFailureKind::kName, text("looking up ", target.address, ": no address")};
  for (const addrinfo* a = std::get<Addresses>(resolved).get(); a != nullptr; a = a->ai_next, --left) {
    Attempt attempt = connect_to(*a, patience.part(static_cast<std::int64_t>(left)));
    if (attempt.waited == WaitEnd::kReady && attempt.error == 0) return std::move(attempt.socket);
    const std::string what = text("connecting to ", endpoint_text(target));
    if (attempt.waited == WaitEnd::kCancelled) return DialFailure{LaunchFailureKind::kOther, text(what, ": cancelled")};
    if (attempt.waited == WaitEnd::kTimeout) {
      failure = {LaunchFailureKind::kTimeout,
                 text(what, ": no answer within ", to_text(target.connect_timeout), patience.late())};
    } else {
      failure = {kind_of(attempt.error), errno_error(what, attempt.error).message};
    }
  }
  return failure;
}

}  // namespace monarch
