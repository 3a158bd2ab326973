#include <utility>

#include "supervisor/launch/reach/check_reach.h"
#include "supervisor/launch/reach/program_check.h"
#include "supervisor/launch/talk/forked_programs.h"

namespace monarch {

namespace {

// All virtual hosts are this machine.
class LocalReach final : public HostReach {
 public:
  explicit LocalReach(const ReachSurroundings& around)
      : loop_(around.loop), worker_(around.worker_path), programs_(loop_) {}

  std::unique_ptr<HostTalk> open(HostId, HostTalk::OnLost on_lost) override {
    return check_here(loop_, programs_, worker_, std::move(on_lost));
  }

 private:
  EventLoop& loop_;
  std::string worker_;
  ForkedPrograms programs_;
};

}  // namespace

Result<std::unique_ptr<HostReach>> reach_local(const ReachSurroundings& around) {
  return std::unique_ptr<HostReach>(std::make_unique<LocalReach>(around));
}

}  // namespace monarch
