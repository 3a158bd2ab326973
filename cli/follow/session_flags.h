#pragma once

// Flags that several following commands share, and one call that follows a job with them.
//
// Thread: the command's.

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/args/command.h"
#include "cli/args/selector.h"
#include "cli/follow/rank_hosts.h"
#include "cli/follow/viewer_session.h"
#include "cli/job/job_argument.h"

namespace monarch {

// --json, --prefix, --no-prefix and --fold.
std::vector<Flag> output_flags();
// Nothing: stderr says what is wrong.
std::optional<LineOptions> line_options(const Arguments& arguments, const Context& context);

// --since, --tail and --grep.
std::vector<Flag> history_flags(std::string_view of_what);
struct History {
  OutputStart start;
  std::optional<LinePattern> only;
};
// Nothing: stderr says what is wrong.
std::optional<History> history(const Arguments& arguments, const Context& context);

// --mesh, --at, --rank, --host and --generation, the same for every command that has them; place_flags() are those of
// what has not been started, and has no generation.
std::vector<Flag> selector_flags();
std::vector<Flag> place_flags();
// Nothing: stderr says what is wrong.
// `named`: hosts that the spec does not name, and the job has.
std::optional<Selector> take_selector(const Arguments& arguments, const JobSpec& spec, const Context& context,
                                      std::vector<std::string> named = {});

// --stdout and --stderr.
std::vector<Flag> stream_flags();
// Which output is meant by both.
std::function<bool(const StreamId&)> wanted_streams(const Arguments& arguments, std::shared_ptr<const RankHosts> hosts,
                                                    Selector selector);

// What the journal of the job tells of its hosts by now. Owners: the selection of output, and the session or output
// that shows it.
std::shared_ptr<RankHosts> rank_hosts_of(const OpenedJob& job);

// Nothing: its value is wrong, and stderr says so.
std::optional<std::optional<Duration>> timeout_flag(const Arguments& arguments, const Context& context);

// Takes the signals, follows, and says what kept it from following. `signals` may have been taken before.
SessionEnd follow_job(const OpenedJob& job, const Context& context, SessionOptions options);
SessionEnd follow_job(const JobView& view, const JobSpec& spec, const Context& context, SignalFd& signals,
                      SessionOptions options);

}  // namespace monarch
