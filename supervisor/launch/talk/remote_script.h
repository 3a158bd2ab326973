#pragma once

// What a host is asked to do over SSH: one constant command, the same bytes for every host and every job. It starts a
// /bin/sh whose script prints a marker, then reads requests from its standard input, one a line; nothing that varies is
// ever part of a command. RemoteConversation speaks to it.
//
// The script needs a POSIX shell and the usual cat, chmod, head, id, ls, mkdir, mv, rm and uname; sha256sum where it is
// there.
//
// Thread: pure functions and constants.

#include <cstdint>
#include <string>
#include <string_view>

namespace monarch {

// For any login shell: `exec /bin/sh -c '…'`, on one line and without the characters that sh, csh, fish or zsh read
// within single quotes: ' ! and \.
std::string_view remote_command();

// The first line that is ours: "monarch-remote 1 <uname -s> <uname -m> <from>". `from` is the address from which this
// host was reached, as it sees that: by srun in a step of Slurm, else by ssh; "-": it does not know. Where a step has a
// process on each of several nodes, each line begins with the node's name; see step_lines.h.
inline constexpr std::string_view kRemoteMarker = "monarch-remote 1";

// A word of a request: printable ASCII without blanks, at most 255 bytes.
bool is_remote_word(std::string_view word);

// The file that is shipped, and the job and host that a worker is marked by.
struct RemoteFile {
  std::string sha256;  // 64 hexadecimal digits; names the file's folder in the host's cache
  std::uint64_t size = 0;
  std::uint64_t head = 0;  // of a bundle, which is two files, one after the other: the size of the first
};
struct RemoteMark {
  std::string job_uuid;
  std::string host_name;
  std::string job_id;
};

// "have <path>": it was executed, what follows is its own; "missing".
std::string start_request(const RemoteFile& file, const RemoteMark& mark);
// `file.size` bytes follow. "stored", or "failed <word> <text>".
std::string put_request(const RemoteFile& file);
// As start, of a program that is on the host already: an absolute path or ~/…, without a newline.
std::string use_request(const std::string& path, const RemoteMark& mark);
// Ends all of this job on this host, and says so: "have <path>", then "ended <n>" or "still <pids>". "missing".
std::string end_request(const RemoteFile& file, const RemoteMark& mark);
std::string end_with_request(const std::string& path, const RemoteMark& mark);
// "have <path>", then what follows is monarch-worker check's own; "missing".
std::string check_request(const RemoteFile& file);
std::string check_with_request(const std::string& path);
// Executes `monarch WORD` of a bundle, monarch and the monarch-worker that belongs to it: "have <path>", then what
// follows is its own; "missing".
std::string program_request(const RemoteFile& bundle, std::string_view word);
// As put, of a bundle.
std::string bundle_request(const RemoteFile& bundle);
// Of all nodes of a step. "there", or "missing".
std::string has_request(const RemoteFile& file);
// `file.size` bytes follow, for this node alone, or for all ("*"), as far as it is missing there. "stored", or "failed
// <word> <text>".
std::string fill_request(const RemoteFile& file, std::string_view node);
// "have <path>": each node executes it as `monarch-worker step` of its own name; "missing".
std::string each_request(const RemoteFile& file, const std::string& job_uuid);
// Makes the job's workspace on this host: "have <path>", then as `monarch-worker workspace` speaks. "missing".
std::string workspace_request(const RemoteFile& file, const RemoteMark& mark);
std::string workspace_with_request(const std::string& path, const RemoteMark& mark);

}  // namespace monarch
