#include "supervisor/drill/core/measure_invariants.h"

#include <algorithm>
#include <utility>

#include "transport/base/text.h"

namespace monarch::drill {

namespace {

using enum EventKind;

// GangWatch: each gang so far, in the order of the job's own numbers.
class GangWatch {
 public:
  explicit GangWatch(const Run& run) : run_(run), gangs_(run.gangs.size()) {}

  void put(DrillReport& report) {
    for (const RunEvent& one : run_.by_number) {
      if (one.gang) note(one);
    }
    report.invariants.push_back(std::move(generations_));
    report.invariants.push_back(std::move(budgets_));
    report.invariants.push_back(std::move(causes_));
    report.invariants.push_back(std::move(commits_));
  }

 private:
  struct Gang {
    std::optional<std::uint64_t> generation;  // started last
    std::optional<std::uint64_t> committed;
    bool caused = false;  // something has ended it since
    bool final = false;   // nothing was to be started any more
  };

  void note(const RunEvent& one) {
    Gang& gang = gangs_[*one.gang];
    const JobEvent& event = *one.event;
    switch (event.kind) {
      case kGangStarting: started(gang, one); break;
      case kGangFailed: failed(gang, one); break;
      case kGangStopping:
      case kGangStopped:
      case kGangEnded:
      case kGangParked:
      case kGangReturning: gang.caused = true; break;
      case kCheckpointCommitted: committed(one, number_of(event, "step"), "committed"); break;
      default: break;
    }
    const bool of_rank = name_of(event.kind).starts_with("rank.");  // may come late
    if (of_rank || event.kind == kGangStarting || !gang.generation || event.generation == 0) return;
    ++generations_.checks;
    if (event.generation < *gang.generation) {
      broken(generations_, one, text("is of generation ", event.generation, " after ", *gang.generation));
    }
  }

  void started(Gang& gang, const RunEvent& one) {
    const JobEvent& event = *one.event;
    if (gang.generation) {
      ++generations_.checks;
      const bool same = event.generation == *gang.generation && run_.planted(MeasureMutant::kSameGeneration);
      if (event.generation <= *gang.generation && !same) {
        broken(generations_, one, text("generation ", event.generation, " after ", *gang.generation));
      }
      ++causes_.checks;
      if (!gang.caused) broken(causes_, one, "nothing had ended the one before");
      ++budgets_.checks;
      if (gang.final && !run_.gangs[*one.gang].sidecar) broken(budgets_, one, "after it had failed for good");
    }
    gang.generation = event.generation;
    gang.caused = gang.final = false;
    committed(one, number_of(event, "from_step"), "goes on from");
  }

  void failed(Gang& gang, const RunEvent& one) {
    gang.caused = true;
    gang.final = detail_of(*one.event, "remedy") == std::string_view("fail");
    const auto number = number_of(*one.event, "number");
    const auto most = number_of(*one.event, "of");
    if (!number || !most) return;
    ++budgets_.checks;
    if (*number > *most) broken(budgets_, one, text(*number, " of ", *most));
  }

  void committed(const RunEvent& one, std::optional<std::uint64_t> step, const char* how) {
    if (!step) return;
    Gang& gang = gangs_[run_.planted(MeasureMutant::kCommitsOfAll) ? 0 : *one.gang];
    ++commits_.checks;
    if (gang.committed && *step < *gang.committed) {
      broken(commits_, one, text(how, " step ", *step, " after ", *gang.committed));
    }
    gang.committed = *step;
  }

  void broken(InvariantResult& invariant, const RunEvent& one, const std::string& how) const {
    invariant.broken.push_back(text(run_.gangs[*one.gang].name, " at ", place_in_time(*run_.record, one.event->time),
                                    ", event ", one.event->number, ": ", how));
  }

  const Run& run_;
  std::vector<Gang> gangs_;
  InvariantResult generations_{.label = "I4", .words = "generations only grow", .checks = 0, .broken = {}};
  InvariantResult budgets_{.label = "I10", .words = "starts stay within the budgets", .checks = 0, .broken = {}};
  InvariantResult causes_{
      .label = "I11", .words = "nothing is started again without a cause", .checks = 0, .broken = {}};
  InvariantResult commits_{.label = "I20", .words = "the committed step never goes back", .checks = 0, .broken = {}};
};

InvariantResult incarnations(const Run& run) {
  InvariantResult one{
      .label = "I1", .words = "at most one incarnation of a rank is not stopped", .checks = 0, .broken = {}};
  for (const IncarnationCheck& check : run.record->incarnations) {
    one.checks += check.ranks;
    for (const std::string& rank : check.doubled) {
      one.broken.push_back(
          text(rank, check.host.empty() ? "" : " on ", check.host, " at ", place_in_time(*run.record, check.at)));
    }
  }
  return one;
}

InvariantResult taken_back(const Run& run, const Blame& blame) {
  InvariantResult undo{.label = "I-undo", .words = "each fault is taken back", .checks = 0, .broken = {}};
  for (std::size_t i = 0; i < run.record->blows.size(); ++i) {
    const Blow& blow = run.record->blows[i];
    const Fault* const fault = blame.stories[i].fault;
    if (blow.end == BlowEnd::kSkipped) continue;
    if (fault == nullptr || fault->can_last()) ++undo.checks;
    if (blow.taken_back || run.planted(MeasureMutant::kUndoUnasked)) continue;
    undo.broken.push_back(text(words_of(blow), blow.why.empty() ? "" : ": ", blow.why));
  }
  return undo;
}

InvariantResult doubts(const Run& run, const Blame& blame) {
  InvariantResult own{
      .label = "I-quarantine", .words = "no host is doubted for what the drill did to it", .checks = 0, .broken = {}};
  if (run.record->scenario.budgets == Budgets::kReal) return own;
  for (const Blow& blow : run.record->blows) own.checks += blow.end == BlowEnd::kSkipped ? 0U : 1U;
  for (const JobEvent* event : blame.own) own.broken.push_back(line_of(*run.record, *event));
  return own;
}

}  // namespace

std::vector<std::string> leftovers_of(const Run& run) {
  std::vector<std::string> left;
  const bool here = run.planted(MeasureMutant::kLeftoversHere);
  for (const DrillLeftover& one : run.record->leftovers) {
    if (here && !one.host.empty()) continue;
    left.push_back(one.host.empty() ? one.what : text(one.host, ": ", one.what));
  }
  return left;
}

void put_invariants(const Run& run, const Blame& blame, std::uint32_t allowed_leftovers, DrillReport& report) {
  report.invariants.push_back(incarnations(run));
  GangWatch(run).put(report);
  InvariantResult nothing{.label = "I16", .words = "nothing is left on any host", .checks = 0, .broken = {}};
  nothing.checks = run.record->hosts_searched;
  std::vector<std::string> left = leftovers_of(run);
  if (left.size() > allowed_leftovers) nothing.broken = std::move(left);
  report.invariants.push_back(std::move(nothing));
  InvariantResult behind{.label = "I17",
                         .words = "the job's verdict names no host where something may be left",
                         .checks = 0,
                         .broken = {}};
  if (run.record->verdict) {
    behind.checks = 1;
    if (!run.planted(MeasureMutant::kLeftoversHere)) behind.broken = run.record->verdict->left_behind;
  }
  report.invariants.push_back(std::move(behind));
  report.invariants.push_back(taken_back(run, blame));
  report.invariants.push_back(doubts(run, blame));
}

}  // namespace monarch::drill
