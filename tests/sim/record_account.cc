#include "tests/sim/record_account.h"

#include "supervisor/workers/commit_desk.h"
#include "tests/sim/violation.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

// Five phases, a process, a place, readiness, an end, the end of its output; and each of them once more by a supervisor
// that comes back.
constexpr std::uint32_t kMostChanges = 12;
constexpr std::uint32_t kMostTold = 40;    // stopped and let go: twenty each ten minutes
constexpr std::uint32_t kMostAnswers = 6;  // about ports: a slot may leave its host and come back within a generation
constexpr Duration kClockStep = Duration::milliseconds(1);

}  // namespace

void RecordAccount::decided(Term term, const CoreEvent& event, Instant now) {
  if (const auto* change = std::get_if<RankChanged>(&event)) {
    const RankId rank = change->report.process.rank;
    must(++changes_[{term, rank, change->report.process.generation}] <= kMostChanges, "I22",
         text("rank ", rank.mesh.value(), "/", rank.rank.value(), " costs more records than it can have states"));
  } else if (const auto* commit = std::get_if<CheckpointCommitted>(&event)) {
    const auto [last, first] = committed_.try_emplace({term, commit->process.rank, commit->process.generation}, now);
    must(first || now - last->second >= CommitDesk::kFloor - kClockStep, "I22",
         text("two commits of rank ", commit->process.rank.mesh.value(), "/", commit->process.rank.rank.value(),
              " are journalled within ", to_text(now - last->second)));
    last->second = now;
  } else if (const auto* told = std::get_if<PeopleTold>(&event); told != nullptr && told->event.rank) {
    // Its mesh goes by its name there; all of one number are as good.
    const Of of{term, {MeshId(0), Rank(*told->event.rank)}, Generation{Term(0), told->event.generation}};
    must(++told_[of] <= kMostTold * 4, "I22", text("of rank ", *told->event.rank, " more is told than anybody reads"));
  } else if (const auto* ports = std::get_if<PortsReserved>(&event)) {
    const Reserved& held = ports->reserved;
    must(++reserved_[{term, ports->host, held.mesh, held.gang, held.generation}] <= kMostAnswers, "I22",
         text("host ", ports->host.value(), " is journalled again and again for the ports that it holds"));
  }
}

}  // namespace monarch::sim
