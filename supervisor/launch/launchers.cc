#include "supervisor/launch/launchers.h"

#include <utility>

#include "supervisor/launch/away_launcher.h"
#include "supervisor/launch/launcher_checks.h"
#include "supervisor/launch/open_launcher.h"
#include "supervisor/launch/reach/job_reach.h"
#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// How long who launches the hosts may take to connect: it has started us, and is told at once that we are ready.
constexpr Duration kLauncherAwaited = Duration::seconds(30);

// The keys, and the files that the spec names, are on the machine that started the job.
std::unique_ptr<Launcher> open_away(const LaunchSurroundings& around, LauncherHandlers handlers) {
  const auto on_out_of_reach = [&hosts = around.hosts, &spec = around.spec, say = handlers.say](HostId host) {
    say(EventKind::kHostOutOfReach, Severity::kWarning,
        text(hosts[host.value()].name,
             ": its worker cannot be ended from here, now that the machine that launched it has gone; without us it "
             "ends by itself within ",
             to_text(spec.supervision.lease + spec.supervision.orphan_ttl)));
  };
  return std::make_unique<AwayLauncher>(
      around.loop,
      AwayLauncherOptions{.job = around.job,
                          .term = around.term,
                          .hosts = around.hosts.size(),
                          .awaited = around.returned ? Duration::zero() : kLauncherAwaited,
                          .on_out_of_reach = on_out_of_reach},
      std::move(handlers));
}

struct Kind {
  std::string_view name;
  Result<std::unique_ptr<Launcher>> (*open)(const LaunchSurroundings& around, LauncherHandlers handlers);
  std::vector<doctor::Check> (*checks)(const JobSpec& spec, const doctor::Variables& environment);
  Result<std::unique_ptr<HostReach>> (*reach)(const ReachSurroundings& around);
};

const Kind& kind_of(const JobSpec& spec) {
#define MONARCH_KIND(name) {#name, open_##name, name##_checks, reach_##name},
  static constexpr Kind kKinds[] = {MONARCH_LAUNCHERS(MONARCH_KIND)};
#undef MONARCH_KIND
  for (const Kind& kind : kKinds) {
    if (kind.name == spec.launch.facts().name) return kind;
  }
  MONARCH_ASSERT_BECAUSE(false, "a launcher is one of the list");
  return kKinds[0];
}

}  // namespace

Result<std::unique_ptr<Launcher>> open_launcher(const LaunchSurroundings& around, LauncherHandlers handlers) {
  if (around.spec.supervised_away()) return open_away(around, std::move(handlers));
  return kind_of(around.spec).open(around, std::move(handlers));
}

std::vector<doctor::Check> launcher_checks(const JobSpec& spec, const doctor::Variables& environment) {
  return kind_of(spec).checks(spec, environment);
}

Result<std::unique_ptr<CheckReach>> open_reach(const ReachSurroundings& around) {
  if (around.spec.supervised_away()) {
    return Error{ErrorCode::kUnsupported,
                 "its supervisor is on one of its hosts (`supervisor: {on: first}`), from where the others are not "
                 "reached"};
  }
  MONARCH_ASSIGN(auto hosts, kind_of(around.spec).reach(around));
  return std::unique_ptr<CheckReach>(std::make_unique<JobReach>(around, std::move(hosts)));
}

}  // namespace monarch
