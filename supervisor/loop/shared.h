#pragma once

// Shared: what the owners of a running supervisor's parts (Hosts, Workers, Viewers) have in common. The Supervisor has
// it, and outlives them.
//
// Thread: the process's main thread.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "supervisor/core/job/job_core.h"
#include "supervisor/journal/secure_directory.h"
#include "supervisor/loop/startup.h"
#include "supervisor/loop/supervisor.h"
#include "transport/base/time.h"
#include "transport/loop/event_loop.h"
#include "transport/messages/viewer.h"

namespace monarch {

struct Shared {
  JobFiles& files;
  const SuperviseOptions& options;
  JobCore& core;
  JobUuid job{};
  bool returned = false;                     // an earlier supervisor had this job
  WallTime started{};                        // the job
  std::optional<SecureDirectory> runtime{};  // of the sockets
  std::unique_ptr<EventLoop> loop{};
  // The ticket of its record.
  std::function<std::uint64_t(const CoreEvent&)> decide{};
  std::function<bool(std::uint64_t ticket)> is_durable{};
  std::function<bool()> all_durable{};
  // Once all that is decided by now cannot be forgotten any more.
  std::function<void(std::function<void()>)> when_durable{};
  // For who looks on now: of things that the journal cannot or need not know.
  std::function<void(EventKind, Severity, std::string)> announce{};
  std::function<void(int exit_code)> leave{};

  const JobSpec& spec() const { return core.spec(); }
  const std::string& name_of(HostId host) const { return core.hosts()[host.value()].name; }
  Term term() const { return files.journal.term; }
  // Hosts are machines of their own, with disks of their own, which reach this one over a network.
  bool on_machines() const { return !spec().launch.facts().one_machine; }
};

}  // namespace monarch
