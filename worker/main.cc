// monarch-worker: our part on a host, in one file. Started without arguments it is the keeper, which starts the same
// file again as the daemon; `keep` is the guard of a supervisor; `end`, `check`, `workspace` and `digest` are for who
// starts workers on other hosts.

#include <unistd.h>

#include <string>
#include <string_view>
#include <vector>

#include "transport/base/exit_code.h"
#include "transport/base/marks.h"
#include "transport/base/system/thread_limits.h"
#include "transport/base/text.h"
#include "transport/loop/signals.h"
#include "transport/process/hidden_memory.h"
#include "worker/daemon/daemon_main.h"
#include "worker/daemon/promise_file.h"
#include "worker/embedded/rank_files.h"
#include "worker/errand/check_main.h"
#include "worker/errand/digest_main.h"
#include "worker/errand/end_main.h"
#include "worker/errand/step_main.h"
#include "worker/errand/tree_builder.h"
#include "worker/errand/workspace_main.h"
#include "worker/keeper/keeper_main.h"
#include "worker/post/post_main.h"
#include "worker/vault/vault_main.h"

namespace {

constexpr std::string_view kUsage =
    "usage: monarch-worker [--job UUID --host NAME]   (a Bootstrap on standard input; `monarch` starts it)\n"
    "       monarch-worker keep [--ready-fd N] [--restarts N] [--window SECONDS] -- COMMAND…\n"
    "       monarch-worker end --job UUID --host NAME [--job-id ID]   (ends all of that job on this host)\n"
    "       monarch-worker check   (answers `monarch doctor`, a supervisor or a drill)\n"
    "       monarch-worker workspace --job UUID --host NAME --job-id ID   (makes that job's workspace on this host)\n"
    "       monarch-worker step --job UUID --host NAME   (a worker in a step of Slurm that has one on each of its "
    "nodes)\n"
    "       monarch-worker digest FILE\n"
    "       monarch-worker version\n";

}  // namespace

int main(int argc, char** argv) {
  if (const std::string why = monarch::why_stack_is_too_small(); !why.empty()) {
    const std::string words = monarch::text("monarch-worker: ", why, "\n");
    (void)!::write(STDERR_FILENO, words.data(), words.size());  // a closed end wants none
    return monarch::kExitInternal;
  }
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  // A connection that breaks is told by its descriptor, and a full file by its write.
  monarch::ignore_what_is_for_ranks();
  // The mark is for those who look for what a job left; what counts is in the Bootstrap.
  const bool daemon = !arguments.empty() && arguments[0] == monarch::kDaemonArgument;
  const bool vault = !arguments.empty() && arguments[0] == monarch::kVaultArgument;
  const bool post = !arguments.empty() && arguments[0] == monarch::kPostArgument;
  const std::vector<std::string> rest(arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end());
  const std::vector<std::string>& mark = daemon || vault || post ? rest : arguments;
  const bool marked = mark.size() == 4 && mark[0] == monarch::kJobArgument && mark[2] == monarch::kHostArgument;
  if (daemon && (marked || rest.empty())) return monarch::daemon_main(monarch::remove_trees);
  if (vault && marked) return monarch::vault_main();
  if (post && marked) return monarch::post_main();
  if (arguments.empty() || marked)
    return monarch::keeper_main({.program = monarch::embedded::rank_program(),
                                 .library = monarch::embedded::rank_library(),
                                 .modules = monarch::embedded::python_modules()});
  if (arguments[0] == "keep") return monarch::guard_main(rest);
  if (arguments[0] == monarch::kStepArgument) return monarch::step_main(rest);
  // None of these starts a rank, which would inherit it; what they read is the user's: a workspace, what ranks were
  // given.
  monarch::refuse_core_dumps();
  monarch::hide_memory();
  if (arguments[0] == "end") return monarch::end_main(rest, monarch::daemon::remove_promise);
  if (arguments[0] == "check" && rest.empty()) return monarch::check_main();
  if (arguments[0] == monarch::kWorkspaceArgument) return monarch::workspace_main(rest);
  if (arguments[0] == "digest" && rest.size() == 1) return monarch::digest_main(rest.front());
  const bool version = arguments[0] == "version" && arguments.size() == 1;
  const std::string_view answer = version ? "monarch-worker " MONARCH_VERSION "\n" : kUsage;
  (void)!::write(version ? STDOUT_FILENO : STDERR_FILENO, answer.data(), answer.size());  // a closed end wants none
  return version ? monarch::kExitOk : monarch::kExitUsage;
}
