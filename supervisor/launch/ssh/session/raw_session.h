#pragma once

// RawSession: a libssh session over a socket of ours, with its keys exchanged and nothing verified yet. Its socket is
// waited on here, by a deadline and a cancellation; libssh itself never waits. VerifiedSession: the same after the
// server's key was found trustworthy. Only verify_host_key makes one, and only from one can somebody log in, so no path
// to a login skips the check. (libssh alone lets a caller do that.)
//
// Thread: one, from birth to death (libssh).

#include <poll.h>

#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "supervisor/launch/ssh/session/dial.h"
#include "supervisor/launch/ssh/session/forward.h"
#include "supervisor/launch/ssh/session/known_hosts.h"
#include "supervisor/launch/ssh/session/ssh_target.h"
#include "transport/base/unique_fd.h"

struct ssh_session_struct;

namespace monarch {

// Rounds of carrying bytes between two looks at whether somebody wants us to end.
inline constexpr int kCarryRounds = 256;

class RawSession {
 public:
  // Over a connected socket, which is not blocking; of a `below`, its far end.
  static std::variant<std::unique_ptr<RawSession>, SshFailure> exchange_keys(const SshTarget& target, UniqueFd socket,
                                                                             std::unique_ptr<Forward> below,
                                                                             const std::string& key_algorithms,
                                                                             const Patience& patience);
  RawSession(const RawSession&) = delete;
  RawSession& operator=(const RawSession&) = delete;
  ~RawSession();

  ssh_session_struct* handle() { return handle_; }
  int socket() const { return socket_; }
  std::string error() const;  // libssh's last words
  bool connected() const;

  // How much was read from the socket so far. Any call of libssh's may read, and what it read may be for another: who
  // would wait because nothing moved looks again first if this has changed since it began to look.
  std::uint64_t bytes_read() const;

  // Whether some of what was written waits for the socket to take it.
  bool writes_wait() const;
  // Asks the host for a sign of life: its answer is bytes read. Any number of times; one question is under way at most.
  void ask_for_life();

  // Until libssh has something to do; meanwhile what lies below is carried.
  WaitEnd wait(const Patience& patience);
  // The same by somebody else's poll(2): what to look at, and what to do after it.
  void watch(std::vector<pollfd>& watched, bool reads) const;
  void carry();

  // The call again and again until it answers something else than `again`, or waiting ended.
  template <class Call>
  std::variant<int, WaitEnd> until_done(int again, const Patience& patience, Call call) {
    for (;;) {
      const int answer = call();
      if (answer != again) return answer;
      const WaitEnd end = wait(patience);
      if (end != WaitEnd::kReady) return end;
    }
  }

 private:
  struct Counters;
  RawSession(ssh_session_struct* handle, int socket, std::unique_ptr<Forward> below);
  std::unique_ptr<Counters> counters_;  // libssh writes to them
  ssh_session_struct* handle_;
  int socket_;                      // libssh's, from the start of the exchange
  std::unique_ptr<Forward> below_;  // where the host is reached through another
};

class VerifiedSession {
 public:
  static std::variant<std::unique_ptr<VerifiedSession>, SshFailure> verify_host_key(const SshTarget& target,
                                                                                    std::unique_ptr<RawSession> raw,
                                                                                    const std::vector<KnownKey>& known);
  RawSession& raw() { return *raw_; }

 private:
  explicit VerifiedSession(std::unique_ptr<RawSession> raw) : raw_(std::move(raw)) {}
  std::unique_ptr<RawSession> raw_;
};

// What a wait that did not end well is called in a message, and its kind.
std::string wait_end_text(WaitEnd end, Duration limit, const Patience& patience);

}  // namespace monarch
