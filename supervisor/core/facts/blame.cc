#include "supervisor/core/facts/blame.h"

#include <cerrno>
#include <utility>
#include <vector>

#include "supervisor/core/facts/slots.h"
#include "supervisor/core/facts/some_of.h"
#include "supervisor/core/state/first_cause.h"
#include "transport/base/assert.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/messages/describe_end.h"

namespace monarch {

namespace {

// What to do where a rank's folder is one of this machine, which its host lacks.
std::string folder_advice(const JobSpec& job, const MeshSpec& mesh, const RankEnd& end) {
  if (end.kind != EndKind::kNotExecuted || end.value != ENOENT) return "";
  if (job.launch.facts().one_machine || job.workspace) return "";
  if (mesh.workdir && mesh.workdir->starts_with('/')) return "";
  const std::string base = base_directory(job);
  // As child_steps.cc tells of a folder that cannot be entered.
  if (end.detail != text("chdir ", mesh.workdir ? text(base, "/", *mesh.workdir) : base)) return "";
  return "; it is a folder of the machine that started the job: `workspace: {path: .}` gives each host a copy, or "
         "`workdir` names a folder of the hosts";
}

// It did not fail: somebody wanted nothing there.
Verdict blame_left_host(const std::string& name, const std::string& why) {
  Verdict verdict;
  verdict.exit_code = kExitUnreachable;
  FirstCause& cause = verdict.cause;
  cause.kind = CauseKind::kStart;
  cause.host = name;
  cause.summary = text("host ", name, " is ", why.empty() ? "out" : why, ", and no other host is left");
  cause.rule = "host does not serve: a spare or a cold host; none is left: fail";
  verdict.reason = cause.summary;
  return verdict;
}

// Of a verdict, which has to fit into a record of the journal with the last lines of a rank; more are counted.
constexpr std::size_t kFailuresBytes = 20U << 10U;

}  // namespace

// Ranks that lose a peer's host abort within the window: the host is the cause, they are not. Where every end came
// after a signal that we never ordered, a worker ended its ranks by itself: it had lost us for a lease, or was told to
// end.
Verdict blame_host(const CoreFacts& job, const GangState& state) {
  Verdict verdict;
  FirstCause& cause = verdict.cause;
  cause.kind = CauseKind::kHost;
  cause.host = job.hosts[(state.host_lost ? state.lost_host : state.ends.front().host).value()].name;
  const HostState* lost = state.host_lost ? &job.host(state.lost_host) : nullptr;
  cause.summary = lost != nullptr && lost->wedged
                      ? text("host ", cause.host, " is wedged: a process on it does not end after SIGKILL")
                  : lost != nullptr ? text("host ", cause.host, " was lost: ", lost->lost_because)
                                    : text("the worker on ", cause.host,
                                           " ended its ranks: it had no lease from the supervisor, or was told to end");
  cause.secondary = static_cast<std::uint32_t>(state.ends.size());
  verdict.exit_code = kExitLost;
  verdict.reason = cause.summary;
  return verdict;
}

Verdict blame_rank(const CoreFacts& job, MeshId mesh, GangId g, std::size_t first) {
  const MeshSpec& spec = job.mesh(mesh);
  const GangState& state = job.gang(mesh, g);
  const EndedRank& end = state.ends[first];
  Verdict verdict;
  FirstCause& cause = verdict.cause;
  cause.kind = CauseKind::kRank;
  cause.host = job.hosts[end.host.value()].name;
  cause.rank = end.process.rank.rank.value();
  if (spec.gangs() > 1) {
    cause.gang = g.value();
    cause.gang_rank = end.process.rank.rank.value() - job.placement.range_of(mesh, g).first;
  }
  cause.pid = end.pid;
  cause.end = end.end;
  cause.summary = text(describe_end(end.end), folder_advice(job.spec, spec, end.end));
  cause.secondary = static_cast<std::uint32_t>(state.ends.size() - 1);
  verdict.exit_code = exit_code_of(end.end);
  if (const std::optional<std::size_t> exit = first_to_exit(state.ends); exit && *exit != first) {
    const EndedRank& other = state.ends[*exit];
    cause.summary = text(end.end.after_our_signal ? "killed before it gave an exit code" : describe_end(end.end),
                         ", and its error came first (first to exit: ", spec.name, "/", other.process.rank.rank.value(),
                         ", ", describe_end(other.end), ")");
    if (end.end.after_our_signal) verdict.exit_code = exit_code_of(other.end);
  }
  const bool ran = end.end.kind == EndKind::kExited || end.end.kind == EndKind::kSignaled;
  if (const std::vector<std::size_t> others = as_early_as(first, state.ends); ran && !others.empty()) {
    const EndedRank& other = state.ends[others.front()];
    cause.summary += text(" (or first: ", spec.name, "/", other.process.rank.rank.value(), " on ",
                          job.hosts[other.host.value()].name, ", ", describe_end(other.end));
    if (others.size() > 1) cause.summary += text(", or one of ", others.size() - 1, " more");
    cause.summary += "; they ended together, as far as clocks tell)";
  }
  verdict.reason = end.end.kind == EndKind::kSetupFailed ? text(spec.name, ": ", cause.summary, " on host ", cause.host)
                                                         : text(spec.name, "/", end.process.rank.rank.value(), " on ",
                                                                cause.host, " (pid ", end.pid, "): ", cause.summary);
  return verdict;
}

// All that follows in the gang came after our own signals: who made no progress is the cause.
Verdict blame_hung(const CoreFacts& job, MeshId mesh, GangId g) {
  Verdict verdict;
  verdict.exit_code = kExitHung;
  FirstCause& cause = verdict.cause;
  const MeshSpec& spec = job.mesh(mesh);
  const GangState& state = job.gang(mesh, g);
  cause.kind = CauseKind::kRank;
  cause.host = job.hosts[job.placement.host_of(*state.hung).value()].name;
  cause.rank = state.hung->rank.value();
  cause.pid = job.member(*state.hung).pid;
  if (spec.gangs() > 1) {
    cause.gang = g.value();
    cause.gang_rank = *cause.rank - job.placement.range_of(mesh, g).first;
  }
  cause.summary = text("made no progress: ", state.hung_because);
  cause.rule = "hang.action: restart";
  verdict.reason = text(spec.name, "/", *cause.rank, " on ", cause.host, " ", cause.summary);
  return verdict;
}

// Meshes that are no sidecars wait for every sidecar: without this one they never start. The exit code of a rank is the
// job's, but a 0: that it has ended well is no success of the job. Who wrote actors wrote of no sidecar: the words of
// their ranks are told as any other's.
Verdict blame_sidecar(const CoreFacts& job, MeshId mesh, GangId g, Verdict verdict) {
  const bool of_a_rank = verdict.cause.kind == CauseKind::kRank;
  if (!of_a_rank || verdict.exit_code == kExitOk) verdict.exit_code = kExitUnreachable;
  const bool serves = job.mesh(mesh).serves;
  if (!of_a_rank || !serves) verdict.cause.kind = CauseKind::kStart;
  verdict.cause.mesh = job.mesh(mesh).name;
  verdict.cause.generation = job.crew(mesh, g).generation.counter;
  const std::string end = verdict.cause.summary.empty() ? "exit code 0" : verdict.cause.summary;
  const std::string who = verdict.cause.rank ? text(job.mesh(mesh).name, "/", *verdict.cause.rank, " on ",
                                                    verdict.cause.host, " (pid ", verdict.cause.pid, ")")
                                             : job.mesh(mesh).name;
  const std::string whose = serves ? std::string() : text("sidecar ", job.mesh(mesh).name, ' ');
  verdict.cause.summary = text(whose, "ended before it was ready: ", end);
  const std::string why = serves && !verdict.cause.rule.empty() ? text(verdict.cause.rule, "; ") : std::string();
  verdict.cause.rule = why + "the other meshes wait for it: fail";
  verdict.reason = text(serves ? "" : "sidecar ", who, " ended before it was ready: ", end);
  return verdict;
}

Verdict blame_hosts(const CoreFacts& job) {
  const std::vector<std::uint32_t> empty = empty_slots(job);
  MONARCH_ASSERT(!empty.empty());
  const HostId first = job.state.slots[empty.front()];
  const auto& failure = job.host(first).failure;
  if (!failure) return blame_left_host(job.hosts[first.value()].name, job.host(first).lost_because);
  std::vector<std::string> names, kinds;
  std::size_t failed = 0;
  bool only_keys = true;
  bool only_lack = true;
  bool alike = true;
  for (std::uint32_t i = 0; i < job.state.hosts.size(); ++i) {
    const auto& other = job.host(HostId(i)).failure;
    if (!other) continue;
    only_keys = only_keys && is_host_key(other->kind);
    only_lack = only_lack && other->kind == LaunchFailureKind::kResources;
    alike = alike && other->kind == failure->kind && other->message == failure->message;
    if (++failed > kMostNamed) continue;
    names.push_back(job.hosts[i].name);
    kinds.push_back(text(job.hosts[i].name, " (", name_of(other->kind), ")"));
  }
  Verdict verdict;
  verdict.exit_code = only_keys ? kExitHostKey : kExitUnreachable;
  FirstCause& cause = verdict.cause;
  cause.kind = CauseKind::kStart;
  cause.host = job.hosts[first.value()].name;
  const std::string more = failed > names.size() ? text(" and ", failed - names.size(), " more") : "";
  if (failed == 1) {
    cause.summary = only_lack ? text(cause.host, ": ", printable(failure->message))
                              : text("no worker on ", cause.host, ": ", what_failed(*failure));
  } else if (only_lack) {
    cause.summary = text(failed, " hosts lack what they need (", join(names, ", "), more, "); ", cause.host, ": ",
                         printable(failure->message));
  } else if (alike) {
    cause.summary = text(failed, " hosts did not start (", join(names, ", "), more, "): ", printable(failure->message));
  } else {  // what each of them says is in the table of failed hosts, and in its event
    cause.summary = text(failed, " hosts did not start: ", join(kinds, ", "), more);
  }
  cause.rule = "host does not start: a spare or a cold host; none is left: fail";
  verdict.reason = cause.summary;
  return verdict;
}

void tell_failed_hosts(const CoreFacts& job, Verdict& verdict) {
  std::size_t bytes = 0;
  for (std::uint32_t i = 0; i < job.state.hosts.size(); ++i) {
    const auto& failure = job.host(HostId(i)).failure;
    if (!failure) continue;
    HostFailure told{.host = job.hosts[i].name,
                     .kind = name_of(failure->kind),
                     .phase = failure->phase,
                     .elapsed_milliseconds = failure->elapsed.count_milliseconds(),
                     .message = failure->message,
                     .again = failure->again};
    bytes += told.host.size() + told.kind.size() + told.phase.size() + told.message.size() + told.again.size() + 32;
    if (bytes <= kFailuresBytes) {
      verdict.failed_hosts.push_back(std::move(told));
    } else {
      ++verdict.failed_hosts_untold;
    }
  }
}

}  // namespace monarch
