#include "cli/cmd/operator_call.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "cli/args/say.h"
#include "cli/follow/session_flags.h"
#include "supervisor/client/link/supervisor_client.h"
#include "supervisor/core/spec/hostlist.h"
#include "supervisor/core/spec/placement.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

std::string_view verb_of(OperatorWish wish) {
  switch (wish) {
    case OperatorWish::kRestart: return "restart";
    case OperatorWish::kDrain: return "drain";
    case OperatorWish::kUndrain: return "undrain";
    case OperatorWish::kRetry: return "retry";
  }
  return "";
}

// Where its supervisor is asked; nothing: there is none to ask, and stderr says so.
std::optional<ViewerAddress> supervisor_of(const OpenedJob& job, const Context& context, int& exit_code) {
  const std::string& id = job.view.id();
  const auto verdict = job.view.verdict();
  if (verdict.ok() && *verdict) {
    exit_code = refuse(
        context, {.id = "E0923", .message = text(id, " has ended"), .help = "monarch ps lists the jobs that live"},
        kExitUsage);
    return std::nullopt;
  }
  const auto endpoint = job.view.endpoint();
  if (endpoint.ok()) return viewer_address(*endpoint);
  exit_code = refuse(
      context,
      {.id = "E0908", .message = text(id, ": ", endpoint.error().message), .help = help_without_supervisor(job.view)},
      kExitInternal);
  return std::nullopt;
}

}  // namespace

std::optional<std::vector<RankId>> gangs_meant(const OpenedJob& job, const Arguments& arguments, const Context& context,
                                               int& exit_code) {
  exit_code = kExitUsage;
  const auto selector = take_selector(arguments, job.spec, context, job.named_hosts());
  if (!selector) return std::nullopt;
  const auto supervisor = supervisor_of(job, context, exit_code);
  if (!supervisor) return std::nullopt;
  const auto status = ask(*supervisor, StatusRequest{});
  if (!status.ok()) {
    exit_code = refuse(context,
                       {.id = "E0908",
                        .message = text(job.view.id(), ": ", status.error().message),
                        .help = help_without_supervisor(job.view)},
                       kExitInternal);
    return std::nullopt;
  }
  std::vector<RankId> meant;
  std::vector<std::pair<MeshId, GangId>> gangs;
  for (std::uint32_t m = 0; m < status->meshes.size(); ++m) {
    for (const RankStatus& rank : status->meshes[m].ranks) {
      const RankId id{MeshId(m), Rank(rank.rank)};
      if (!selector->has(id, rank.host, rank.generation)) continue;
      const std::pair<MeshId, GangId> gang{id.mesh, job.spec.meshes[m].gang_of(id.rank)};
      // Ranks of a gang are neighbours.
      if (!gangs.empty() && gangs.back() == gang) continue;
      gangs.push_back(gang);
      meant.push_back(id);
    }
  }
  if (!meant.empty()) return meant;
  exit_code = refuse(context, nothing_selected(job.view.id()), kExitUsage);
  return std::nullopt;
}

std::optional<std::vector<std::string>> hosts_meant(const OpenedJob& job, const std::string& written,
                                                    const Context& context) {
  const auto hosts = expand_hostlist(written);
  if (!hosts.ok()) {
    (void)refuse(context, {.id = "E0920", .message = text("HOSTS: ", hosts.error().message), .help = ""}, kExitUsage);
    return std::nullopt;
  }
  std::vector<std::string> pool = job.named_hosts();
  for (const PoolHost& host : pool_of(job.spec)) {
    if (std::find(pool.begin(), pool.end(), host.name) == pool.end()) pool.push_back(host.name);
  }
  for (const std::string& host : *hosts) {
    if (std::find(pool.begin(), pool.end(), host) != pool.end()) continue;
    const auto near = nearest(host, pool);
    (void)refuse(context,
                 {.id = "E0921",
                  .message = text(job.view.id(), " has no host ", printable(host)),
                  .help = near ? text("did you mean ", *near, "?") : text("its pool is ", fold_hostlist(pool))},
                 kExitUsage);
    return std::nullopt;
  }
  return *hosts;
}

int ask_the_supervisor(const OpenedJob& job, OperatorRequest request, const Arguments& arguments,
                       const Context& context) {
  int exit_code = kExitOk;
  const auto supervisor = supervisor_of(job, context, exit_code);
  if (!supervisor) return exit_code;
  const std::string_view verb = verb_of(request.wish);
  request.who = text("monarch ", verb, ", pid ", ::getpid());
  const auto answer = ask(*supervisor, request);
  const std::string& id = job.view.id();
  if (!answer.ok()) {
    const bool refused = answer.error().code == ErrorCode::kInvalid;
    return refuse(context,
                  {.id = refused ? "E0928" : "E0908",
                   .message = text(verb, " of ", id, ": ", printable(answer.error().message)),
                   .help = refused ? "monarch status shows its hosts and gangs, monarch events what became of them"
                                   : help_without_supervisor(job.view)},
                  refused ? kExitUsage : kExitInternal);
  }
  if (!arguments.has("json")) {
    write_out(context.terminal, text(id, ": ", printable(answer->message), "\n"));
    return kExitOk;
  }
  write_out(context.terminal,
            to_json(Json::object(
                {{"v", 1}, {"type", "accepted"}, {"job", id}, {"asked", verb}, {"message", answer->message}})) +
                "\n");
  return kExitOk;
}

}  // namespace monarch
