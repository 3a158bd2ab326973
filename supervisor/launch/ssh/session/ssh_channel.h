#pragma once

// SshChannel: a command that runs on the host, its standard input and both outputs. Nothing here waits but wait() and
// the calls that take a Patience; how much comes in is bounded by SSH's window until it is read.
//
// Thread: the session's. Lifetime: ends before the session that made it.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "supervisor/launch/ssh/session/dial.h"
#include "transport/base/result.h"

struct ssh_channel_struct;

namespace monarch {

class RawSession;

// Bytes of one read of a socket that a channel carries on, and what waits there for its turn.
inline constexpr std::size_t kSocketPiece = 64U << 10U;

// What has come since the last time.
struct SshOutput {
  std::string out;
  std::string err;
  bool ended = false;  // nothing more will come of either
};

class SshChannel {
 public:
  // Errors of all of these: kTimeout, kBusy (cancelled), kGone (the connection or the channel ended).
  static Result<std::unique_ptr<SshChannel>> exec(RawSession& session, std::string_view command,
                                                  const Patience& patience);
  // To an address as the host reaches it; written and read like a command's streams.
  static Result<std::unique_ptr<SshChannel>> connect(RawSession& session, const std::string& address,
                                                     std::uint16_t port, const Patience& patience);
  // One that the host opened; it is the session's own until then.
  static std::unique_ptr<SshChannel> adopt(RawSession& session, ssh_channel_struct* opened);
  SshChannel(const SshChannel&) = delete;
  SshChannel& operator=(const SshChannel&) = delete;
  ~SshChannel();

  // How many of the bytes are on their way; less than all: more goes after a wait().
  Result<std::size_t> write_some(std::string_view bytes);
  Result<SshOutput> read_some();
  // Until one of the two may get further; at once if either read something from the connection since the last wait().
  Status wait(const Patience& patience);

  // The far side reads the end of its input.
  Status send_eof();
  // After read_some() told the end: the command's exit status; none if a signal ended it or the host did not say.
  Result<std::optional<int>> exit_status(const Patience& patience);

 private:
  SshChannel(RawSession& session, ssh_channel_struct* channel) : session_(session), channel_(channel) {}
  static Result<std::unique_ptr<SshChannel>> make(RawSession& session);
  Result<bool> read_stream(std::string& into, int is_stderr);
  Error gone(std::string_view doing) const;

  RawSession& session_;
  ssh_channel_struct* channel_;
  std::uint64_t looked_at_ = 0;  // RawSession::bytes_read() as of the last wait()
};

}  // namespace monarch
