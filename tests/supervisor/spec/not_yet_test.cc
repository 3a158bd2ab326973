// A written value beyond what this build does is refused with E0401; the default, and what is built beside it, is
// taken.

#include <gtest/gtest.h>

#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

TEST(NotYet, RefusesWhatIsNotBuiltAtTheTop) {
  for (const char* line :
       {"supervisor: {on: node01}\n", "takeover: local\n", "services: {p: {mesh: m, actor: a}}\n",
        "stores: {w: {memory: 1GiB}}\n", "metrics: 127.0.0.1:9464\n", "on_event: [x]\n",
        "launch: {slurm: {}}\nworkspace: {path: /usr/share}\n", "supervision: {orphan: run, reallocate: {max: 0}}\n"}) {
    const SpecOutcome outcome = load_text(around_top(line));
    EXPECT_EQ(ids(outcome), std::vector<std::string>{"E0401"}) << line << render(outcome.diagnostics, around_top(line));
  }
}

TEST(NotYet, TakesTheDefaultHoweverItIsWritten) {
  for (const char* line :
       {"network: {interface: auto}\n", "network: {}\n", "control: {via: direct}\n", "supervisor: {on: here}\n",
        "takeover: none\n", "storage: []\n", "lifetime: {idle: none, max: none}\n", "metrics: none\n", "on_event: []\n",
        "supervision: {hang: {phases: {init: 600s}}}\n",
        "supervision: {restart: {max: 4, window: 600s, backoff: 0.5s, backoff_max: 30000ms, jitter: 0.250}}\n",
        "supervision: {restart: {max: 0}, reallocate: {max: 0, window: 60m}}\n",
        "supervision: {fatal_exit_codes: [2, 126, 127]}\n", "supervision: {on_peer_lost: {}}\n",
        "supervision: {orphan: stop}\n", "launch: {local: {hosts: auto, spares: {count: 1}}}\n"}) {
    const SpecOutcome outcome = load_text(around_top(line));
    EXPECT_TRUE(outcome.loaded) << line << render(outcome.diagnostics, around_top(line));
  }
}

TEST(NotYet, ReportsWrongValuesOfUnbuiltKeysAsWrong) {
  EXPECT_EQ(ids(load_text(around_top("control: {via: tunnel}\n"))), std::vector<std::string>{"E0205"});
  EXPECT_EQ(ids(load_text(around_top("launch: {ssh: {hosts: '-x', port: 0}}\n"))),
            (std::vector<std::string>{"E0208", "E0206"}));
  EXPECT_EQ(ids(load_text(around_top("launch: {slurm: {time: '4:00:00'}}\n"))), std::vector<std::string>{"E0203"});
  EXPECT_EQ(ids(load_text(around_top("checkpoints: {memory: 1GB}\n"))), std::vector<std::string>{"E0204"});
}

}  // namespace
}  // namespace monarch
