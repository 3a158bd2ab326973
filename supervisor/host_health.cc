#include "supervisor/host_health.h"

#include <utility>
#include <variant>

#include "supervisor/doctor/check_talk.h"
#include "supervisor/doctor/host_findings.h"
#include "supervisor/doctor/host_requests.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kSilence = Duration::seconds(30);  // of the host in the middle of its answer

struct Asked {
  JobSpec spec;
  std::vector<SshLauncherHost> hosts;
  std::shared_ptr<const WorkerImage> image;
  std::string installed;
};

RemoteOrder order_of(const Asked& asked) {
  RemoteOrder order{.purpose = RemotePurpose::kCheck, .installed = asked.installed};
  if (asked.image) {
    order.file = asked.image->file;
    order.machine = asked.image->machine;
  }
  return order;
}

std::optional<LaunchFailure> worst_of(const doctor::HostSeen& seen) {
  for (const doctor::Finding& finding : doctor::findings_of(seen)) {
    if (finding.health != doctor::Health::kFailed) continue;
    return LaunchFailure{.kind = LaunchFailureKind::kUnwell,
                         .phase = "check",
                         .message = text("it was lost, and is looked at before it is used again: ", finding.check, ": ",
                                         finding.found, "; ", finding.means),
                         .again = finding.fix};
  }
  return std::nullopt;
}

}  // namespace

SshHostCheck host_health(const JobSpec& spec, const SshLauncherOptions& launcher) {
  const auto asked = std::make_shared<const Asked>(
      Asked{.spec = spec, .hosts = launcher.hosts, .image = launcher.image, .installed = launcher.installed});
  return [asked](SshSession& session, HostId host, int cancel) -> std::optional<LaunchFailure> {
    CheckRequest request = doctor::look_request(asked->spec, host.value());
    request.first_door.reset();
    doctor::CheckTalk talk(session, order_of(*asked), asked->image.get(), {.cancel = cancel, .silence = kSilence});
    auto answer = talk.ask(request);
    if (auto* failure = std::get_if<LaunchFailure>(&answer)) return std::move(*failure);
    talk.leave();
    CheckAnswer& said = std::get<doctor::TimedAnswer>(answer).answer;
    const SshLauncherHost& who = asked->hosts[host.value()];
    return worst_of({.name = who.name,
                     .route = who.route,
                     .facts = std::move(said.facts),
                     .folders = std::move(said.folders),
                     .programs = std::move(said.programs)});
  };
}

}  // namespace monarch
