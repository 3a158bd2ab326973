#include "cli/follow/session_flags.h"

#include "cli/args/say.h"
#include "cli/args/values.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

std::vector<Flag> output_flags() {
  return {{.name = "json", .value = "", .help = "on stdout one object per line: output, event, result"},
          {.name = "prefix",
           .value = "FORMAT",
           .help = "what stands in front of the ranks' lines, such as '{mesh}/{rank} {time} '"},
          {.name = "no-prefix", .value = "", .help = "the ranks' lines as they are, without [mesh/rank@host] in front"},
          {.name = "fold",
           .value = "",
           .help = "a line that many ranks write within 250 ms is shown once, with their number: [mesh/0-7 ×8]"}};
}

std::optional<LineOptions> line_options(const Arguments& arguments, const Context& context) {
  LineOptions options;
  const auto prefix = arguments.value("prefix");
  const bool bare = arguments.has("no-prefix");
  options.fold = arguments.has("fold");
  if (arguments.has("json")) {
    options.style = LineStyle::kJson;
    if (prefix) return refuse_value(context, "--prefix and --json cannot be used together");
    if (options.fold) return refuse_value(context, "--fold and --json cannot be used together");
    return options;
  }
  if (prefix && bare) return refuse_value(context, "--prefix and --no-prefix cannot be used together");
  if (bare) options.style = LineStyle::kBare;
  if (!prefix) return options;
  const auto format = PrefixFormat::parse(*prefix);
  if (!format.ok()) return refuse_value(context, text("--prefix ", format.error().message));
  options.prefix = *format;
  return options;
}

std::vector<Flag> history_flags(std::string_view of_what) {
  return {{.name = "since",
           .value = "TIME",
           .help = text("only ", of_what, " from then on: 10m (ago), 12:04:41 or 2026-11-20T12:04:41Z, in UTC")},
          {.name = "tail", .value = "N", .help = text("begin with the last N ", of_what)},
          {.name = "grep",
           .value = "REGEX",
           .help = text("only ", of_what, " that match this regular expression, in RE2's syntax")}};
}

std::optional<History> history(const Arguments& arguments, const Context& context) {
  History wanted;
  const auto since = moment_flag(arguments, "since", wall_now());
  if (!since.ok()) return refuse_value(context, since.error().message);
  const auto lines = count_flag(arguments, "tail");
  if (!lines.ok()) return refuse_value(context, lines.error().message);
  wanted.start = {.since = *since, .lines = *lines};
  if (const auto pattern = arguments.value("grep")) {
    auto only = LinePattern::parse(*pattern);
    if (!only.ok()) return refuse_value(context, text("--grep ", only.error().message));
    wanted.only = std::move(*only);
  }
  return wanted;
}

std::vector<Flag> place_flags() {
  return {{.name = "mesh", .value = "MESH", .help = "of this mesh only"},
          {.name = "at", .value = "COORDINATES", .help = "of these coordinates only, such as replica=2,gpu=0:4"},
          {.name = "rank", .value = "RANKS", .help = "of these ranks of a mesh only, such as 3,7-9"},
          {.name = "host", .value = "HOSTS", .help = "of these hosts only, such as node[05-07]"}};
}

std::vector<Flag> selector_flags() {
  std::vector<Flag> flags = place_flags();
  flags.push_back({.name = "generation", .value = "GENERATIONS", .help = "of these generations only, such as 2"});
  return flags;
}

std::optional<Selector> take_selector(const Arguments& arguments, const JobSpec& spec, const Context& context,
                                      std::vector<std::string> named) {
  auto selector = Selector::parse({.mesh = arguments.value("mesh"),
                                   .at = arguments.value("at"),
                                   .ranks = arguments.value("rank"),
                                   .hosts = arguments.value("host"),
                                   .generations = arguments.value("generation"),
                                   .named = std::move(named)},
                                  spec);
  if (auto* found = std::get_if<Selector>(&selector)) return std::move(*found);
  say_error(context.terminal, std::get<Complaint>(selector));
  return std::nullopt;
}

std::vector<Flag> stream_flags() {
  return {{.name = "stdout", .value = "", .help = "what they wrote to stdout only"},
          {.name = "stderr", .value = "", .help = "what they wrote to stderr only"}};
}

std::function<bool(const StreamId&)> wanted_streams(const Arguments& arguments, std::shared_ptr<const RankHosts> hosts,
                                                    Selector selector) {
  const bool out = arguments.has("stdout") || !arguments.has("stderr");
  const bool err = arguments.has("stderr") || !arguments.has("stdout");
  const auto wanted = [selector = std::move(selector), hosts = std::move(hosts), out, err](const StreamId& stream) {
    if (!(stream.stream == OutputStream::kStdout ? out : err)) return false;
    return selector.selects_all() || selector.has(stream.rank, hosts->host_of(stream.rank), stream.generation);
  };
  return wanted;
}

std::shared_ptr<RankHosts> rank_hosts_of(const OpenedJob& job) {
  auto hosts = std::make_shared<RankHosts>(job.spec);
  // A journal that cannot be read is told of by who needs more of it than names.
  if (const auto told = job.view.events(); told.ok()) hosts->on_events(told->events);
  return hosts;
}

std::optional<std::optional<Duration>> timeout_flag(const Arguments& arguments, const Context& context) {
  const auto timeout = duration_flag(arguments, "timeout");
  if (timeout.ok()) return *timeout;
  say_error(context.terminal, {.id = "E0904", .message = timeout.error().message, .help = ""});
  return std::nullopt;
}

SessionEnd follow_job(const JobView& view, const JobSpec& spec, const Context& context, SignalFd& signals,
                      SessionOptions options) {
  auto session = ViewerSession::create(view, spec, context, signals, std::move(options));
  if (session.ok()) return (*session)->follow();
  say_error(context.terminal,
            {.id = "E0908", .message = text("cannot follow ", view.id(), ": ", session.error().message), .help = ""});
  return {.exit_code = kExitInternal, .verdict = std::nullopt};
}

SessionEnd follow_job(const OpenedJob& job, const Context& context, SessionOptions options) {
  const auto signals = SignalFd::create(SignalPolicy::signals(options.kind));
  if (!signals.ok()) {
    say_error(context.terminal, {.id = "E0908", .message = signals.error().message, .help = ""});
    return {.exit_code = kExitInternal, .verdict = std::nullopt};
  }
  if (!options.first_word.empty()) say_note(context.terminal, options.first_word);
  return follow_job(job.view, job.spec, context, **signals, std::move(options));
}

}  // namespace monarch
