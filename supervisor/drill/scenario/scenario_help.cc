// Examples and paragraphs of the keys of a scenario.

#include "supervisor/drill/core/measures.h"
#include "supervisor/drill/scenario/scenario_rows.h"
#include "transport/messages/event_kinds.h"

namespace monarch::drill::scenario_rows {

namespace {

constexpr KeyHelp kHelp[] = {
    {"version", "1"},
    {"drill", "five-faults"},
    {"job", "../ddp.yaml",
     "Left out where the command line names the spec, or with --live the job. A relative path begins in the folder of "
     "the scenario."},
    {"seed", "42",
     "What is drawn depends on the seed, on the fault's place in the list and on how often it was drawn before, and on "
     "nothing else: a fault that is added at the end moves none of the others."},
    {"settle", "20s"},
    {"control", "1m",
     "Steps a second without a fault are what goodput is measured against, and a suspicion in this time is a false "
     "one. "
     "Ten heartbeats of the spec's are the least."},
    {"duration", "10m",
     "No fault begins after it. Together with `settle` and `control` it has to fit into the job's `time_limit`."},
    {"overlap", "true", "Else a fault waits until its target is healthy and what was struck before is recovered from."},
    {"guard", "{max_gangs_down: 2, min_spares: 1}"},
    {"guard.max_gangs_down", "2"},
    {"guard.min_spares", "1"},
    {"guard.wait", "2m", "It is skipped then, with the reason, and counts as inert."},
    {"guard.stop_below_goodput", "0.2"},
    {"budgets", "real",
     "Forgiven: after each fault that is recovered from, its gang's restarts and the standing of its hosts are as "
     "before, as `monarch retry` makes them. Meanwhile each budget and back-off is the real one."},
    {"compare", "full-restart",
     "The scenario runs a second time with the same seed, against the same job without restarts, of which all is "
     "stopped "
     "and continued at each failure, as scripts around other launchers do."},
    {"faults", "[{fault: kill, every: 60s}]"},
    {"faults.[].fault", "kill"},
    {"faults.[].at", "2m", "Each fault has exactly one of `at`, `every`, `on_step` and `on_event`."},
    {"faults.[].every", "60s",
     "The gaps are exponential, as those of failures that know nothing of each other, and begin with the end of "
     "`control`."},
    {"faults.[].on_step", "200"},
    {"faults.[].on_event", name_of(EventKind::kCheckpointCommitted)},
    {"faults.[].after", "50ms"},
    {"faults.[].times", "3"},
    {"faults.[].target", "{mesh: trainer, rank: 0}",
     "Faults of a rank take `mesh`, `at`, `rank` and `gang`, which mean what the flags of the same names mean; those "
     "of a host take `host`, those of the supervisor nothing. All that is written must hold at once; `random` is the "
     "same as nothing. Who is meant is looked up when the fault strikes, among what is healthy then."},
    {"faults.[].target.mesh", "trainer"},
    {"faults.[].target.at", "replica=1"},
    {"faults.[].target.rank", "0-3"},
    {"faults.[].target.gang", "1"},
    {"faults.[].target.host", "random"},
    {"faults.[].for", "30s",
     "A fault ends then, and earlier where the drill ends, however that comes. A `hang` or `freeze` that is shorter "
     "than the spec's limits is only to be seen; a longer one is to be recovered from."},
    {"faults.[].processes", "4"},
    {"faults.[].percent", "30"},
    {"faults.[].size", "64MiB"},
    {"expect", "{seen: 1, ours_p95: {process: 1s}}",
     "A bound without evidence, of which nothing was measured, is not met. What else must hold, such as that "
     "generations "
     "only grow and nothing is left, is no matter of a scenario."},
    {"expect.seen", "1"},
    {"expect.ours_p95", "{process: 1s, host: 13s}",
     "From the blow to the start of its gang, without the program's start and without the host's. p95 is by nearest "
     "rank. A bound for hosts or hangs cannot be shorter than the spec's own times: a lost host is given up after "
     "`lost_after`, and its gangs are started elsewhere once its `lease` is over."},
    {"expect.ttr_p95", "{process: 1m}", "With the program's start and the steps that are done again."},
    {"expect.ttd_p95", "{hang: 5s}"},
    {"expect.ettr", "0.9"},
    {"expect.goodput", "0.8"},
    {"expect.blast", "1"},
    {"expect.false_positives", "0"},
    {"expect.leftovers", "0"},
    {"expect.inert", "0.1"},
    {"expect.ratio", "0.2"},
    {"expect.same_output", "'with loss ([0-9.]+)'",
     "What the group takes from the last line that fits is the same as in a run of the job to its end without faults."},
};

struct ClassExample {
  FaultClass of;
  std::string_view bound;
};
constexpr ClassExample kBounds[] = {{FaultClass::kProcess, "1s"},
                                    {FaultClass::kHang, "10s"},
                                    {FaultClass::kHost, "13s"},
                                    {FaultClass::kNetwork, "13s"},
                                    {FaultClass::kSupervisor, "2s"}};

}  // namespace

std::vector<KeyHelp> help() {
  std::vector<KeyHelp> all(std::begin(kHelp), std::end(kHelp));
  for (const KeyRow& row : expect()) {
    for (const ClassExample& example : kBounds) {
      if (row.path.ends_with(name_of(example.of)) && row.type == ValueType::kDuration)
        all.push_back({row.path, example.bound});
    }
  }
  return all;
}

}  // namespace monarch::drill::scenario_rows
