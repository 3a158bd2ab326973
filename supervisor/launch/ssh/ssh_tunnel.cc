#include "supervisor/launch/ssh/ssh_tunnel.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "supervisor/launch/ssh/session/raw_session.h"
#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {
constexpr int kUnsent = 64 << 10;  // bytes that the kernel takes ahead of what it sends
}  // namespace

Result<std::unique_ptr<SshTunnel>> SshTunnel::open(SshSession& session, SshTunnelOptions options,
                                                   const Patience& patience) {
  MONARCH_ASSERT(options.wanted.size() == options.ports.size());
  MONARCH_ASSIGN(auto listener, SshListener::open(session.raw(), options.wanted, patience));
  // Or a beat's answer waits behind megabytes in the kernel. Through a jump host it is a socket of another kind, and
  // does.
  (void)::setsockopt(session.raw().socket(), IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsent, sizeof kUnsent);
  return std::unique_ptr<SshTunnel>(new SshTunnel(session.raw(), std::move(options), std::move(listener)));
}

void SshTunnel::take_connections() {
  for (SshListener::Connection& made : listener_->take()) {
    const auto of_this_port =
        std::count_if(pipes_.begin(), pipes_.end(), [&made](const Pipe& pipe) { return pipe.port == made.port; });
    if (static_cast<std::size_t>(of_this_port) >= kConnections) continue;  // its end is read as a closed connection
    auto pipe = SshPipe::open(std::move(made.channel), options_.ports[made.port]);
    if (!pipe.ok()) {
      log_warn("a connection through SSH: ", pipe.error().message);
      continue;
    }
    pipes_.push_back({made.port, std::move(*pipe)});
  }
}

bool SshTunnel::may_write(const Pipe& pipe) const { return pipe.port == 0 || !session_.writes_wait(); }

// Whether anything moved.
bool SshTunnel::carry_once() {
  session_.carry();
  const std::uint64_t read = session_.bytes_read();
  take_connections();
  bool moved = false;
  for (Pipe& pipe : pipes_) {
    if (pipe.pipe->carry(may_write(pipe))) moved = true;
  }
  std::erase_if(pipes_, [](const Pipe& pipe) { return pipe.pipe->ended(); });
  return moved || session_.bytes_read() != read;
}

// Whether nothing moves any more. Otherwise bytes may have been read that no event on the socket tells of again.
bool SshTunnel::carry_all() {
  for (int round = 0; round < kCarryRounds; ++round) {
    if (!carry_once()) return true;
  }
  return false;
}

Error SshTunnel::carry(int cancel) {
  const SshSilence& silence = options_.silence;
  std::uint64_t read = session_.bytes_read();
  Instant heard = boot_now();
  std::optional<FairDeadline> answers;  // to what was asked since then
  for (;;) {
    const bool settled = carry_all();
    if (!session_.connected()) return {ErrorCode::kGone, text("the connection ended: ", session_.error())};
    const Instant now = boot_now();
    if (session_.bytes_read() != read) {
      heard = now;
      answers.reset();
    }
    read = session_.bytes_read();
    // It has its time to answer, however late this thread is with its question or with its look.
    if (answers && answers->over(now)) {
      return {ErrorCode::kTimeout, text("no sign of life for ", to_text(now - heard), late_words(answers->late()))};
    }
    if (now >= heard + silence.ask_after) {
      if (!answers) answers.emplace(silence.dead_after - silence.ask_after, now);
      session_.ask_for_life();
    }
    std::vector<pollfd> watched;
    session_.watch(watched, true);
    for (const Pipe& pipe : pipes_) pipe.pipe->watch(watched, may_write(pipe));
    const Instant until = answers ? answers->look_by(now) : heard + silence.ask_after;
    if (wait_until(watched, settled ? until : now, cancel) == WaitEnd::kCancelled)
      return {ErrorCode::kBusy, "cancelled"};
  }
}

}  // namespace monarch
