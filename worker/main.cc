// monarch-worker: our part on a host, in one file. Started without arguments it is the keeper, which starts the same file
// again as the daemon; `keep` is the guard of a supervisor; `end` and `digest` are for who starts workers on other hosts.

#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "transport/base/marks.h"
#include "worker/daemon/daemon_main.h"
#include "worker/daemon/promise_file.h"
#include "worker/keeper/digest_main.h"
#include "worker/keeper/end_main.h"
#include "worker/keeper/keeper_main.h"

namespace {

constexpr int kExitUsage = 2;
constexpr std::string_view kUsage =
    "usage: monarch-worker [--job UUID --host NAME]   (a Bootstrap on standard input; `monarch` starts it)\n"
    "       monarch-worker keep [--ready-fd N] [--restarts N] [--window SECONDS] -- COMMAND…\n"
    "       monarch-worker end --job UUID --host NAME [--job-id ID]   (ends all of that job on this host)\n"
    "       monarch-worker digest FILE\n"
    "       monarch-worker version\n";

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  // The mark is for those who look for what a job left; what counts is in the Bootstrap.
  const bool daemon = !arguments.empty() && arguments[0] == monarch::kDaemonArgument;
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  const std::vector<std::string>& mark = daemon ? rest : arguments;
  const bool marked = mark.size() == 4 && mark[0] == monarch::kJobArgument && mark[2] == monarch::kHostArgument;
  if (daemon && (marked || rest.empty())) return monarch::daemon_main();
  if (arguments.empty() || marked) return monarch::keeper_main();
  if (arguments[0] == "end") return monarch::end_main(rest, monarch::daemon::remove_promise);
  if (arguments[0] == "digest" && rest.size() == 1) return monarch::digest_main(rest.front());
  if (arguments[0] == "keep") return monarch::guard_main(rest);
  const bool version = arguments[0] == "version" && arguments.size() == 1;
  const std::string_view answer = version ? "monarch-worker " MONARCH_VERSION "\n" : kUsage;
  (void)!::write(version ? STDOUT_FILENO : STDERR_FILENO, answer.data(), answer.size());  // a closed end wants none
  return version ? 0 : kExitUsage;
}
