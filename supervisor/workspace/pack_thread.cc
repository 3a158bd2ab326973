#include "supervisor/workspace/pack_thread.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

Result<std::unique_ptr<PackThread>> PackThread::start(EventLoop& loop, UniqueFd job_folder, WorkspaceSpec workspace,
                                                      std::function<void(MadePack)> on_made) {
  std::unique_ptr<PackThread> self(new PackThread(loop));
  self->cancel_ = UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!self->cancel_.valid()) return errno_error("eventfd", errno);
  MONARCH_ASSIGN(self->made_, Inbox<MadePack>::create(1));
  MONARCH_ASSIGN(self->watch_, loop.watch(self->made_->descriptor(), Interest::kRead,
                                          [inbox = self->made_.get(), on_made = std::move(on_made)](Readiness) {
                                            for (MadePack& made : inbox->take_all()) on_made(std::move(made));
                                          }));
  const auto work = [folder = std::make_shared<UniqueFd>(std::move(job_folder)), workspace = std::move(workspace),
                     cancel = self->cancel_.get(), inbox = self->made_.get()] {
    MadePack made = WorkspacePack::open(folder->get());
    const bool never_made = !made.ok() && made.error().code == ErrorCode::kNotFound;
    if (never_made) made = WorkspacePack::make(folder->get(), workspace, cancel);
    MONARCH_ASSERT(inbox->put(std::move(made)));
  };
  try {
    self->thread_ = std::thread(work);
  } catch (const std::system_error& error) {  // the user's limit of processes
    return Error{ErrorCode::kBusy, text("starting a thread: ", error.what())};
  }
  return self;
}

PackThread::~PackThread() {
  loop_.forget(watch_);
  const std::uint64_t one = 1;
  (void)!::write(cancel_.get(), &one, sizeof one);  // cannot be full: it is written once
  if (thread_.joinable()) thread_.join();
}

}  // namespace monarch
