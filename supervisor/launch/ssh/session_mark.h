#pragma once

// SessionMark: which process of a host's sshd holds a session of ours. A connection that nobody ends (a machine between
// that forgot it) leaves that process there, and with it the ports that it listens on: the session that takes the place
// of such a one ends it first. It runs as the user who logged in, so nothing more is needed for that. An sshd by
// another name is left alone, and its ports with it.
//
// Thread: values; mark_session() waits in the session's.

#include <cstdint>
#include <string_view>

#include "supervisor/launch/ssh/session/dial.h"
#include "supervisor/launch/ssh/session/ssh_session.h"

namespace monarch {

struct SessionMark {
  std::int64_t pid = 0;       // 0: it is not known
  std::uint64_t started = 0;  // as /proc of that host counts; with it the pid is no other process's
  bool known() const { return pid > 0; }
  bool operator==(const SessionMark&) const = default;
};

// One constant, as remote_command() is: it ends who holds `before` on its standard input, and says who holds the
// session it runs in.
std::string_view mark_command();
// Of what it says, somewhere behind what the shell's start-up files print. Not known: it says nothing of the kind, or
// not yet.
SessionMark read_mark(std::string_view output);

// Ends the session of `before`, if it is known and still there, and marks this one. Where that cannot be done in time,
// or the host has no such process, the mark is not known: there is nothing to be done about it.
SessionMark mark_session(SshSession& session, const SessionMark& before, const Patience& patience);

}  // namespace monarch
