#include "cli/session_flags.h"

#include <algorithm>

#include "cli/exit_code.h"
#include "cli/say.h"
#include "cli/values.h"
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

std::vector<Flag> selection_flags() {
  return {{.name = "mesh", .value = "MESH", .help = "of this mesh only"},
          {.name = "rank", .value = "RANKS", .help = "of these ranks only, such as 3,7-9"},
          {.name = "stdout", .value = "", .help = "what they wrote to stdout only"},
          {.name = "stderr", .value = "", .help = "what they wrote to stderr only"}};
}

namespace {

std::optional<std::function<bool(const StreamId&)>> wrong(const Context& context, const std::string& message,
                                                          const std::string& help) {
  say_error(context.terminal, {.id = "E0904", .message = message, .help = help});
  return std::nullopt;
}

}  // namespace

std::optional<std::function<bool(const StreamId&)>> selection(const Arguments& arguments, const JobSpec& spec,
                                                              const Context& context) {
  const auto ranks = ranks_flag(arguments, "rank");
  if (!ranks.ok()) return wrong(context, ranks.error().message, "");
  const std::string mesh_name = arguments.value("mesh").value_or("");
  std::vector<std::string> names;
  for (const MeshSpec& mesh : spec.meshes) names.push_back(mesh.name);
  if (!mesh_name.empty() && std::find(names.begin(), names.end(), mesh_name) == names.end()) {
    return wrong(context, text("--mesh ", printable(mesh_name), ": the job has no such mesh"),
                 text("one of: ", join(names, " ")));
  }
  const bool any_rank = std::any_of(spec.meshes.begin(), spec.meshes.end(), [&](const MeshSpec& mesh) {
    if (!mesh_name.empty() && mesh.name != mesh_name) return false;
    for (std::uint32_t rank = 0; rank < mesh.size(); ++rank) {
      if (!*ranks || (*ranks)->contains(rank)) return true;
    }
    return false;
  });
  if (!any_rank) return wrong(context, "--rank: the job has no such rank", "monarch status shows the ranks");
  const bool out = arguments.has("stdout") || !arguments.has("stderr");
  const bool err = arguments.has("stderr") || !arguments.has("stdout");
  return [names, mesh_name, ranks = *ranks, out, err](const StreamId& stream) {
    if (!mesh_name.empty() && names[stream.rank.mesh.value()] != mesh_name) return false;
    if (ranks && !ranks->contains(stream.rank.rank.value())) return false;
    return stream.stream == OutputStream::kStdout ? out : err;
  };
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
