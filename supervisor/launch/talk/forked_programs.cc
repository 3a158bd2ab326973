#include "supervisor/launch/talk/forked_programs.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <utility>
#include <variant>

#include "transport/base/launcher_variables.h"
#include "transport/base/text.h"

extern char** environ;

namespace monarch {

namespace {

// Or a program of a drill that a rank runs would be struck by it.
bool is_mark(std::string_view name) {
  constexpr std::array kRankVariables = {std::string_view("MONARCH_MESH"), std::string_view("MONARCH_RANK"),
                                         std::string_view("MONARCH_GENERATION"), kHostVariable};
  const auto is_among = [name](const auto& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  return is_among(kRankVariables) || is_among(kChosenAtStart);
}

std::vector<std::string> environment_with(const std::map<std::string, std::string>& added) {
  std::vector<std::string> lines;
  for (char** line = environ; *line != nullptr; ++line) {
    const std::string_view variable(*line);
    const std::string_view name = variable.substr(0, variable.find('='));
    if (!is_mark(name) && !added.contains(std::string(name))) lines.emplace_back(variable);
  }
  for (const auto& [name, value] : added) lines.push_back(text(name, "=", value));
  return lines;
}

RankEnd end_of(Child& child, const ExitStatus& status) {
  if (child.exec_state() == ExecState::kFailed) {
    return {.kind = EndKind::kNotExecuted, .value = child.failure().error, .detail = child.failure().detail};
  }
  return {.kind = status.signaled ? EndKind::kSignaled : EndKind::kExited,
          .value = status.value,
          .core_dumped = status.core_dumped};
}

}  // namespace

Result<Programs::Ticket> ForkedPrograms::start(std::vector<std::string> program, ProgramStreams streams, OnEnd on_end,
                                               std::map<std::string, std::string> environment) {
  auto forked = Child::fork({.program = std::move(program),
                             .environment = environment_with(environment),
                             .workdir = "/",
                             .descriptors = {{.source = streams.in.get(), .target = STDIN_FILENO},
                                             {.source = streams.out.get(), .target = STDOUT_FILENO},
                                             {.source = streams.err.get(), .target = STDERR_FILENO}},
                             .on_parent_death = OnParentDeath::kLive});
  if (const auto* failed = std::get_if<StepFailure>(&forked)) return errno_error(failed->detail, failed->error);
  const Ticket ticket = next_++;
  Running& running = running_[ticket];
  running.child = std::move(std::get<std::unique_ptr<Child>>(forked));
  running.on_end = std::move(on_end);
  const Status watched = ends_.watch(running.child->pid(), running.child->pidfd(),
                                     [this, ticket](const ExitStatus& status) { ended(ticket, status); });
  if (!watched.ok()) {
    running_.erase(ticket);  // it ends at its gate
    return watched.error();
  }
  running.child->open_gate();
  return ticket;
}

void ForkedPrograms::kill(Ticket ticket) {
  const auto found = running_.find(ticket);
  if (found == running_.end()) return;
  (void)send_signal(found->second.child->pidfd(), SIGKILL);  // one that has ended needs none
}

void ForkedPrograms::disown(Ticket ticket) {
  if (const auto found = running_.find(ticket); found != running_.end()) found->second.on_end = {};
}

void ForkedPrograms::ended(Ticket ticket, const ExitStatus& status) {
  auto taken = running_.extract(ticket);
  Running& running = taken.mapped();
  const RankEnd end = end_of(*running.child, status);
  ends_.reap(running.child->pid());
  if (running.on_end) running.on_end(end);
}

}  // namespace monarch
