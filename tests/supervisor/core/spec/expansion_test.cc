#include "supervisor/core/spec/expansion.h"

#include <gtest/gtest.h>

#include <random>

#include "supervisor/core/spec/rank_texts.h"
#include "tests/supervisor/core/fixtures.h"

namespace monarch {
namespace {

using Kind = ReferenceFault::Kind;

// A store with two ports on v1, and trainers on v2 and v3 that wait for it.
JobSpec two_meshes() {
  JobSpec spec;
  spec.name = "test";
  spec.directory = "/srv/job";
  spec.meshes.push_back(fixtures::mesh_of("store", {{"host", 1}, {"slot", 2}}, 1));
  spec.meshes[0].ports = {{.name = "http", .fixed = {}}, {.name = "admin", .fixed = 8081}};
  spec.meshes.push_back(fixtures::mesh_of("trainer", {{"host", 2}, {"gpu", 2}}, 1));
  spec.meshes[1].ports = {{.name = "rpc", .fixed = {}}};
  spec.meshes[1].depends_on = {MeshId(0)};
  return spec;
}

std::string expanded(const JobSpec& spec, const std::string& text, RankId rank) {
  const Placement placement(spec);
  const auto hosts = virtual_hosts(spec.pool_size());
  const ReferenceSources sources{
      .spec = spec,
      .placement = placement,
      .hosts = hosts,
      .port = [](RankId whose, std::size_t index) -> std::uint16_t {
        return static_cast<std::uint16_t>(20'000 + whose.mesh.value() * 1000 + whose.rank.value() * 10 + index);
      },
      .shell = {{"TOKEN", "s3cr$(self.rank)t"}}};
  return expand_for(compile_expansion(text, spec, rank.mesh), sources, rank).value;
}

ReferenceFault fault_in(const JobSpec& spec, const std::string& text, MeshId mesh = MeshId(1)) {
  for (const ExpansionPiece& piece : parse_expansion(text)) {
    if (!piece.reference) continue;
    const ReadReference read = read_reference(*piece.reference, spec, mesh);
    EXPECT_FALSE(read.meaning) << text;
    return read.fault;
  }
  ADD_FAILURE() << "no reference in " << text;
  return {};
}

TEST(Expansion, KnowsTheRankItsHostItsPortsAndOtherMeshes) {
  const JobSpec spec = two_meshes();
  const RankId rank{MeshId(1), Rank(3)};
  EXPECT_EQ(expanded(spec, "$(self.rank)/$(self.local_rank)", rank), "3/1");
  EXPECT_EQ(expanded(spec, "$(self.host) $(self.host_name)", rank), "127.0.1.3 v3");
  EXPECT_EQ(expanded(spec, "--listen=:$(self.port.rpc)", rank), "--listen=:21030");
  EXPECT_EQ(expanded(spec, "http://$(mesh.store.host):$(mesh.store.port.http)/x", rank), "http://127.0.1.1:20000/x");
  EXPECT_EQ(expanded(spec, "$(mesh.store.host_name)", rank), "v1");
}

TEST(Expansion, KnowsAsNodeRankTheHostAmongThoseOfTheGang) {
  JobSpec spec = two_meshes();
  EXPECT_EQ(expanded(spec, "$(self.node_rank)/$(self.local_rank)", {MeshId(1), Rank(1)}), "0/1");
  EXPECT_EQ(expanded(spec, "$(self.node_rank)/$(self.local_rank)", {MeshId(1), Rank(2)}), "1/0");
  spec.meshes[1].gang = {.scope = GangScope::kDimension, .along = 0};
  EXPECT_EQ(expanded(spec, "$(self.node_rank)/$(self.local_rank)", {MeshId(1), Rank(2)}), "0/0");
}

TEST(Expansion, PutsValuesOfTheShellInAsTheyAre) {
  EXPECT_EQ(expanded(two_meshes(), "a$(env.TOKEN)b", {MeshId(1), Rank(0)}), "as3cr$(self.rank)tb");
  const JobSpec spec = two_meshes();
  const Placement placement(spec);
  const auto hosts = virtual_hosts(3);
  const ReferenceSources sources{.spec = spec, .placement = placement, .hosts = hosts};
  EXPECT_TRUE(expand_for(compile_expansion("$(env.TOKEN)", spec, MeshId(1)), sources, {MeshId(1), Rank(0)}).secret);
  EXPECT_TRUE(expand_for(compile_expansion("$(self.port.rpc)", spec, MeshId(1)), sources, {MeshId(1), Rank(0)}).open);
}

TEST(Expansion, PassesVariablesByTheirNameOrItsBeginning) {
  MeshSpec mesh;
  mesh.env_pass = {"HF_TOKEN", "WANDB_*"};
  for (const char* name : {"HF_TOKEN", "WANDB_KEY", "WANDB_"}) EXPECT_TRUE(is_passed(mesh, name)) << name;
  for (const char* name : {"HF_TOKEN2", "HF", "WANDB", "XWANDB_KEY", ""}) EXPECT_FALSE(is_passed(mesh, name)) << name;
}

TEST(Expansion, LeavesWhatIsTheShellsAlone) {
  for (const char* text : {"$(hostname)", "$(", "$()", "$(self)", "$(selfish.rank)", "$((1 + 2))", "${self.rank}", "$",
                           "", "$(SELF.rank)", "$(echo $HOME)", "self.rank)"}) {
    EXPECT_EQ(expanded(two_meshes(), text, {MeshId(1), Rank(0)}), text);
    EXPECT_FALSE(has_references(text)) << text;
  }
  EXPECT_EQ(expanded(two_meshes(), "$(echo $(self.rank))", {MeshId(1), Rank(2)}), "$(echo 2)");
}

TEST(Expansion, SaysWhatIsWrongWithAReference) {
  const JobSpec spec = two_meshes();
  EXPECT_EQ(fault_in(spec, "$(self.rnak)").kind, Kind::kUnknownField);
  EXPECT_EQ(fault_in(spec, "$(self.rnak)").word, "rnak");
  EXPECT_EQ(fault_in(spec, "$(self.)").kind, Kind::kUnknownField);
  EXPECT_EQ(fault_in(spec, "$(self.rank").kind, Kind::kNotClosed);
  EXPECT_EQ(fault_in(spec, "$(self.port.http)").kind, Kind::kUnknownPort);
  EXPECT_EQ(fault_in(spec, "$(self.port.http)").known, std::vector<std::string>{"rpc"});
  EXPECT_EQ(fault_in(spec, "$(mesh.stroe.host)").kind, Kind::kUnknownMesh);
  EXPECT_EQ(fault_in(spec, "$(mesh.store.rank)").kind, Kind::kUnknownField);
  EXPECT_EQ(fault_in(spec, "$(mesh.store.port.htp)").kind, Kind::kUnknownPort);
  EXPECT_EQ(fault_in(spec, "$(env.)").kind, Kind::kBadVariable);
  EXPECT_EQ(fault_in(spec, "$(env.A-B)").kind, Kind::kBadVariable);
}

TEST(Expansion, NeedsAMeshToBeUpBeforeItsPortIsAskedFor) {
  JobSpec spec = two_meshes();
  EXPECT_EQ(fault_in(spec, "$(mesh.trainer.port.rpc)", MeshId(0)).kind, Kind::kNotYetStarted);
  EXPECT_EQ(expanded(spec, "$(mesh.trainer.port.rpc)", {MeshId(1), Rank(1)}), "21000");
  spec.meshes[1].gang.scope = GangScope::kEach;  // gangs of one mesh start on their own
  EXPECT_EQ(fault_in(spec, "$(mesh.trainer.port.rpc)").kind, Kind::kNotYetStarted);
  spec.meshes[1].depends_on.clear();
  EXPECT_EQ(fault_in(spec, "$(mesh.store.port.http)").kind, Kind::kNotYetStarted);
  EXPECT_EQ(expanded(spec, "$(mesh.store.host)", {MeshId(1), Rank(0)}), "127.0.1.1");  // known from the placement
  EXPECT_TRUE(read_reference(*parse_expansion("$(mesh.store.port.admin)")[0].reference, spec, MeshId(1)).meaning);
  spec.meshes[0].sidecar = true;
  EXPECT_EQ(expanded(spec, "$(mesh.store.port.http)", {MeshId(1), Rank(0)}), "20000");
}

TEST(Expansion, NamesTheVariablesOfTheShellThatAJobUses) {
  JobSpec spec = two_meshes();
  spec.meshes[0].program = {"x", "$(env.A)$(env.B_1)"};
  spec.meshes[0].env = {{"Z", "$(env.C)"}, {"Y", "$(self.rank)"}};
  spec.meshes[1].wrap = {"$(env.A)"};
  spec.meshes[1].workdir = "$(env.D)/x";
  EXPECT_EQ(shell_variables(spec), (std::set<std::string>{"A", "B_1", "C", "D"}));
}

// Whatever the text: its pieces put together again are the text, and a reference stands where it says.
TEST(Expansion, LosesNothingOfAnyText) {
  const std::vector<std::string> parts = {"$(", "self", "mesh",  "env", ".",    "rank",         "port",     ")", "$",
                                          "(",  "x",    "store", "\n",  "\xff", "$(self.rank)", "$(env.X)", " "};
  std::mt19937 random(20'261'120);  // the seed of this test
  for (int i = 0; i < 20'000; ++i) {
    std::string text;
    for (auto n = random() % 12; n > 0; --n) text += parts[random() % parts.size()];
    std::string again;
    for (const ExpansionPiece& piece : parse_expansion(text)) {
      if (!piece.reference) {
        again += piece.literal;
        EXPECT_FALSE(has_references(piece.literal)) << text;
        continue;
      }
      EXPECT_EQ(piece.reference->offset, again.size()) << text;
      again += text.substr(piece.reference->offset, piece.reference->length);
      (void)read_reference(*piece.reference, two_meshes(), MeshId(1));
    }
    ASSERT_EQ(again, text);
  }
}

}  // namespace
}  // namespace monarch
