#include <utility>

#include "supervisor/journal/runtime_dir.h"
#include "supervisor/launch/local/local_launcher.h"
#include "supervisor/launch/open_launcher.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

Result<std::unique_ptr<Launcher>> open_local(const LaunchSurroundings& around, LauncherHandlers handlers) {
  const std::string& runtime = around.runtime.path();
  // The longest name in it must be an address, too.
  const std::string sockets = local_socket_directory(runtime, around.job, HostId(limits::kHostsPerJob));
  MONARCH_TRY(socket_path(around.runtime, text(sockets.substr(runtime.size() + 1), "/999.65535.n")));
  std::vector<std::string> names;
  for (const PoolHost& host : around.hosts) names.push_back(host.name);
  return std::unique_ptr<Launcher>(
      std::make_unique<LocalLauncher>(around.loop, around.guard,
                                      LocalLauncherOptions{.job = around.job,
                                                           .term = around.term,
                                                           .worker_path = around.worker_path,
                                                           .log_directory = around.log_directory,
                                                           .runtime_directory = runtime,
                                                           .host_names = std::move(names)},
                                      std::move(handlers)));
}

}  // namespace monarch
