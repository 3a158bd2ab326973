#include "supervisor/spec/job/build_actors.h"

#include <gtest/gtest.h>

#include <map>

#include "supervisor/spec/plugin_hashes.h"
#include "tests/supervisor/spec/spec_text.h"
#include "transport/messages/rank.h"

namespace monarch {
namespace {

constexpr char kMesh[] =
    "  t:\n    dims: {host: 2, gpu: 4}\n    actors: {p: {plugin: ./p.so, class: P, args: {lr: 0.1, n: 3, s: \"3\", "
    "l: [true, x], none: ~, e: 3e-4, m: -0.5, id: 007}}}\n";
constexpr char kController[] = "controller: {plugin: lib/d.so, entry: drive, args: {steps: 100}}\n";

std::string spec_of(std::string_view top, std::string_view mesh = kMesh) {
  return text("version: 1\njob: a\n", top, "meshes:\n", mesh);
}

JobSpec job_of(const std::string& yaml) {
  const SpecOutcome outcome = load_text(yaml);
  EXPECT_TRUE(outcome.loaded) << render(outcome.diagnostics, yaml);
  return outcome.loaded ? outcome.loaded->spec : JobSpec{};
}

TEST(BuildActors, AreAProgramOfTheirMesh) {
  const JobSpec job = job_of(spec_of(""));
  ASSERT_EQ(job.meshes.size(), 1U);
  const MeshSpec& mesh = job.meshes[0];
  EXPECT_TRUE(job.calls);
  EXPECT_EQ(mesh.program, std::vector<std::string>{std::string(kActorProgram)});
  EXPECT_EQ(mesh.gang.scope, GangScope::kEach);
  EXPECT_EQ(mesh.ready.kind, ReadyKind::kNotify);
  EXPECT_FALSE(mesh.sidecar) << "without a controller the job runs until it is stopped";
  EXPECT_TRUE(mesh.serves);
  EXPECT_FALSE(job_of(around_top("")).meshes.at(0).serves) << "a program may be done";
  EXPECT_EQ(mesh.env.at("MONARCH_ACTORS"),
            R"({"dims":{"host":2,"gpu":4},"actors":{"p":{"plugin":"/home/u/job/p.so","class":"P",)"
            R"("args":{"lr":0.1,"n":3,"s":"3","l":[true,"x"],"none":null,"e":3e-04,"m":-0.5,"id":"007"}}}})");
  EXPECT_FALSE(job_of(around_top("")).calls);
}

TEST(BuildActors, OfPythonAreWordsOfAProgram) {
  const JobSpec job =
      job_of(spec_of("",
                     "  t: {dims: {x: 2}, actors: {s: {python: lib/s.py, class: S, args: {a: $(self.rank), n: 3}}, "
                     "m: {module: pkg.m, class: A.B}}}\n"));
  const MeshSpec& mesh = job.meshes.at(0);
  EXPECT_EQ(mesh.program,
            (std::vector<std::string>{"python3", "-m", "monarch.rank", "--actor", "s", "--file", "/home/u/job/lib/s.py",
                                      "--class", "S", "--args", R"x({"a":"\u0024(self.rank)","n":3})x", "--actor", "m",
                                      "--module", "pkg.m", "--class", "A.B"}));
  EXPECT_EQ(mesh.ready.kind, ReadyKind::kNotify);
  EXPECT_TRUE(mesh.serves);
  EXPECT_TRUE(job.calls);
  const JobSpec written = job_of(around_mesh("    dims: {x: 1}\n    program: [python3.12, -m, monarch.rank]\n"));
  EXPECT_TRUE(written.meshes.at(0).serves);
  EXPECT_TRUE(written.calls);
}

TEST(BuildActors, AControllerIsAMeshOfOneRankOnTheFirstHost) {
  const JobSpec job = job_of(spec_of(kController));
  ASSERT_EQ(job.meshes.size(), 2U);
  EXPECT_TRUE(job.meshes[0].sidecar);
  const MeshSpec& controller = job.meshes[1];
  EXPECT_EQ(controller.name, kControllerMesh);
  EXPECT_EQ(controller.dims, (std::vector<Dimension>{{"one", 1}}));
  EXPECT_EQ(controller.like, MeshId(0));
  EXPECT_EQ(controller.supervision.restart.max, 0U);
  EXPECT_FALSE(controller.sidecar);
  EXPECT_FALSE(controller.serves) << "its end is the job's";
  EXPECT_EQ(
      controller.env.at("MONARCH_ACTORS"),
      R"({"dims":{"one":1},"controller":{"plugin":"/home/u/job/lib/d.so","entry":"drive","args":{"steps":100}}})");
}

TEST(BuildActors, WhatIsWrittenWins) {
  const JobSpec job = job_of(
      spec_of("controller: {program: [python3, drive.py], env: {A: b}, supervision: {restart: {max: 2}}}\n",
              "  t: {dims: {host: 2, gpu: 4}, actors: {}, gang: host, ready: exec, sidecar: false, env: {B: c}}\n"));
  EXPECT_EQ(job.meshes[0].gang.scope, GangScope::kDimension);
  EXPECT_EQ(job.meshes[0].ready.kind, ReadyKind::kExec);
  EXPECT_FALSE(job.meshes[0].sidecar);
  EXPECT_EQ(job.meshes[0].env.at("B"), "c");
  EXPECT_EQ(job.meshes[1].program, (std::vector<std::string>{"python3", "drive.py"}));
  EXPECT_EQ(job.meshes[1].env, (std::map<std::string, std::string>{{"A", "b"}}));
  EXPECT_EQ(job.meshes[1].supervision.restart.max, 2U);
}

TEST(BuildActors, APluginIsFoundWhereItsHostHasIt) {
  const auto plugin_of = [](std::string_view top) {
    const std::string manifest = job_of(spec_of(top)).meshes[0].env.at("MONARCH_ACTORS");
    const std::size_t begin = manifest.find("plugin\":\"") + 9;
    return manifest.substr(begin, manifest.find('"', begin) - begin);
  };
  EXPECT_EQ(plugin_of("launch: {ssh: {hosts: [a, b]}}\nworkspace: {path: /srv/code}\n"), "p.so") << "in its copy";
  EXPECT_EQ(plugin_of("launch: {ssh: {hosts: [a, b]}}\n"), "/home/u/job/p.so") << "under the same path";
  EXPECT_EQ(plugin_of("workspace: {path: /srv/code}\n"), "/srv/code/p.so") << "virtual hosts have the folder itself";
}

TEST(BuildActors, ArgsHoldNoReferences) {
  const JobSpec job = job_of(spec_of("",
                                     "  t: {dims: {x: 1}, actors: {p: {plugin: /p.so, class: P, args: {a: "
                                     "$(self.rank)}}}}\n"));
  EXPECT_NE(job.meshes[0].env.at("MONARCH_ACTORS").find(R"x("a":"\u0024(self.rank)")x"), std::string::npos);
}

TEST(PluginHashes, AreAPartOfTheJob) {
  std::map<std::string, int> asked;
  SpecSurroundings around;
  around.hash_plugin = [&](const std::string& path) -> Result<std::string> {
    ++asked[path];
    return std::string(64, 'a');
  };
  const std::string yaml = spec_of(kController);
  const SpecOutcome outcome = load_spec({.name = "s", .text = yaml, .directory = "/home/u/job"}, around);
  ASSERT_TRUE(outcome.loaded) << render(outcome.diagnostics, yaml);
  EXPECT_EQ(asked, (std::map<std::string, int>{{"/home/u/job/p.so", 1}, {"/home/u/job/lib/d.so", 1}}));
  EXPECT_NE(outcome.loaded->spec.meshes[0].env.at("MONARCH_ACTORS").find(std::string(64, 'a')), std::string::npos);
  // Whoever reads the job's spec later reads no plugin.
  asked.clear();
  const SpecOutcome again = load_spec({.name = "s", .text = outcome.loaded->text, .directory = "/home/u/job"}, around);
  ASSERT_TRUE(again.loaded);
  EXPECT_EQ(again.loaded->spec, outcome.loaded->spec);
  EXPECT_TRUE(asked.empty());
}

TEST(PluginHashes, SayWhichPluginIsNotThere) {
  SpecSurroundings around;
  around.hash_plugin = [](const std::string& path) -> Result<std::string> {
    return Error{ErrorCode::kNotFound, path + ": No such file or directory"};
  };
  const SpecOutcome outcome =
      load_spec({.name = "s", .text = spec_of("workspace: {path: src}\n"), .directory = "/home/u/job"}, around);
  ASSERT_EQ(ids_and_places(outcome), std::vector<std::string>{"E0334 7:26"});
  EXPECT_EQ(outcome.diagnostics[0].message,
            "the plugin cannot be read: /home/u/job/src/p.so: No such file or directory");
}

}  // namespace
}  // namespace monarch
