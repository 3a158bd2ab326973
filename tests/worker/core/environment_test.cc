#include "worker/core/environment.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

const RankEnvironment kKeys{"00ff", "v1", {RankId{MeshId(2), Rank(5)}, Generation{Term(3), 17}}};

TEST(RankEnvironment, LayersGangOverBaseAndRankOverGang) {
  const Environment made = rank_environment({{"A", "base"}, {"B", "base"}, {"C", "base"}},
                                            {{"B", "gang"}, {"C", "gang"}}, {{"C", "own"}}, kKeys);
  EXPECT_EQ(made.at("A"), "base");
  EXPECT_EQ(made.at("B"), "gang");
  EXPECT_EQ(made.at("C"), "own");
}

TEST(RankEnvironment, CarriesTheKeysByWhichItsTreeIsFoundWhateverTheSpecSays) {
  const Environment made =
      rank_environment({}, {{"MONARCH_JOB_UUID", "forged"}}, {{"MONARCH_RANK_KEY", "forged"}}, kKeys);
  EXPECT_EQ(made.at("MONARCH_JOB_UUID"), "00ff");
  EXPECT_EQ(made.at("MONARCH_HOST"), "v1");
  EXPECT_EQ(made.at("MONARCH_RANK_KEY"), "2.5.3.17");
}

TEST(RankEnvironment, LeavesOutWhatBelongsToOtherLaunchersAndTheKeepersDoor) {
  const Environment base = {{"SLURM_PROCID", "0"},
                            {"SLURM_LOCALID", "0"},
                            {"SLURM_NTASKS", "8"},
                            {"SLURM_NPROCS", "8"},
                            {"SLURM_NODEID", "1"},
                            {"SLURM_NTASKS_PER_NODE", "8"},
                            {"SLURM_CPUS_ON_NODE", "64"},
                            {"SLURMD_NODENAME", "n1"},
                            {"SLURM_CPU_BIND_TYPE", "mask_cpu"},
                            {"FLUX_TASK_RANK", "0"},
                            {"PALS_RANKID", "0"},
                            {"JSM_NAMESPACE_RANK", "0"},
                            {"MV2_COMM_WORLD_RANK", "0"},
                            {"SLURM_STEP_ID", "1"},
                            {"PMI_RANK", "0"},
                            {"PMIX_RANK", "0"},
                            {"PMI2_X", "1"},
                            {"OMPI_COMM_WORLD_RANK", "0"},
                            {"MPI_LOCALRANKID", "0"},
                            {"MONARCH_KEEPER_FD", "3"},
                            {"NOTIFY_SOCKET", "/run/systemd/notify"},
                            {"WATCHDOG_USEC", "1"},
                            {"WATCHDOG_PID", "1"},
                            {"LISTEN_FDS", "1"},
                            {"LISTEN_PID", "1"},
                            {"LISTEN_FDNAMES", "a"},
                            {"MONARCH_SOCKET", "/another/rank"},
                            {"MONARCH_EVENTS", "/another/rank"},
                            {"MONARCH_COMMITTED_STEP", "12"},
                            {"SLURM_JOB_ID", "7"},
                            {"SLURM_JOB_NODELIST", "n[1-2]"},
                            {"MV2_USE_CUDA", "1"},
                            {"PATH", "/bin"}};
  EXPECT_EQ(
      rank_base(base),
      (Environment{{"SLURM_JOB_ID", "7"}, {"SLURM_JOB_NODELIST", "n[1-2]"}, {"MV2_USE_CUDA", "1"}, {"PATH", "/bin"}}));
}

TEST(RankEnvironment, HasItsDefaultsWhereTheHostSetsNothing) {
  const Environment base = rank_base({{"OMP_NUM_THREADS", "8"}}, {{"OMP_NUM_THREADS", "1"}, {"PYTHONUNBUFFERED", "1"}});
  EXPECT_EQ(base, (Environment{{"OMP_NUM_THREADS", "8"}, {"PYTHONUNBUFFERED", "1"}}));
  EXPECT_EQ(rank_environment(base, {{"PYTHONUNBUFFERED", ""}}, {}, kKeys).at("PYTHONUNBUFFERED"), "") << "the spec's";
}

TEST(RankEnvironment, KeepsALauncherVariableThatTheSpecOrItsSetupSets) {
  const Environment base = rank_base({{"PMI_RANK", "0"}});
  EXPECT_EQ(rank_environment(base, {{"PMI_RANK", "wanted"}}, {}, kKeys).at("PMI_RANK"), "wanted");
  EXPECT_EQ(rank_environment({{"OMPI_MCA_btl", "self"}}, {}, {}, kKeys).at("OMPI_MCA_btl"), "self") << "nor of a setup";
}

TEST(RankEnvironment, NamesTheDoorsWhateverTheSpecSays) {
  RankEnvironment keys = kKeys;
  keys.doors = {.notify = "/d/0.5.n", .questions = "/d/0.5.s", .events = "/d/0.5.e"};
  const Environment made = rank_environment({}, {{"NOTIFY_SOCKET", "forged"}}, {{"MONARCH_EVENTS", "forged"}}, keys);
  EXPECT_EQ(made.at("NOTIFY_SOCKET"), "/d/0.5.n");
  EXPECT_EQ(made.at("MONARCH_SOCKET"), "/d/0.5.s");
  EXPECT_EQ(made.at("MONARCH_EVENTS"), "/d/0.5.e");
}

TEST(SpawnedEnvironment, DropsTheSocketThatSystemdGaveToWhoStartedUs) {
  EXPECT_EQ(spawned_environment({{"NOTIFY_SOCKET", "/run/systemd/notify"}, {"WATCHDOG_USEC", "1"}}, {}), Environment{});
}

TEST(SpawnedEnvironment, KeepsSlurmsVariablesAndDropsTheKeepersDoor) {
  const Environment made = spawned_environment({{"SLURM_PROCID", "0"}, {"MONARCH_KEEPER_FD", "3"}}, {{"A", "1"}});
  EXPECT_EQ(made, (Environment{{"SLURM_PROCID", "0"}, {"A", "1"}}));
}

TEST(LoaderVariables, PassThroughUnderNamesThatMeanNothing) {
  const Environment shell{{"LD_PRELOAD", "a.so"}, {"LD_LIBRARY_PATH", "/x"}, {"OLD_PWD", "/"}, {"PATH", "/bin"}};
  const Environment held = hold_loader_variables(shell);
  EXPECT_EQ(held, (Environment{{"MONARCH_HELD_LD_PRELOAD", "a.so"},
                               {"MONARCH_HELD_LD_LIBRARY_PATH", "/x"},
                               {"OLD_PWD", "/"},
                               {"PATH", "/bin"}}));
  EXPECT_EQ(release_loader_variables(held), shell);
  EXPECT_EQ(without_loader_variables(held), (Environment{{"OLD_PWD", "/"}, {"PATH", "/bin"}}));
  EXPECT_EQ(without_loader_variables(shell), without_loader_variables(held));
}

TEST(Environment, TakesTheFirstOfTwoLinesAndDropsWhatIsNone) {
  const char* lines[] = {"A=1=2", "A=3", "broken", "B=", nullptr};
  const Environment made = environment_from(lines);
  EXPECT_EQ(made, (Environment{{"A", "1=2"}, {"B", ""}}));
  EXPECT_EQ(environment_lines(made), (std::vector<std::string>{"A=1=2", "B="}));
}

}  // namespace
}  // namespace monarch
