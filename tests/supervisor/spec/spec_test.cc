#include "supervisor/spec/spec.h"

#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>

#include "supervisor/launch/local/local_spec.h"
#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

JobSpec loaded(const std::string& yaml) {
  const SpecOutcome outcome = load_text(yaml);
  EXPECT_TRUE(outcome.loaded) << yaml << render(outcome.diagnostics, yaml);
  return outcome.loaded ? outcome.loaded->spec : JobSpec{};
}

MeshSpec loaded_mesh(const std::string& mesh_lines) {
  const JobSpec job = loaded(around_mesh(mesh_lines));
  return job.meshes.size() == 1 ? job.meshes[0] : MeshSpec{};
}

TEST(Spec, AllowsDrillsWhereItSaysSo) {
  EXPECT_FALSE(loaded(around_top("")).drills);
  EXPECT_FALSE(loaded(around_top("drills: {}\n")).drills);
  EXPECT_TRUE(loaded(around_top("drills: {allow: true}\n")).drills);
}

TEST(Spec, FillsInDefaults) {
  const JobSpec job = loaded(around_top(""));
  EXPECT_EQ(job.name, "j");
  EXPECT_EQ(job.directory, "/home/u/job");
  EXPECT_EQ(job.launch, Launch(LaunchLocal{}));
  EXPECT_EQ(job.pool_size(), 2U);
  EXPECT_EQ(job.start_timeout, Duration::seconds(120));
  EXPECT_EQ(job.time_limit, Duration::forever());
  EXPECT_TRUE(job.supervision == Supervision{});
  const MeshSpec& mesh = job.meshes.at(0);
  EXPECT_EQ(mesh.gang.scope, GangScope::kAll);
  EXPECT_FALSE(mesh.workdir);
  EXPECT_TRUE(mesh.stop == StopPolicy{});
}

TEST(Spec, TakesWhatIsWritten) {
  const JobSpec job = loaded(
      "version: 1\njob: q_3\nlaunch: {local: {hosts: 6, spares: 1}}\nstart_timeout: 90s\ntime_limit: 4h\n"
      "logs: {max_size: 64MiB}\nsupervision: {heartbeat: 500ms, orphan: stop, orphan_ttl: 0s, restart: {max: 0}}\n"
      "meshes:\n  b:\n    dims: {replica: 2, host: 2, gpu: 2}\n    gang: replica\n    program: [sh, -c, 'echo "
      "$(hostname)', 010, yes]\n"
      "    env: {A: 010, B: '', C: true}\n    env_pass: [HF_TOKEN, WANDB_*, '*']\n    workdir: ../data/./x\n"
      "    stop: {signal: INT, to: group, grace: 1s, after_failure: 2s}\n    supervision: {lease: 9s}\n"
      "  a:\n    dims: {x: 1}\n    gang: each\n    program: [/bin/true]\n    workdir: /srv\n");
  EXPECT_EQ(job.launch, Launch(LaunchLocal{.hosts = 6, .spares = 1}));
  EXPECT_EQ(job.start_timeout, Duration::seconds(90));
  EXPECT_EQ(job.time_limit, Duration::seconds(14'400));
  EXPECT_EQ(job.logs.max_bytes, 64U << 20U);
  EXPECT_EQ(job.supervision.heartbeat, Duration::milliseconds(500));
  EXPECT_EQ(job.supervision.orphan, OrphanPolicy::kStop);
  EXPECT_EQ(job.supervision.restart.max, 0U);
  ASSERT_EQ(job.meshes.size(), 2U);
  const MeshSpec& b = job.meshes[0];
  EXPECT_EQ(b.name, "b");
  EXPECT_EQ(b.size(), 8U);
  EXPECT_EQ(b.per_host(), 2U);
  EXPECT_EQ(b.gangs(), 2U);
  EXPECT_EQ(b.program, (std::vector<std::string>{"sh", "-c", "echo $(hostname)", "010", "yes"}));
  EXPECT_EQ(b.env, (std::map<std::string, std::string>{{"A", "010"}, {"B", ""}, {"C", "true"}}));
  EXPECT_EQ(b.env_pass, (std::vector<std::string>{"HF_TOKEN", "WANDB_*", "*"}));
  EXPECT_EQ(b.workdir, "/home/u/data/x");
  EXPECT_EQ(b.stop.signal, SIGINT);
  EXPECT_EQ(b.stop.to, SignalTo::kGroup);
  EXPECT_EQ(b.stop.grace, Duration::seconds(1));
  EXPECT_EQ(b.stop.after_failure, Duration::seconds(2));
  EXPECT_EQ(b.supervision.lease, Duration::seconds(9));
  EXPECT_EQ(b.supervision.heartbeat, Duration::milliseconds(500));  // taken over from the job
  EXPECT_EQ(job.meshes[1].gang.scope, GangScope::kEach);
  EXPECT_EQ(job.meshes[1].workdir, "/srv");
}

TEST(Spec, PutsTheDimensionsAfterHostOnOneHost) {
  EXPECT_EQ(loaded_mesh("    dims: {replica: 4, host: 2, gpu: 8}\n    program: [x]\n").per_host(), 8U);
  EXPECT_EQ(loaded_mesh("    dims: {replica: 4, gpu: 8}\n    program: [x]\n").per_host(), 32U);
  EXPECT_EQ(loaded_mesh("    dims: {gpu: 8, host: 3}\n    program: [x]\n").per_host(), 1U);
  EXPECT_EQ(loaded_mesh("    dims: {a: 2, b: 3, c: 5}\n    per_host: [b, c]\n    program: [x]\n").hosts(), 2U);
  EXPECT_EQ(loaded_mesh("    dims: {a: 2, b: 3}\n    per_host: []\n    program: [x]\n").hosts(), 6U);
}

TEST(Spec, LeavesAShellsOwnExpansionsAlone) {
  const MeshSpec mesh = loaded_mesh("    dims: {x: 1}\n    program: [sh, -c, 'echo $(hostname) $(selfie) ${env.X}']\n");
  EXPECT_EQ(mesh.program.at(2), "echo $(hostname) $(selfie) ${env.X}");
}

TEST(Spec, SkipsAByteOrderMark) {
  EXPECT_TRUE(load_text("\xEF\xBB\xBF" + around_top("")).loaded);
  const SpecOutcome outcome = load_text("\xEF\xBB\xBFverson: 1\n");
  EXPECT_EQ(ids_and_places(outcome).at(3), "E0107 1:1");
}

TEST(Spec, ReportsAllErrorsAtOnceInTheOrderOfTheText) {
  const std::string yaml =
      "version: 2\njob: Bad\nlaunch: {local: {nodes: 2}}\nstart_timeout: 10\nmeshes:\n  m:\n    dims: {x: 010}\n    "
      "program: a b\n";
  EXPECT_EQ(ids_and_places(load_text(yaml)), (std::vector<std::string>{"E0212 1:10", "E0108 2:6", "E0107 3:18",
                                                                       "E0203 4:16", "E0201 7:15", "E0103 8:14"}));
}

TEST(Spec, RestartsAndReplacesFourTimesWhereNothingIsWrittenAndSaysNothingOfIt) {
  const LoadedSpec loaded = load_text(around_top("")).loaded.value();
  EXPECT_EQ(loaded.notes, std::vector<std::string>{});
  EXPECT_EQ(loaded.spec.meshes.at(0).supervision.restart.max, 4U);
  EXPECT_EQ(loaded.spec.meshes.at(0).supervision.reallocate.max, 4U);
}

TEST(Spec, HasRoomForExactlyTheLimits) {
  EXPECT_TRUE(load_text(around_mesh("    dims: {host: 1000, gpu: 65}\n    program: [x]\n")).loaded);
  EXPECT_EQ(ids(load_text(around_mesh("    dims: {host: 4097, gpu: 1}\n    program: [x]\n"))),
            std::vector<std::string>{"E0307"});
  EXPECT_TRUE(load_text(around_mesh("    dims: {gpu: 65536}\n    program: [x]\n")).loaded);
  EXPECT_EQ(ids(load_text(around_mesh("    dims: {a: 65536, b: 65536, c: 65536, d: 65536}\n    program: [x]\n"))),
            std::vector<std::string>{"E0306"});
  EXPECT_TRUE(
      load_text("version: 1\njob: j\nlaunch: {local: {hosts: 2}}\nmeshes:\n  m: {dims: {host: 2}, program: [x]}\n")
          .loaded);
}

TEST(Spec, CountsNoHostsOfAMeshWhoseShapeIsWrong) {
  const std::string yaml =
      "version: 1\njob: j\nlaunch: {local: {hosts: 1}}\nmeshes:\n  m: {dims: {x: 2, y: 2}, per_host: [x], program: "
      "[a]}\n";
  EXPECT_EQ(ids(load_text(yaml)), std::vector<std::string>{"E0214"});
}

TEST(Configs, AllLoad) {
  int loaded = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CONFIGS)) {
    if (entry.path().extension() != ".yaml") continue;
    const auto source = read_spec_file(entry.path().string());
    ASSERT_TRUE(source.ok()) << source.error().message;
    const SpecOutcome outcome = load_spec(*source);
    EXPECT_TRUE(outcome.loaded) << render(outcome.diagnostics, source->text);
    ++loaded;
  }
  EXPECT_GE(loaded, 2);  // hello and reference at least
}

TEST(Hello, LoadsAndNeedsTwoHosts) {
  const auto source = read_spec_file(CONFIGS "/hello.yaml");
  ASSERT_TRUE(source.ok()) << source.error().message;
  const SpecOutcome outcome = load_spec(*source);
  ASSERT_TRUE(outcome.loaded) << render(outcome.diagnostics, source->text);
  EXPECT_EQ(outcome.loaded->spec.hosts_needed(), 2U);
  EXPECT_EQ(outcome.loaded->spec.meshes.at(0).size(), 4U);
  EXPECT_EQ(outcome.loaded->spec.directory, CONFIGS);
}

}  // namespace
}  // namespace monarch
