#pragma once

// PackThread: makes a WorkspacePack while the loop turns, and tells the loop once.
//
// Thread: the loop's; the pack is made in a thread of its own. Lifetime: shorter than the loop's; its end does not wait
// for the pack.

#include <functional>
#include <memory>

#include "supervisor/workspace/pack.h"
#include "transport/base/unique_fd.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/inbox.h"
#include "transport/loop/joining_thread.h"

namespace monarch {

using MadePack = Result<std::shared_ptr<const WorkspacePack>>;

class PackThread {
 public:
  // One that lies in the job's folder is told as it is, and one that is damaged as an error: hosts have what it was,
  // and another made now might differ.
  static Result<std::unique_ptr<PackThread>> start(EventLoop& loop, UniqueFd job_folder, WorkspaceSpec workspace,
                                                   std::function<void(MadePack)> on_made);
  PackThread(const PackThread&) = delete;
  PackThread& operator=(const PackThread&) = delete;

 private:
  PackThread() = default;

  std::unique_ptr<WatchedInbox<MadePack>> made_;
  std::unique_ptr<JoiningThread> thread_;
};

}  // namespace monarch
