#include <utility>

#include "supervisor/launch/command/command_talk.h"
#include "supervisor/launch/reach/check_reach.h"
#include "supervisor/launch/reach/program_check.h"
#include "supervisor/launch/talk/forked_programs.h"

namespace monarch {

namespace {

class CommandReach final : public HostReach {
 public:
  CommandReach(EventLoop& loop, LaunchCommand spec, std::shared_ptr<const WorkerImage> image)
      : loop_(loop), spec_(std::move(spec)), image_(std::move(image)), programs_(loop_) {}

  std::unique_ptr<HostTalk> open(HostId host, HostTalk::OnLost on_lost) override {
    RemoteOrder order = order_with(RemotePurpose::kCheck, image_.get(), spec_.worker.value_or(""));
    order.worker_key = "launch.command.worker";
    return program_check(loop_, programs_, std::move(order), command_talk(spec_, host, image_), std::move(on_lost));
  }

 private:
  EventLoop& loop_;
  LaunchCommand spec_;
  std::shared_ptr<const WorkerImage> image_;  // owners: this and its talks, which only read it
  ForkedPrograms programs_;
};

}  // namespace

Result<std::unique_ptr<HostReach>> reach_command(const ReachSurroundings& around) {
  const LaunchCommand& spec = *around.spec.launch.as<LaunchCommand>();
  std::shared_ptr<const WorkerImage> image;
  if (!spec.worker) {
    MONARCH_ASSIGN(image, read_worker_image(around.worker_path));
  }
  return std::unique_ptr<HostReach>(std::make_unique<CommandReach>(around.loop, spec, std::move(image)));
}

}  // namespace monarch
