#include "supervisor/launch/ssh/session/ssh_session.h"

#include <netdb.h>
#include <sys/socket.h>

#include <cerrno>

#include "supervisor/launch/ssh/session/authenticate.h"
#include "supervisor/launch/ssh/session/forward.h"
#include "supervisor/launch/ssh/session/host_key.h"
#include "supervisor/launch/ssh/session/known_hosts.h"
#include "supervisor/launch/ssh/session/libssh.h"
#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

using Opened = std::variant<std::unique_ptr<VerifiedSession>, SshFailure>;

// One hop: over a socket of its own, or through the session below.
Opened open_hop(const SshTarget& target, std::unique_ptr<VerifiedSession> below, const SshTarget* through, int cancel) {
  // A file that cannot be read might have revoked what is about to be trusted.
  const auto known = known_keys(target.known_hosts, known_hosts_name(target));
  if (!known.ok()) return ssh_failure(LaunchFailureKind::kOther, "host key", known.error().message);

  const Patience connecting(target.connect_timeout, cancel);
  UniqueFd socket;
  std::unique_ptr<Forward> forward;
  if (through == nullptr) {
    auto dialled = dial(target, connecting);
    if (auto* refused = std::get_if<DialFailure>(&dialled)) {
      return ssh_failure(refused->kind, "connect", text(where_text(target), ": ", refused->message));
    }
    socket = std::move(std::get<UniqueFd>(dialled));
  } else {
    auto carried = Forward::open(std::move(below), target.address, target.port, connecting);
    if (!carried.ok()) {
      const LaunchFailureKind kind =
          carried.error().code == ErrorCode::kTimeout ? LaunchFailureKind::kTimeout : LaunchFailureKind::kUnreachable;
      return ssh_failure(
          kind, "connect",
          text("from ", where_text(*through), " to ", where_text(target), ": ", carried.error().message));
    }
    forward = std::move(*carried);
    socket = forward->take_far_end();
  }
  auto raw =
      RawSession::exchange_keys(target, std::move(socket), std::move(forward), host_key_algorithms(*known), connecting);
  if (auto* failed = std::get_if<SshFailure>(&raw)) return std::move(*failed);
  auto verified =
      VerifiedSession::verify_host_key(target, std::move(std::get<std::unique_ptr<RawSession>>(raw)), *known);
  if (auto* failed = std::get_if<SshFailure>(&verified)) return std::move(*failed);
  auto& session = std::get<std::unique_ptr<VerifiedSession>>(verified);
  auto stopped = authenticate(target, *session, {target.connect_timeout, cancel});
  if (stopped) return std::move(*stopped);
  return std::move(session);
}

Opened open_route(const SshRoute& route, int cancel) {
  MONARCH_ASSERT(!route.empty());
  for (const SshTarget& target : route) {
    if (const auto objection = objection_to(target))
      return ssh_failure(LaunchFailureKind::kOther, "connect", *objection);
  }
  const Status loaded = load_libssh();
  if (!loaded.ok()) return ssh_failure(LaunchFailureKind::kOther, "connect", loaded.error().message);
  std::unique_ptr<VerifiedSession> session;
  for (std::size_t hop = 0; hop < route.size(); ++hop) {
    Opened opened = open_hop(route[hop], std::move(session), hop == 0 ? nullptr : &route[hop - 1], cancel);
    if (std::holds_alternative<SshFailure>(opened)) return opened;
    session = std::move(std::get<std::unique_ptr<VerifiedSession>>(opened));
  }
  return session;
}

}  // namespace

std::variant<std::unique_ptr<SshSession>, SshFailure> SshSession::open(const SshRoute& route, int cancel) {
  const Instant began = boot_now();
  Opened opened = open_route(route, cancel);
  if (auto* failed = std::get_if<SshFailure>(&opened)) {
    failed->failure.elapsed = boot_now() - began;
    failed->failure.again = reproducer(route);
    return std::move(*failed);
  }
  return std::unique_ptr<SshSession>(new SshSession(std::move(std::get<std::unique_ptr<VerifiedSession>>(opened)),
                                                    route.size() == 1, boot_now() - began));
}

Result<std::unique_ptr<SshChannel>> SshSession::exec(std::string_view command, const Patience& patience) {
  return SshChannel::exec(verified_->raw(), command, patience);
}

Result<std::string> SshSession::local_address() const {
  if (direct_) return numeric_address(true);
  return Error{ErrorCode::kUnsupported,
               "behind a jump host: by which address a host reaches this machine is not known"};
}

Result<std::string> SshSession::remote_address() const {
  if (direct_) return numeric_address(false);
  return Error{ErrorCode::kUnsupported, "behind a jump host: by which address it reaches a host is not known"};
}

Result<std::string> SshSession::numeric_address(bool own) const {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const int socket = verified_->raw().socket();
  if ((own ? ::getsockname(socket, generic, &size) : ::getpeername(socket, generic, &size)) != 0) {
    return errno_error(own ? "getsockname" : "getpeername", errno);
  }
  char host[NI_MAXHOST];
  const int error = ::getnameinfo(generic, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST);
  if (error != 0) return Error{ErrorCode::kInternal, text("getnameinfo: ", ::gai_strerror(error))};
  return std::string(host);
}

}  // namespace monarch
