#include "supervisor/workspace/pack_thread.h"

#include <utility>

#include "transport/base/assert.h"

namespace monarch {

Result<std::unique_ptr<PackThread>> PackThread::start(EventLoop& loop, UniqueFd job_folder, WorkspaceSpec workspace,
                                                      std::function<void(MadePack)> on_made) {
  std::unique_ptr<PackThread> self(new PackThread());
  MONARCH_ASSIGN(self->made_, WatchedInbox<MadePack>::create(loop, 1, std::move(on_made)));
  auto work = [folder = std::move(job_folder), workspace = std::move(workspace),
               inbox = &self->made_->inbox()](int cancel) {
    MadePack made = WorkspacePack::open(folder.get());
    const bool never_made = !made.ok() && made.error().code == ErrorCode::kNotFound;
    if (never_made) made = WorkspacePack::make(folder.get(), workspace, cancel);
    MONARCH_ASSERT(inbox->put(std::move(made)));
  };
  MONARCH_ASSIGN(self->thread_, JoiningThread::start(std::move(work)));
  return self;
}

}  // namespace monarch
