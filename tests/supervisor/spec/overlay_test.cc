// Several files, --set, --launch and arguments: what they make together, and where their faults are shown.

#include "supervisor/spec/overlay.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "supervisor/launch/local/local_spec.h"
#include "supervisor/launch/slurm/slurm_spec.h"
#include "supervisor/spec/relocate.h"
#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

constexpr std::string_view kBase =
    "version: 1\n"
    "job: j\n"
    "launch: {local: {hosts: 3, spares: 1}}\n"
    "meshes:\n"
    "  trainer:\n"
    "    dims: {host: 2, gpu: 4}\n"
    "    program: [python3, train.py]\n"
    "    env: {A: one, B: two}\n"
    "    workdir: run\n";

SpecSource file(std::string name, std::string_view text) {
  return {.name = std::move(name), .text = std::string(text), .directory = "/home/u/job"};
}

FlagText set(std::string_view written) { return {.text = text("--set ", written), .begin = 6}; }

SpecParts parts(const std::vector<std::string>& overlays, const std::vector<std::string>& settings = {}) {
  SpecParts all;
  all.files.push_back(file("base.yaml", kBase));
  for (std::size_t i = 0; i < overlays.size(); ++i)
    all.files.push_back(file(text("over", i + 1, ".yaml"), overlays[i]));
  for (const std::string& setting : settings) all.settings.push_back(set(setting));
  return all;
}

// "E0107 over1.yaml:1:3", one for each diagnostic.
std::vector<std::string> faults(const SpecOutcome& outcome) {
  std::vector<std::string> out;
  for (const Diagnostic& d : outcome.diagnostics) out.push_back(text(d.id, " ", d.file, ":", d.line, ":", d.column));
  return out;
}

LoadedSpec loaded(const SpecParts& all) {
  SpecOutcome outcome = load_spec(all);
  EXPECT_TRUE(outcome.loaded) << render(outcome);
  return outcome.loaded ? *outcome.loaded : LoadedSpec{};
}

TEST(Overlays, MergeMapsAndReplaceTheRest) {
  const JobSpec job = loaded(parts({"meshes:\n  trainer:\n    dims: {gpu: 8}\n    env: {B: zwei, C: drei}\n",
                                    "meshes: {trainer: {program: [true], env: {C: three}}}\n"}))
                          .spec;
  const MeshSpec& mesh = job.meshes.at(0);
  EXPECT_EQ(mesh.dims, (std::vector<Dimension>{{"host", 2}, {"gpu", 8}}));
  EXPECT_EQ(mesh.program, std::vector<std::string>{"true"});
  EXPECT_EQ(mesh.env, (std::map<std::string, std::string>{{"A", "one"}, {"B", "zwei"}, {"C", "three"}}));
  EXPECT_EQ(mesh.workdir, "/home/u/job/run");
}

TEST(Overlays, StartRelativePathsFromTheFolderOfTheFirst) {
  SpecParts all = parts({"meshes: {trainer: {workdir: elsewhere}}\n"});
  all.files[1].directory = "/somewhere/else";
  const JobSpec job = loaded(all).spec;
  EXPECT_EQ(job.directory, "/home/u/job");
  EXPECT_EQ(job.meshes.at(0).workdir, "/home/u/job/elsewhere");
}

TEST(Overlays, MayChangeTheLauncherAndWhatAMeshRuns) {
  const SpecOutcome ssh = load_spec(parts({"launch: {ssh: {hosts: [a, b]}}\n"}));
  ASSERT_TRUE(ssh.loaded) << render(ssh);
  EXPECT_TRUE(ssh.loaded->spec.launch.facts().has_host_keys) << "the other is gone";
  const SpecOutcome actors = load_spec(parts({"meshes: {trainer: {actors: {a: {plugin: a.so, class: A}}}}\n"}));
  ASSERT_TRUE(actors.loaded) << render(actors);
  EXPECT_NE(actors.loaded->spec.meshes.at(0).program, std::vector<std::string>{"true"}) << "so is that";
}

TEST(Overlays, CannotDeleteAKey) {
  EXPECT_EQ(faults(load_spec(parts({"meshes: {trainer: {env: null}}\n"}))),
            std::vector<std::string>{"E0103 over1.yaml:1:20"});
}

TEST(Overlays, ShowAFaultInTheFileThatWroteIt) {
  const SpecOutcome outcome =
      load_spec(parts({"supervision:\n  lease: 5\n", "supervision: {hartbeat: 1s}\n"}, {"supervision.lost_after=x"}));
  EXPECT_EQ(faults(outcome),
            (std::vector<std::string>{"E0203 over1.yaml:2:10", "E0107 over2.yaml:1:15", "E0203 command line:1:30"}))
      << render(outcome);
}

TEST(Overlays, AreAllReadBeforeTheFirstFaultIsShown) {
  SpecParts all = parts({"a: [\n", "meshes: &x {}\n", "- 1\n"}, {"supervision.lease", "x={"});
  EXPECT_EQ(faults(load_spec(all)),
            (std::vector<std::string>{"E0001 over1.yaml:2:1", "E0004 over2.yaml:1:9", "E0103 over3.yaml:1:1",
                                      "E0015 command line:1:24", "E0001 command line:1:9"}));
}

TEST(Settings, ReachEveryKey) {
  const LoadedSpec spec = loaded(
      parts({}, {"meshes.trainer.dims.gpu=2", "supervision.lease=8s", "job=other", "meshes.\"trainer\".env.C=a=b.c",
                 "meshes.trainer.env={D: 4, E: 'x: y'}", "meshes.trainer.program=[echo, \"a b\"]", "job=third"}));
  EXPECT_EQ(spec.spec.name, "third");
  EXPECT_EQ(spec.spec.meshes.at(0).dims.at(1).size, 2U);
  EXPECT_EQ(spec.spec.supervision.lease, Duration::seconds(8));
  EXPECT_EQ(spec.spec.meshes.at(0).env.at("C"), "a=b.c");
  EXPECT_EQ(spec.spec.meshes.at(0).env.at("D"), "4");
  EXPECT_EQ(spec.spec.meshes.at(0).env.at("E"), "x: y");
  EXPECT_EQ(spec.spec.meshes.at(0).program, (std::vector<std::string>{"echo", "a b"}));
}

TEST(Settings, PointAtTheFlag) {
  EXPECT_EQ(render(load_spec(parts({}, {"supervision.lease=5"}))),
            "error[E0203]: `supervision.lease` takes a duration, not `5`\n"
            " --> command line:1:25\n"
            "  |\n"
            "1 | --set supervision.lease=5\n"
            "  |                         ^ a duration has a unit\n"
            "  = help: did you mean `5s`?\n");
  EXPECT_EQ(render(load_spec(parts({}, {"supervision.leese=5s"}))),
            "error[E0107]: unknown key `leese`\n"
            " --> command line:1:19\n"
            "  |\n"
            "1 | --set supervision.leese=5s\n"
            "  |                   ^^^^^ not a key of `supervision`\n"
            "  = help: did you mean `lease`?\n");
}

TEST(Settings, AddNoMeshAndNoDimensionBySlip) {
  const SpecOutcome mesh = load_spec(parts({}, {"meshes.trianer.env.A=1"}));
  EXPECT_EQ(ids_and_places(mesh), std::vector<std::string>{"E0213 1:14"});
  EXPECT_NE(render(mesh).find("did you mean `trainer`?"), std::string::npos) << render(mesh);
  const SpecOutcome dim = load_spec(parts({}, {"meshes.trainer.dims.gpus=2"}));
  EXPECT_EQ(ids_and_places(dim), std::vector<std::string>{"E0213 1:27"});
  EXPECT_TRUE(load_spec(parts({}, {"meshes.trainer.dims={slot: 2}"})).loaded);
  EXPECT_TRUE(load_spec(parts({}, {"launch.local={hosts: 4}", "meshes.other={dims: {x: 1}, program: [a]}"})).loaded);
}

TEST(Settings, RefuseWhatIsNoPathAndValue) {
  const std::vector<std::pair<std::string, std::string>> wrong = {{"", "E0015 1:7"},
                                                                  {"job", "E0015 1:10"},
                                                                  {"=1", "E0015 1:7"},
                                                                  {"a..b=1", "E0015 1:9"},
                                                                  {"job=", "E0015 1:10"},
                                                                  {"job=#x", "E0015 1:11"},
                                                                  {"a b=1", "E0015 1:8"},
                                                                  {"a.\"b=1", "E0015 1:9"},
                                                                  {"a[0]=1", "E0015 1:8"},
                                                                  {"job= ", "E0015 1:11"},
                                                                  {"job=*x", "E0004 1:11"},
                                                                  {"job=!x y", "E0005 1:11"},
                                                                  {"job=\x1b[m", "E0008 1:11"},
                                                                  {"a\xff"
                                                                   "=1",
                                                                   "E0107 1:7"},
                                                                  {"job={a: 1, a: 2}", "E0103 1:11"}};
  for (const auto& [written, fault] : wrong) {
    const SpecOutcome outcome = load_spec(parts({}, {written}));
    ASSERT_FALSE(outcome.diagnostics.empty()) << written;
    EXPECT_EQ(ids_and_places(outcome).front(), fault) << render(outcome);
  }
  std::string deep = "a";
  for (int i = 0; i < 40; ++i) deep += ".a";
  EXPECT_EQ(ids(load_spec(parts({}, {deep + "=1"}))), std::vector<std::string>{"E0015"});
}

TEST(Settings, LieOverAnything) {
  for (const char* overlay :
       {"meshes: a\n", "meshes: [a]\n", "meshes: {trainer: a}\n", "meshes: {trainer: {dims: a}}\n", "meshes:\n",
        "meshes: {}\n", "launch: a\n", "meshes: {trainer: {program: a}}\n"}) {
    SpecParts all = parts({overlay}, {"meshes.trainer.dims.gpu=1", "launch.local.hosts=2"});
    all.launch = FlagText{.text = "--launch local", .begin = 9};
    all.arguments = ExtraArguments{.words = {"x"}, .mesh = ""};
    EXPECT_NO_FATAL_FAILURE((void)render(load_spec(all))) << overlay;
  }
}

TEST(Settings, MayHoldAnyBytes) {
  for (const std::size_t length : {100U, 158U, 200U, 5000U}) {
    const std::string bytes(length, '\x97');
    for (const std::string& written : {bytes, bytes + "=1", "job=" + bytes, "job.a" + bytes + "=[" + bytes}) {
      const std::string shown = render(load_spec(parts({}, {written})));
      EXPECT_TRUE(std::all_of(shown.begin(), shown.end(), [](char c) { return c == '\n' || (c >= 0x20 && c < 0x7F); }));
    }
  }
}

SpecOutcome launched(std::string_view value) {
  SpecParts all = parts({});
  all.launch = FlagText{.text = text("--launch ", value), .begin = 9};
  return load_spec(all);
}

TEST(LaunchFlag, ReplacesTheLauncherAndAllThatBelongsToIt) {
  const SpecOutcome outcome = launched("local:8");
  ASSERT_TRUE(outcome.loaded) << render(outcome);
  EXPECT_EQ(outcome.loaded->spec.launch, Launch(LaunchLocal{.hosts = 8, .spares = 0}));
  const SpecOutcome bare = launched("local");
  ASSERT_TRUE(bare.loaded) << render(bare);
  EXPECT_EQ(bare.loaded->spec.launch, Launch(LaunchLocal{.hosts = std::nullopt, .spares = 0}));
}

TEST(LaunchFlag, TakesSlurmWithOrWithoutANumberOfNodes) {
  const SpecOutcome four = launched("slurm:4");
  ASSERT_TRUE(four.loaded) << render(four);
  EXPECT_EQ(four.loaded->spec.launch, Launch(LaunchSlurm{.nodes = 4}));
  const SpecOutcome bare = launched("slurm");
  ASSERT_TRUE(bare.loaded) << render(bare);
  EXPECT_EQ(bare.loaded->spec.launch, Launch(LaunchSlurm{}));
}

TEST(LaunchFlag, RefusesWhatItCannotDo) {
  EXPECT_EQ(ids_and_places(launched("ssh")), std::vector<std::string>{"E0101 1:10"});
  EXPECT_EQ(ids_and_places(launched("slurm:x")), std::vector<std::string>{"E0201 1:16"});
  EXPECT_EQ(ids_and_places(launched("locl:4")), std::vector<std::string>{"E0205 1:10"});
  EXPECT_EQ(ids_and_places(launched("")), std::vector<std::string>{"E0205 1:10"});
  EXPECT_EQ(ids_and_places(launched("local:")), std::vector<std::string>{"E0201 1:16"});
  EXPECT_EQ(ids_and_places(launched("local:x")), std::vector<std::string>{"E0201 1:16"});
  EXPECT_EQ(ids_and_places(launched("local:0")), std::vector<std::string>{"E0206 1:16"});
  EXPECT_EQ(ids_and_places(launched("local:1")), std::vector<std::string>{"E0304 1:16"});
}

SpecOutcome with_arguments(const std::vector<std::string>& words, const std::string& mesh = "",
                           const std::string& overlay = "") {
  SpecParts all = parts(overlay.empty() ? std::vector<std::string>{} : std::vector<std::string>{overlay});
  all.arguments = ExtraArguments{.words = words, .mesh = mesh};
  return load_spec(all);
}

TEST(ExtraArguments, AreAppendedToTheProgramOfTheOnlyMesh) {
  const SpecOutcome outcome = with_arguments({"--epochs", "3", "", "a b", "null", "x\ny"});
  ASSERT_TRUE(outcome.loaded) << render(outcome);
  EXPECT_EQ(outcome.loaded->spec.meshes.at(0).program,
            (std::vector<std::string>{"python3", "train.py", "--epochs", "3", "", "a b", "null", "x\ny"}));
}

TEST(ExtraArguments, NeedAMeshWhereThereAreSeveral) {
  const std::string two = "meshes: {other: {dims: {x: 1}, program: [a]}}\n";
  const SpecOutcome refused = with_arguments({"x"}, "", two);
  EXPECT_EQ(ids_and_places(refused), (std::vector<std::string>{"E0304 3:25", "E0016 1:1"}));
  EXPECT_NE(render(refused).find("--mesh picks one of trainer, other"), std::string::npos) << render(refused);
  const SpecOutcome typo = with_arguments({"x"}, "othr", two);
  EXPECT_NE(render(typo).find("did you mean `--mesh other`?"), std::string::npos) << render(typo);
}

TEST(ExtraArguments, AreBytes) {
  const SpecOutcome outcome = with_arguments({"ok", "caf\xe9.txt", "\xff\n\n"});
  ASSERT_TRUE(outcome.loaded) << render(outcome);
  EXPECT_EQ(outcome.loaded->spec.meshes.at(0).program,
            (std::vector<std::string>{"python3", "train.py", "ok", "caf\xe9.txt", "\xff\n\n"}));
  EXPECT_NE(outcome.loaded->text.find("!!binary Y2Fm6S50eHQ="), std::string::npos) << outcome.loaded->text;
}

TEST(Settings, TakeBytesWhereAProgramGetsThem) {
  const SpecOutcome taken = load_spec(parts({}, {"meshes.trainer.env.A=!!binary 6Q=="}));
  ASSERT_TRUE(taken.loaded) << render(taken);
  EXPECT_EQ(taken.loaded->spec.meshes.at(0).env.at("A"), "\xe9");
  EXPECT_EQ(ids(load_spec(parts({}, {"meshes.trainer.workdir=!!binary 6Q=="}))), std::vector<std::string>{"E0210"});
  EXPECT_EQ(ids(load_spec(parts({}, {"meshes.trainer.env.A=!!binary 6Q"}))), std::vector<std::string>{"E0005"});
}

TEST(MergedText, SaysTheSame) {
  SpecParts all = parts({"meshes:\n  trainer:\n    setup: \"\"\n    stop: {grace: 5s}\n"},
                        {"meshes.trainer.env.S=\"a\\nb \\\"c\\\" \\\\ \\x1b é\"", "meshes.trainer.env.T='~'"});
  all.arguments = ExtraArguments{.words = {"-c", "set -e\necho \"$X\"  \n\n  done\n", "tail\n\n", " lead\nx", "# no",
                                           "-", "--", "a: b", "[x]", "010", "true", "é", "caf\xe9\nx"},
                                 .mesh = ""};
  const LoadedSpec whole = loaded(all);
  const SpecOutcome again = load_spec(file("again", whole.text));
  ASSERT_TRUE(again.loaded) << render(again) << whole.text;
  EXPECT_EQ(again.loaded->spec, whole.spec) << whole.text;
  EXPECT_EQ(again.loaded->text, whole.text);
}

TEST(MergedText, IsOneFilesOwnBytesIfNothingLiesOverIt) { EXPECT_EQ(loaded(parts({})).text, kBase); }

TEST(MergedText, OfEveryConfigSaysTheSame) {
  int seen = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CONFIGS)) {
    if (entry.path().extension() != ".yaml") continue;
    const auto source = read_spec_file(entry.path().string());
    ASSERT_TRUE(source.ok()) << source.error().message;
    const SpecOutcome plain = load_spec(*source);
    ASSERT_TRUE(plain.loaded) << render(plain);
    SpecParts all;
    all.files = {*source, *source};
    const LoadedSpec merged = loaded(all);
    EXPECT_NE(merged.text, source->text) << "it was not merged";
    EXPECT_EQ(merged.spec, plain.loaded->spec) << merged.text;
    const SpecOutcome again = load_spec({.name = "again", .text = merged.text, .directory = source->directory});
    ASSERT_TRUE(again.loaded) << render(again) << merged.text;
    EXPECT_EQ(again.loaded->spec, plain.loaded->spec) << merged.text;
    ++seen;
  }
  EXPECT_GE(seen, 3);
}

// What a JobSpec says, the folder apart.
JobSpec placed(JobSpec job) {
  for (MeshSpec& mesh : job.meshes) mesh.workdir = mesh.workdir.value_or(job.directory);
  job.directory.clear();
  return job;
}

TEST(MovedSpec, OfEveryConfigSaysTheSame) {
  for (const auto& entry : std::filesystem::directory_iterator(CONFIGS)) {
    if (entry.path().extension() != ".yaml") continue;
    const auto source = read_spec_file(entry.path().string());
    ASSERT_TRUE(source.ok()) << source.error().message;
    const SpecOutcome plain = load_spec(*source);
    ASSERT_TRUE(plain.loaded) << render(plain);
    EXPECT_EQ(moved_spec(source->text, {.from = source->directory, .to = source->directory}), source->text);
    const std::string moved = moved_spec(source->text, {.from = source->directory, .to = "/elsewhere"});
    const SpecOutcome there = load_spec({.name = "moved", .text = moved, .directory = "/elsewhere"});
    ASSERT_TRUE(there.loaded) << render(there) << moved;
    EXPECT_NE(there.loaded->spec.directory, plain.loaded->spec.directory);
    EXPECT_EQ(placed(there.loaded->spec), placed(plain.loaded->spec)) << moved;
  }
}

TEST(MovedSpec, WritesOutWhatIsRelative) {
  const std::string moved = moved_spec(kBase, {.from = "/home/u/job", .to = "/tmp"});
  EXPECT_NE(moved.find("workdir: /home/u/job/run\n"), std::string::npos) << moved;
  const std::string ssh =
      moved_spec("launch: {ssh: {hosts_file: h.txt, identity: ~/.ssh/id}}\n", {.from = "/a", .to = "/b"});
  EXPECT_NE(ssh.find("/a/h.txt"), std::string::npos) << ssh;
  EXPECT_NE(ssh.find("~/.ssh/id"), std::string::npos) << ssh;
}

TEST(MergedText, IsRefusedWhereAllPartsTogetherAreTooLarge) {
  // 60 KiB that are written as 240 KiB, which no reader of a spec takes in one text.
  SpecParts escaped = parts({});
  escaped.arguments = ExtraArguments{.words = {std::string(60'000, '\x1b')}, .mesh = ""};
  const SpecOutcome outcome = load_spec(escaped);
  EXPECT_EQ(ids(outcome), std::vector<std::string>{"E0014"});
  EXPECT_TRUE(outcome.diagnostics.front().message.starts_with("all parts together: ")) << render(outcome);

  std::string many = "meshes: {trainer: {env: {";
  std::string more = many;
  for (int i = 0; i < 3000; ++i) {
    many += text("A", i, ": x, ");
    more += text("B", i, ": x, ");
  }
  EXPECT_EQ(ids(load_spec(parts({many + "}}}\n", more + "}}}\n"}))), std::vector<std::string>{"E0206"});
}

}  // namespace
}  // namespace monarch
