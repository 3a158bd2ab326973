#include "cli/session_flags.h"

#include "cli/exit_code.h"
#include "cli/say.h"
#include "cli/values.h"
#include "supervisor/core/placement.h"
#include "transport/base/text.h"

namespace monarch {

std::vector<Flag> output_flags() {
  return {
      {.name = "json", .value = "", .help = "on stdout one object per line: output, event, result"},
      {.name = "no-prefix", .value = "", .help = "the ranks' lines as they are, without [mesh/rank@host] in front"}};
}

LineStyle line_style(const Arguments& arguments) {
  if (arguments.has("json")) return LineStyle::kJson;
  return arguments.has("no-prefix") ? LineStyle::kBare : LineStyle::kPrefixed;
}

std::vector<Flag> selector_flags() {
  return {{.name = "mesh", .value = "MESH", .help = "of this mesh only"},
          {.name = "at", .value = "COORDINATES", .help = "of these coordinates only, such as replica=2,gpu=0:4"},
          {.name = "rank", .value = "RANKS", .help = "of these ranks of a mesh only, such as 3,7-9"},
          {.name = "host", .value = "HOSTS", .help = "of these hosts only, such as node[05-07]"},
          {.name = "generation", .value = "GENERATIONS", .help = "of these generations only, such as 2"}};
}

std::optional<Selector> take_selector(const Arguments& arguments, const JobSpec& spec, const Context& context) {
  auto selector = Selector::parse({.mesh = arguments.value("mesh"),
                                   .at = arguments.value("at"),
                                   .ranks = arguments.value("rank"),
                                   .hosts = arguments.value("host"),
                                   .generations = arguments.value("generation")},
                                  spec);
  if (auto* found = std::get_if<Selector>(&selector)) return std::move(*found);
  say_error(context.terminal, std::get<Complaint>(selector));
  return std::nullopt;
}

std::vector<Flag> stream_flags() {
  return {{.name = "stdout", .value = "", .help = "what they wrote to stdout only"},
          {.name = "stderr", .value = "", .help = "what they wrote to stderr only"}};
}

std::function<bool(const StreamId&)> wanted_streams(const Arguments& arguments, const JobSpec& spec,
                                                    Selector selector) {
  const bool out = arguments.has("stdout") || !arguments.has("stderr");
  const bool err = arguments.has("stderr") || !arguments.has("stdout");
  const auto wanted = [selector = std::move(selector), placement = Placement(spec),
                       pool = virtual_hosts(spec.pool_size()), out, err](const StreamId& stream) {
    if (!(stream.stream == OutputStream::kStdout ? out : err)) return false;
    return selector.selects_all() ||
           selector.has(stream.rank, pool[placement.host_of(stream.rank).value()].name, stream.generation);
  };
  return wanted;
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
  if (signals.ok()) return follow_job(job.view, job.spec, context, **signals, std::move(options));
  say_error(context.terminal, {.id = "E0908", .message = signals.error().message, .help = ""});
  return {.exit_code = kExitInternal, .verdict = std::nullopt};
}

}  // namespace monarch
