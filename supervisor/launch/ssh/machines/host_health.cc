#include "supervisor/launch/ssh/machines/host_health.h"

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
  SshAccess access;
};

LaunchFailure unwell(const std::string& what, const std::string& fix) {
  return {.kind = LaunchFailureKind::kUnwell,
          .phase = "check",
          .message = text("it was lost, and is looked at before it is used again: ", what),
          .again = fix};
}

// `lack`: of what the spec's ranks need there; its GPUs, for instance.
std::optional<LaunchFailure> worst_of(const doctor::HostSeen& seen, const std::string& lack) {
  for (const doctor::Finding& finding : doctor::findings_of(seen)) {
    if (finding.health != doctor::Health::kFailed) continue;
    return unwell(text(finding.check, ": ", finding.found, "; ", finding.means), finding.fix);
  }
  return lack.empty() ? std::nullopt : std::optional(unwell(text("resources: ", lack), ""));
}

}  // namespace

SshHostCheck host_health(const JobSpec& spec, const SshAccess& access) {
  const auto asked = std::make_shared<const Asked>(Asked{.spec = spec, .access = access});
  return [asked](SshSession& session, HostId host, int cancel) -> std::optional<LaunchFailure> {
    CheckRequest request = doctor::look_request(asked->spec, host.value());
    request.first_door.reset();
    doctor::CheckTalk talk(session, asked->access.order(RemotePurpose::kCheck), asked->access.image.get(),
                           {.cancel = cancel, .silence = kSilence});
    auto answer = talk.ask(request);
    if (auto* failure = std::get_if<LaunchFailure>(&answer)) return std::move(*failure);
    talk.leave();
    CheckAnswer& said = std::get<TimedAnswer>(answer).answer;
    const SshLauncherHost& who = asked->access.hosts[host.value()];
    const std::string lack =
        said.facts ? doctor::lacking_of(asked->spec, host.value(), said.facts->inventory) : std::string();
    return worst_of({.name = who.name,
                     .route = who.route,
                     .facts = std::move(said.facts),
                     .folders = std::move(said.folders),
                     .programs = std::move(said.programs)},
                    lack);
  };
}

}  // namespace monarch
