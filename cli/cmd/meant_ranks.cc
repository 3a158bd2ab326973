#include "cli/cmd/meant_ranks.h"

#include <utility>

#include "cli/args/say.h"
#include "cli/follow/session_flags.h"
#include "supervisor/client/link/supervisor_client.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"

namespace monarch {

int refuse_call(const Context& context, const std::string& doing, const JobView& job, const Error& error) {
  return refuse(
      context,
      {.id = "E0908", .message = text(doing, " ", job.id(), ": ", error.message), .help = help_without_supervisor(job)},
      kExitInternal);
}

MeantRanks take_ranks(const std::string& written, const Arguments& arguments, const Context& context,
                      const MeantRanksOptions& options) {
  MeantRanks meant;
  const auto failed = [&meant](int exit_code) {
    meant.job.reset();
    meant.exit_code = exit_code;
    return std::move(meant);
  };
  JobArgument argument = take_job(written, context);
  if (argument.job == nullptr) return failed(argument.exit_code);
  meant.job = std::move(argument.job);
  const OpenedJob& job = *meant.job;
  const std::string id = job.view.id();
  const auto selector = take_selector(arguments, job.spec, context, job.named_hosts());
  if (!selector) return failed(kExitUsage);
  const auto verdict = job.view.verdict();
  if (verdict.ok() && *verdict) {
    return failed(refuse(context,
                         {.id = "E0923",
                          .message = text(id, " has ended: there is nothing to ", options.verb),
                          .help = "monarch ps lists the jobs that live"},
                         kExitUsage));
  }
  const auto endpoint = job.view.endpoint();
  if (!endpoint.ok()) return failed(refuse_call(context, options.doing, job.view, endpoint.error()));
  const auto status = ask(viewer_address(*endpoint), StatusRequest{});
  if (!status.ok()) return failed(refuse_call(context, options.doing, job.view, status.error()));
  meant.supervisor = viewer_address(*endpoint);
  std::size_t others = 0;
  for (std::uint32_t m = 0; m < status->meshes.size(); ++m) {
    for (const RankStatus& rank : status->meshes[m].ranks) {
      const RankId one{MeshId(m), Rank(rank.rank)};
      if (!selector->has(one, rank.host, rank.generation)) continue;
      if (!options.counts(rank)) {
        ++others;
        continue;
      }
      meant.ranks.push_back(one);
      meant.hosts.push_back(rank.host);
    }
  }
  if (meant.ranks.empty() && others > 0) {
    return failed(refuse(context,
                         {.id = "E0923",
                          .message = text(others == 1 ? "the rank of " : "none of the ranks of ", id,
                                          others == 1 ? " that is meant does not run" : " that are meant runs"),
                          .help = text("monarch status ", id, " shows how they are, monarch events ", id, " why")},
                         kExitUsage));
  }
  if (meant.ranks.empty()) return failed(refuse(context, nothing_selected(id), kExitUsage));
  return meant;
}

}  // namespace monarch
