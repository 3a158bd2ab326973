#pragma once

// JobHome: where a job's supervisors live: one machine, one directory. The lock of a job proves that no other
// supervisor holds this directory; it says nothing of a copy of it, or of the same directory seen from a machine whose
// locks are others. So the first supervisor writes down where it is, and a later one that finds itself elsewhere
// refuses: two supervisors with one journal would both give out the same terms. Whoever knows that the other is gone
// says so by force.
//
// Thread: any; touches the file system.

#include <cstdint>
#include <string>

#include "supervisor/journal/secure_directory.h"
#include "transport/base/result.h"

namespace monarch {

inline constexpr char kHomeFile[] = "home";

struct JobHome {
  std::string machine;       // /etc/machine-id; without one, the host's name
  std::string boot_id;       // numbers of devices count within one boot
  std::uint64_t device = 0;  // of the directory
  std::uint64_t inode = 0;
  std::string path;  // for people
};

// This machine, this directory.
Result<JobHome> home_of(const SecureDirectory& job);
// One place, as far as both tell.
bool is_same_home(const JobHome& written, const JobHome& now);
enum class HomeFile : std::uint8_t {
  kThere,
  kWrittenAside,  // it lies at aside_of(kHomeFile): it gets its name, and is durable, with the term (sync_round.h)
};
// Writes it down the first time, and by force. kBusy: it is another, and the message says which.
Result<HomeFile> check_home(const SecureDirectory& job, bool force);

}  // namespace monarch
