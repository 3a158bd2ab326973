#pragma once

// SshSession: somebody is logged in on a host whose key was checked first. The one way to get one is open(), which
// dials, exchanges keys, verifies the host's and logs in, each within its time, and does the same at each jump host
// before it.
//
// Thread: one, from birth to death (libssh).

#include <memory>
#include <string>
#include <variant>

#include "supervisor/launch/ssh/session/dial.h"
#include "supervisor/launch/ssh/session/raw_session.h"
#include "supervisor/launch/ssh/session/ssh_channel.h"
#include "supervisor/launch/ssh/session/ssh_target.h"
#include "transport/base/result.h"

namespace monarch {

class SshSession {
 public:
  // `cancel` becomes readable when nobody wants it any more; -1: never.
  static std::variant<std::unique_ptr<SshSession>, SshFailure> open(const SshRoute& route, int cancel);
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  // A command for the login shell of the user there. It ends before this does.
  Result<std::unique_ptr<SshChannel>> exec(std::string_view command, const Patience& patience);

  // The numeric address by which this machine reached the host: the host may reach it there. kUnsupported behind a jump
  // host.
  Result<std::string> local_address() const;
  // That of the host, as it is seen from here. kUnsupported behind a jump host.
  Result<std::string> remote_address() const;

  // For what else goes through it (ssh_tunnel.h).
  RawSession& raw() { return verified_->raw(); }

  // From the first dial to the last hop's authentication.
  Duration opened_in() const { return opened_in_; }

 private:
  SshSession(std::unique_ptr<VerifiedSession> verified, bool direct, Duration opened_in)
      : verified_(std::move(verified)), direct_(direct), opened_in_(opened_in) {}
  Result<std::string> numeric_address(bool own) const;
  std::unique_ptr<VerifiedSession> verified_;
  bool direct_;
  Duration opened_in_;
};

}  // namespace monarch
