#include "worker/errand/end_main.h"

#include <unistd.h>

#include <csignal>

#include "transport/base/exit_code.h"
#include "transport/base/marks.h"
#include "transport/base/text.h"
#include "transport/process/containment.h"
#include "transport/process/job_marks.h"
#include "transport/wire/runtime_directory.h"
#include "transport/wire/socket_directory.h"
#include "worker/core/environment.h"
#include "worker/core/host_places.h"
#include "worker/errand/blob_cache.h"
#include "worker/errand/print.h"
#include "worker/errand/tree_builder.h"

extern char** environ;

namespace monarch {

namespace {

constexpr Duration kKillPatience = Duration::seconds(10);  // of what got KILL
constexpr Duration kGroupPatience = Duration::seconds(2);

struct Wanted {
  MarkedBy marks;
  std::string job_id;  // empty: its state is not looked for
};

Result<Wanted> parse_end_arguments(const std::vector<std::string>& arguments) {
  Wanted wanted;
  for (std::size_t i = 0; i + 1 < arguments.size(); i += 2) {
    std::string& value = arguments[i] == kJobArgument    ? wanted.marks.uuid
                         : arguments[i] == kHostArgument ? wanted.marks.host
                                                         : wanted.job_id;
    if (&value == &wanted.job_id && arguments[i] != kJobIdArgument) {
      return Error{ErrorCode::kInvalid, text("there is no option `", printable(arguments[i]), "`")};
    }
    value = arguments[i + 1];
  }
  if (arguments.size() % 2 != 0 || wanted.marks.host.empty() || !is_job_uuid(wanted.marks.uuid)) {
    return Error{ErrorCode::kInvalid, "usage: monarch-worker end --job UUID --host NAME [--job-id ID]"};
  }
  return wanted;
}

void remove_sockets(const MarkedBy& marks) {
  for (const std::string& folder : lasting_directories({.uid = ::geteuid()})) {
    const std::string sockets = host_socket_directory(folder, marks.uuid, marks.host);
    if (!remove_socket_directory(sockets)) print(STDERR_FILENO, text(sockets, " could not be removed\n"));
  }
}

}  // namespace

int end_main(const std::vector<std::string>& arguments, void (*remove_state)(const std::string& directory)) {
  const auto wanted = parse_end_arguments(arguments);
  if (!wanted.ok()) {
    print(STDERR_FILENO, text("monarch-worker end: ", wanted.error().message, '\n'));
    return kExitUsage;
  }
  // A connection that breaks must not leave the job half ended.
  (void)::signal(SIGTERM, SIG_IGN);
  const EndedProcesses ended = end_marked(wanted->marks, kKillPatience);
  // What wiped its marks is in them still; they lie in those of the session in which the keeper was started.
  (void)remove_job_groups(wanted->marks.uuid, kGroupPatience, wanted->marks.host);
  if (!ended.left.empty() || count_job_groups(wanted->marks.uuid, wanted->marks.host) > 0) {
    std::string line = "still";
    if (ended.left.empty()) line += " somebody in its cgroup";
    for (const pid_t pid : ended.left) line += text(' ', pid);
    print(STDOUT_FILENO, line + '\n');
    return kExitStill;
  }
  remove_sockets(wanted->marks);
  if (!wanted->job_id.empty()) {
    const auto places = host_places(environment_from(environ), wanted->job_id, wanted->marks.host);
    if (places.ok()) {
      const Status removed = remove_trees(places->state_directory);
      if (!removed.ok()) print(STDERR_FILENO, removed.error().message + '\n');
      remove_state(places->state_directory);
    }
  }
  BlobCache::sweep(environment_from(environ));  // of a workspace that was on its way
  print(STDOUT_FILENO, text("ended ", ended.ended, '\n'));
  return 0;
}

}  // namespace monarch
