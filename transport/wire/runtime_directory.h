#pragma once

// Where what this user's jobs share on a machine is, for as long as they live: sockets, and the locks of what one job
// at a time may have. Supervisors and keepers ask here, so that a session without $XDG_RUNTIME_DIR (cron, su, a remote
// command) finds what one with it made.
//
// Thread: any; touches the file system.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace monarch {

struct RuntimeUser {
  std::string xdg_runtime_dir;  // the variable; empty: not set
  std::uint32_t uid = 0;
  std::string logins = "/run/user";                         // where a login's own folder is
  std::vector<std::string> lasting = {"/tmp", "/var/tmp"};  // where everybody may have a folder that no log-out removes
};

// $XDG_RUNTIME_DIR/monarch where that is a directory of this user's, and not one that is removed at the last log-out
// (below `logins`); else lasting_directory(), or, where somebody else has all of those, the login's own after all. It
// need not exist.
std::string runtime_directory(const RuntimeUser& user);

// /tmp/monarch-<uid>, or /var/tmp/monarch-<uid> where somebody else was faster: for what must outlive the login that
// started it, as jobs do. systemd-logind removes /run/user/<uid> with the user's last session. The first of
// lasting_directories().
std::string lasting_directory(std::uint32_t uid);

// All that are the user's, or can be, best first; never empty: where somebody else has all of them, the first.
std::vector<std::string> lasting_directories(const RuntimeUser& user);

// Of these the first that somebody else has and the user would have had.
std::optional<std::string> squatted_directory(const RuntimeUser& user);

}  // namespace monarch
