#include "supervisor/launch/talk/guarded_programs.h"

#include <utility>

#include "transport/base/log.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Of a supervisor before this one some may still run: theirs are other numbers.
constexpr std::uint32_t kPerTerm = 1U << 20U;
constexpr std::uint32_t kTerms = 1U << 12U;

}  // namespace

GuardedPrograms::GuardedPrograms(Guard& guard, Term term)
    : guard_(guard), term_(term), next_(static_cast<std::uint32_t>(term.value() % kTerms) * kPerTerm + 1) {}

Result<Programs::Ticket> GuardedPrograms::start(std::vector<std::string> program, ProgramStreams streams, OnEnd on_end,
                                                std::map<std::string, std::string> environment) {
  const std::string name = program.empty() ? "" : program.front();
  const Error gone{ErrorCode::kGone, text("starting ", name, ": the supervisor's guard has gone")};
  if (guard_lost_) return gone;
  const Ticket ticket = next_++;
  const Status spawned =
      guard_.spawn({.key = key_of(ticket),
                    .process = {.program = std::move(program), .env = std::move(environment), .workdir = "/"},
                    .standard_input = std::move(streams.in),
                    .standard_output = std::move(streams.out),
                    .standard_error = std::move(streams.err)});
  if (!spawned.ok()) {
    return Error{spawned.error().code,
                 text("the supervisor's guard, which starts ", name, ", does not answer: ", spawned.error().message)};
  }
  running_[ticket] = std::move(on_end);
  return ticket;
}

void GuardedPrograms::kill(Ticket ticket) {
  if (guard_lost_ || ticket == 0) return;
  const Status killed = guard_.kill(key_of(ticket));
  if (!killed.ok()) log_error("ending a program of the guard: ", killed.error().message);
}

void GuardedPrograms::let_live(Ticket ticket) {
  if (guard_lost_ || ticket == 0) return;
  const Status told = guard_.let_live(key_of(ticket));
  if (!told.ok()) log_error("sparing a program of the guard: ", told.error().message);
}

void GuardedPrograms::disown(Ticket ticket) {
  if (const auto found = running_.find(ticket); found != running_.end()) found->second = {};
}

GuardedPrograms::Owner GuardedPrograms::on_changed(const RankReport& report) {
  if (report.process.rank.mesh != kProgramsMesh || report.phase != RankPhase::kEnded) return Owner::kNobody;
  (void)guard_.forget(report.process);  // if it is lost, the guard forgets at its own end
  if (report.process.generation != Generation{term_, 1}) return Owner::kEarlier;
  const auto found = running_.find(report.process.rank.rank.value());
  if (found == running_.end()) return Owner::kThis;
  const OnEnd on_end = std::move(found->second);
  running_.erase(found);
  if (on_end) on_end(report.end);
  return Owner::kThis;
}

void GuardedPrograms::on_guard_lost() {
  if (std::exchange(guard_lost_, true)) return;
  for (auto& [ticket, on_end] : std::exchange(running_, {})) {
    if (on_end) on_end(std::nullopt);
  }
}

}  // namespace monarch
