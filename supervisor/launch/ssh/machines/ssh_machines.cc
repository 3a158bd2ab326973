#include "supervisor/launch/ssh/machines/ssh_machines.h"

#include <utility>

#include "supervisor/launch/ssh/machines/host_health.h"
#include "supervisor/launch/ssh/session/libssh.h"
#include "supervisor/launch/ssh/ssh_routes.h"

namespace monarch {

Result<std::unique_ptr<SshMachines>> SshMachines::create(const LaunchSurroundings& around, LauncherHandlers handlers) {
  MONARCH_TRY(load_libssh());
  if (std::string concern = libssh_concern(libssh_version()); !concern.empty()) {
    // Viewers can be told when this is done.
    around.loop.defer([say = handlers.say, concern = std::move(concern)] {
      say(EventKind::kLibraryOld, Severity::kWarning, concern);
    });
  }
  const JobSpec& spec = around.spec;
  SshUser user = SshUser::of_this_process();
  user.accept_new_host_keys = around.accept_new_host_keys;
  MONARCH_ASSIGN(const SshAccess access, ssh_access(spec, user, around.worker_path));
  const bool dialled = spec.control.via == ControlVia::kDirect;
  const Duration lost = spec.supervision.lost_after;
  std::unique_ptr<SshMachines> made(new SshMachines());
  // What it finds is to be known before the host counts as lost.
  SecondLookOptions look{.job = around.job,
                         .access = access,
                         .address = spec.control.address,
                         .port = dialled ? around.control_port : std::uint16_t{0},
                         .patience = (lost - spec.supervision.suspect_after) * 4 / 5,
                         .seed = around.seed};
  MONARCH_ASSIGN(made->second_look_, SecondLook::create(around.loop, std::move(look), handlers.on_seen));
  SshLauncherOptions options{.job = around.job,
                             .job_id = around.job_id,
                             .term = around.term,
                             .access = access,
                             .way_back = {.address = spec.control.address},
                             .workspace = spec.workspace.has_value(),
                             .pool = {.parallel = access.parallel, .seed = around.seed},
                             .check = host_health(spec, access)};
  if (!dialled) {
    options.way_back.tunnel = {around.control_port, around.bulk_port};
    // What ends without a word is to be known, and mended, before a host counts as lost.
    options.way_back.silence = {.ask_after = lost / 5, .dead_after = lost * 3 / 5};
  }
  handlers.on_ended = [told = std::move(handlers.on_ended), look = made->second_look_.get()](
                          HostId host, std::string how, bool orderly) {
    look->forget(host);
    told(host, std::move(how), orderly);
  };
  MONARCH_ASSIGN(made->launcher_, SshLauncher::create(around.loop, std::move(options), std::move(handlers)));
  if (spec.workspace) {
    MONARCH_ASSIGN(UniqueFd folder, around.directory.duplicate());
    MONARCH_TRY(made->launcher_->pack_workspace(std::move(folder), *spec.workspace));
  }
  return made;
}

void SshMachines::destroy(HostId host) {
  second_look_->forget(host);
  launcher_->destroy(host);
}

Result<std::unique_ptr<Launcher>> open_ssh(const LaunchSurroundings& around, LauncherHandlers handlers) {
  MONARCH_ASSIGN(auto machines, SshMachines::create(around, std::move(handlers)));
  return std::unique_ptr<Launcher>(std::move(machines));
}

}  // namespace monarch
