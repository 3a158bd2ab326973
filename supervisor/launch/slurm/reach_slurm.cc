#include <cstdlib>
#include <utility>

#include "supervisor/launch/reach/carried_talk.h"
#include "supervisor/launch/reach/program_check.h"
#include "supervisor/launch/slurm/slurm_calls.h"
#include "supervisor/launch/slurm/slurm_launcher.h"
#include "supervisor/launch/slurm/slurm_requests.h"
#include "supervisor/launch/slurm/slurm_spec.h"
#include "supervisor/launch/slurm/steps_gres.h"
#include "supervisor/launch/talk/forked_programs.h"
#include "transport/base/text.h"
#include "transport/loop/scope.h"

namespace monarch {

namespace {

struct SlurmReachOptions {
  std::string job_uuid;
  std::string job_id;
  Allocation allocation;
  Words environment;
  std::shared_ptr<const WorkerImage> image;  // owners: this and its talks, which only read it
};

// A step of one process on the host's node, beside its worker's. Which node a host on request has Slurm alone can tell
// whoever is not the supervisor: that is asked first.
class SlurmReach final : public HostReach {
 public:
  SlurmReach(EventLoop& loop, SlurmReachOptions options)
      : loop_(loop), options_(std::move(options)), programs_(loop_), calls_(loop_, programs_) {}

  std::unique_ptr<HostTalk> open(HostId host, HostTalk::OnLost on_lost) override {
    if (host.value() < options_.allocation.nodes.size()) {
      return talk({.job = options_.allocation.job, .node = options_.allocation.nodes[host.value()], .name = {}},
                  std::move(on_lost));
    }
    return std::make_unique<OnRequest>(*this, host, std::move(on_lost));
  }

 private:
  // Until it is known where the host is, what is asked of it waits.
  class OnRequest final : public HostTalk {
   public:
    OnRequest(SlurmReach& reach, HostId host, OnLost on_lost) : on_lost_(std::move(on_lost)) {
      reach.find(host, scope_.guard([this, &reach](const Result<StepPlace>& place) { on_place(reach, place); }));
    }

    void ask(const CheckRequest& request, OnAnswer on_answer) override {
      if (talk_) return talk_->ask(request, std::move(on_answer));
      request_ = request;
      on_answer_ = std::move(on_answer);
    }

   private:
    void on_place(SlurmReach& reach, const Result<StepPlace>& place) {
      if (place.ok()) {
        talk_ = reach.talk(*place, std::move(on_lost_));
      } else {
        const auto nowhere = [&](const CarrierHandlers&) -> Result<std::unique_ptr<CheckCarrier>> {
          return place.error();
        };
        talk_ = std::make_unique<CarriedTalk>(reach.loop_, nowhere, std::move(on_lost_));
      }
      if (request_) talk_->ask(*std::exchange(request_, std::nullopt), std::exchange(on_answer_, nullptr));
    }

    OnLost on_lost_;
    std::optional<CheckRequest> request_;
    OnAnswer on_answer_;
    std::unique_ptr<HostTalk> talk_;
    Scope scope_;
  };

  void find(HostId host, std::function<void(const Result<StepPlace>& place)> then) {
    calls_.call(requests_query(options_.job_id, options_.environment),
                [this, host, then = std::move(then)](const Result<std::string>& answer) {
                  if (!answer.ok()) return then(answer.error());
                  for (const RequestedJob& job : read_requests(*answer, options_.job_uuid)) {
                    const bool there = job.state == SlurmJobState::kRunning && !job.nodes.empty();
                    if (job.token.host == host && there) {
                      return then(StepPlace{.job = job.job, .node = job.nodes, .name = {}});
                    }
                  }
                  then(Error{ErrorCode::kNotFound, "Slurm has no node for this host"});
                });
  }

  std::unique_ptr<HostTalk> talk(const StepPlace& place, HostTalk::OnLost on_lost) {
    ProgramTalkOptions options{.command = step_command({.job = place.job,
                                                        .nodes = {place.node},
                                                        .name = check_step_name(options_.job_id, place.node),
                                                        .environment = options_.environment,
                                                        .program = {"/bin/sh", "-c", std::string(remote_command())},
                                                        .gres = no_gres_options()}),
                               .image = options_.image,
                               .program = "srun",
                               .place = "a step on the node",
                               .none = "started no step on the node",
                               .kind_of = kind_of_saying};
    return program_check(loop_, programs_, order_with(RemotePurpose::kCheck, options_.image.get()), std::move(options),
                         std::move(on_lost));
  }

  static LaunchFailureKind kind_of_saying(std::string_view words) {
    return says_not_authenticated(words) ? LaunchFailureKind::kAuthentication : LaunchFailureKind::kOther;
  }

  EventLoop& loop_;
  SlurmReachOptions options_;
  ForkedPrograms programs_;
  SlurmCalls calls_;
};

}  // namespace

Result<std::unique_ptr<HostReach>> reach_slurm(const ReachSurroundings& around) {
  const LaunchSlurm& slurm = *around.spec.launch.as<LaunchSlurm>();
  if (!slurm.allocation) return Error{ErrorCode::kInvalid, "launch.slurm: this job has no allocation"};
  SlurmReachOptions options{.job_uuid = around.job,
                            .job_id = around.job_id,
                            .allocation = *slurm.allocation,
                            .environment = slurm_environment([](const char* name) { return std::getenv(name); }),
                            .image = nullptr};
  MONARCH_ASSIGN(options.image, read_worker_image(around.worker_path));
  return std::unique_ptr<HostReach>(std::make_unique<SlurmReach>(around.loop, std::move(options)));
}

}  // namespace monarch
