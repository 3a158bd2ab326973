#include "cli/show/plan_drawing.h"

#include <gtest/gtest.h>

#include "cli/term/table.h"
#include "supervisor/launch/local/local_spec.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "transport/base/clock.h"

namespace monarch {

namespace {

MeshSpec mesh_of(std::string name, std::vector<Dimension> dims, std::size_t per_host_dims) {
  MeshSpec mesh;
  mesh.name = std::move(name);
  mesh.dims = std::move(dims);
  mesh.per_host_dims = per_host_dims;
  mesh.program = {"train"};
  return mesh;
}

JobSpec job_of(std::vector<MeshSpec> meshes, std::uint32_t spares = 0) {
  JobSpec spec;
  spec.name = "ddp";
  spec.meshes = std::move(meshes);
  spec.launch = LaunchLocal{.spares = spares};
  return spec;
}

std::string drawn(const JobSpec& spec, std::size_t columns = 0, bool all = false) {
  const Placement placement(spec);
  const std::vector<PoolHost> hosts = pool_of(spec);
  return draw_plan({.spec = spec, .placement = placement, .hosts = hosts, .columns = columns, .all = all});
}

std::size_t widest(std::string_view drawing) {
  std::size_t width = 0;
  while (!drawing.empty()) {
    const std::size_t newline = drawing.find('\n');
    width = std::max(width, display_width(drawing.substr(0, newline)));
    drawing.remove_prefix(newline == std::string_view::npos ? drawing.size() : newline + 1);
  }
  return width;
}

}  // namespace

TEST(PlanDrawing, NamesTheLauncherAndItsHosts) {
  JobSpec spec = job_of({mesh_of("trainer", {{"host", 2}, {"gpu", 2}}, 1)});
  spec.launch = LaunchSsh{.hosts = {{.name = "gpu7"}, {.name = "gpu2"}, {.name = "n1"}, {.name = "n2"}}, .spares = 1};
  const std::string plan = drawn(spec);
  EXPECT_TRUE(plan.starts_with("job ddp   launch ssh: 2 of 4 hosts have ranks, 1 spare\n")) << plan;
  for (const char* row : {"  gpu7  0 1", "  gpu2  2 3", "  n1    (spare)", "  n2    (cold)"})
    EXPECT_NE(plan.find(row), std::string::npos) << row << "\n" << plan;
}

TEST(PlanDrawing, HasARowForEachHostWithItsRanks) {
  MeshSpec mesh = mesh_of("trainer", {{"replica", 2}, {"host", 2}, {"gpu", 4}}, 1);
  mesh.gang = {.scope = GangScope::kDimension, .along = 0};
  EXPECT_EQ(drawn(job_of({mesh}, 1)), R"(job ddp   launch local: 4 of 5 hosts have ranks, 1 spare

mesh trainer   replica=2 × host=2 × gpu=4   16 ranks, 2 gangs of 8 ranks
  program train
  HOST  RANKS, gpu →  COORDINATES       GANGS
  v1     0  1  2  3   replica=0 host=0  0
  v2     4  5  6  7   replica=0 host=1  0
  v3     8  9 10 11   replica=1 host=0  1
  v4    12 13 14 15   replica=1 host=1  1

hosts
  HOST  HOLDS
  v5    (spare)
)");
}

TEST(PlanDrawing, TellsWhatIsSharedWaitedForAndAskedFor) {
  MeshSpec trainer = mesh_of("trainer", {{"host", 2}, {"gpu", 4}}, 1);
  trainer.resources.gpus = 1;
  trainer.depends_on = {MeshId(1)};
  MeshSpec loader = mesh_of("loader", {{"host", 2}}, 0);
  loader.like = MeshId(0);
  loader.ports = {{.name = "http", .fixed = std::nullopt}};
  loader.ready = {.kind = ReadyKind::kTcp, .port = 0};
  const std::string drawing = drawn(job_of({trainer, loader}));
  EXPECT_NE(drawing.find("\n  after loader; 4 GPUs per host\n"), std::string::npos) << drawing;
  EXPECT_NE(drawing.find("\n  on the hosts of trainer; ready when port http answers; port http\n"), std::string::npos)
      << drawing;
  EXPECT_NE(drawing.find("  v2    trainer/4-7  loader/1\n"), std::string::npos) << drawing;
}

TEST(PlanDrawing, SeparatesTheGangsOfAHost) {
  MeshSpec mesh = mesh_of("policy", {{"replica", 2}, {"gpu", 2}}, 2);
  mesh.gang = {.scope = GangScope::kDimension, .along = 0};
  EXPECT_NE(drawn(job_of({mesh})).find("  HOST  RANKS, replica × gpu →  GANGS\n  v1    0 1 │ 2 3"), std::string::npos);
}

TEST(PlanDrawing, IsShortenedInTheMiddleAndFast) {
  const JobSpec spec = job_of({mesh_of("trainer", {{"host", 512}, {"gpu", 8}}, 1)});
  const Instant begun = boot_now();
  const std::string drawing = drawn(spec, 80);
  EXPECT_LT(boot_now() - begun, Duration::milliseconds(200));
  EXPECT_NE(drawing.find("… 497 more hosts, ranks 96-4071"), std::string::npos) << drawing;
  EXPECT_NE(drawing.find("v512  4088 4089"), std::string::npos) << drawing;
  EXPECT_LT(std::count(drawing.begin(), drawing.end(), '\n'), 30);
  EXPECT_EQ(drawing.find("v13 "), std::string::npos);
  const std::string all = drawn(spec, 80, true);
  EXPECT_NE(all.find("v13 "), std::string::npos);
  EXPECT_GT(std::count(all.begin(), all.end(), '\n'), 512);
}

TEST(PlanDrawing, IsNoWiderThanTheTerminal) {
  const JobSpec spec = job_of({mesh_of("trainer", {{"replica", 2}, {"host", 2}, {"gpu", 16}}, 1)}, 1);
  const std::string wide = drawn(spec);
  EXPECT_NE(wide.find(" 0  1  2  3"), std::string::npos);
  for (const std::size_t columns : {60U, 40U, 30U}) {
    std::string_view drawing = wide;
    const std::string narrow = drawn(spec, columns);
    drawing = std::string_view(narrow).substr(narrow.find("  HOST"));  // the job's words are for the terminal to break
    EXPECT_LE(widest(drawing), columns) << narrow;
    EXPECT_NE(narrow.find("48-63"), std::string::npos) << narrow;
  }
}

TEST(Table, GoesOnBelowWhatDoesNotFit) {
  Table table({"RANK", "HOST", "PHASE", "END"});
  table.add({{.words = "0"}, {.words = "v1"}, {.words = "running"}, {.words = ""}});
  table.add({{.words = "1"}, {.words = "v2"}, {.words = "failed"}, {.words = "killed by SIGSEGV"}});
  EXPECT_EQ(table.render(false, 24),
            "RANK  HOST  PHASE\n"
            "      END\n"
            "0     v1    running\n"
            "1     v2    failed\n"
            "      killed by SIGSEGV\n");
  EXPECT_EQ(table.render(false, 80), table.render(false));
}

}  // namespace monarch
