#pragma once

// JobLock: proof that no other supervisor of the job runs on this state directory. An open-file-description lock on the
// job's `lock` (F_OFD_SETLK): the kernel drops it when the last descriptor is gone, so holding it proves the previous
// holder dead. The file says who holds it, for messages only.
//
// A job's guard has one of its own, `guard.lock`: between two supervisors the job's is free, and who took it then would
// have the guard's next supervisor end the job as one that another holds.
//
// Thread: any. Lifetime: the lock is held as long as the object lives. WARNING: a child that forks without exec shares
// the lock (fcntl(2)); the descriptor is close-on-exec.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "supervisor/journal/secure_directory.h"
#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"

namespace monarch {

struct LockHolder {
  std::int64_t pid = 0;
  std::string host;
  std::string started;            // wall clock, for people
  std::uint64_t start_ticks = 0;  // of the process, since boot (proc(5)): a reused pid has another
  std::string boot_id;
};

// This process, as its lock will name it.
LockHolder this_process_as_holder(WallTime now);

class JobLock {
 public:
  // kBusy: somebody holds it, named in the message. kUnsupported: the file system does not honour locks (S14).
  static Result<std::unique_ptr<JobLock>> take(const SecureDirectory& job, const LockHolder& self);
  // The same without saying who: for somebody who takes the job away, on a disk that may be full.
  static Result<std::unique_ptr<JobLock>> take_silently(const SecureDirectory& job);
  JobLock(const JobLock&) = delete;
  JobLock& operator=(const JobLock&) = delete;

 private:
  explicit JobLock(UniqueFd fd) : fd_(std::move(fd)) {}
  UniqueFd fd_;
};

// For a guard about to be started, which is given the descriptor: held until the last copy of it is closed. kBusy: this
// job has one, which the message names, or else its supervisor; kUnsupported as above.
Result<UniqueFd> take_guard_lock(const SecureDirectory& job);
// Writes down who it is, for messages.
Status name_guard(const UniqueFd& lock, const SecureDirectory& job, const LockHolder& guard);

// Who holds the job's lock now; nothing if nobody does. What the holder wrote may be missing for an instant.
Result<std::optional<LockHolder>> lock_holder(const SecureDirectory& job);
// The same of its guard's.
Result<std::optional<LockHolder>> guard_holder(const SecureDirectory& job);
inline Result<bool> is_locked(const SecureDirectory& job) {
  MONARCH_ASSIGN(const std::optional<LockHolder> holder, lock_holder(job));
  return holder.has_value();
}
// It has a supervisor, or a guard that is about to start the next one.
inline Result<bool> is_kept(const SecureDirectory& job) {
  MONARCH_ASSIGN(const bool locked, is_locked(job));
  if (locked) return true;
  MONARCH_ASSIGN(const std::optional<LockHolder> guard, guard_holder(job));
  return guard.has_value();
}

}  // namespace monarch
