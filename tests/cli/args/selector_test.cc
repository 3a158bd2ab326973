// --mesh, --at, --rank, --host and --generation: what they mean, and what is said of what does not exist.

#include "cli/args/selector.h"

#include <gtest/gtest.h>

namespace monarch {

namespace {

MeshSpec mesh(std::string name, std::vector<Dimension> dims, std::size_t per_host_dims) {
  MeshSpec made;
  made.name = std::move(name);
  made.dims = std::move(dims);
  made.per_host_dims = per_host_dims;
  return made;
}

// Ranks 0-7 on v1-v2, and ranks 0-1 on v3.
JobSpec two_meshes() {
  JobSpec spec;
  spec.name = "pair";
  spec.meshes = {mesh("trainer", {{"replica", 2}, {"gpu", 4}}, 1), mesh("reader", {{"slot", 2}}, 1)};
  return spec;
}

JobSpec one_mesh() {
  JobSpec spec = two_meshes();
  spec.meshes.pop_back();
  return spec;
}

Selector select(const SelectorWords& words, const JobSpec& spec) {
  auto parsed = Selector::parse(words, spec);
  if (const auto* wrong = std::get_if<Complaint>(&parsed)) ADD_FAILURE() << wrong->message;
  return std::get<Selector>(parsed);
}

std::vector<std::uint32_t> ranks_of(const Selector& selector, std::uint32_t mesh, std::uint32_t size) {
  std::vector<std::uint32_t> ranks;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (selector.has({MeshId(mesh), Rank(rank)})) ranks.push_back(rank);
  }
  return ranks;
}

std::string complaint(const SelectorWords& words, const JobSpec& spec) {
  const auto parsed = Selector::parse(words, spec);
  const auto* wrong = std::get_if<Complaint>(&parsed);
  return wrong == nullptr ? "none" : wrong->id + ": " + wrong->message + " = " + wrong->help;
}

using Ranks = std::vector<std::uint32_t>;

}  // namespace

TEST(Selector, NothingWrittenIsAll) {
  const Selector selector = select({}, two_meshes());
  EXPECT_TRUE(selector.selects_all());
  EXPECT_EQ(ranks_of(selector, 0, 8).size(), 8U);
  EXPECT_EQ(ranks_of(selector, 1, 2).size(), 2U);
  EXPECT_TRUE(selector.has_host("v1"));
  EXPECT_TRUE(selector.has_generation(7));
}

TEST(Selector, TakesCoordinatesRangesAndStrides) {
  const JobSpec spec = one_mesh();
  EXPECT_EQ(ranks_of(select({.at = "replica=1"}, spec), 0, 8), (Ranks{4, 5, 6, 7}));
  EXPECT_EQ(ranks_of(select({.at = "replica=1,gpu=0:2"}, spec), 0, 8), (Ranks{4, 5}));
  EXPECT_EQ(ranks_of(select({.at = "gpu=2:"}, spec), 0, 8), (Ranks{2, 3, 6, 7}));
  EXPECT_EQ(ranks_of(select({.at = "gpu=:1"}, spec), 0, 8), (Ranks{0, 4}));
  EXPECT_EQ(ranks_of(select({.at = "gpu=0:4:2"}, spec), 0, 8), (Ranks{0, 2, 4, 6}));
  EXPECT_EQ(ranks_of(select({.at = "gpu=3", .ranks = "3,4-6"}, spec), 0, 8), (Ranks{3}));
}

TEST(Selector, CoordinatesMeanTheMeshesThatHaveThem) {
  const Selector selector = select({.at = "slot=1"}, two_meshes());
  EXPECT_EQ(ranks_of(selector, 0, 8), Ranks{});
  EXPECT_EQ(ranks_of(selector, 1, 2), (Ranks{1}));
  // And then a rank is of that mesh.
  EXPECT_EQ(ranks_of(select({.at = "slot=:", .ranks = "0"}, two_meshes()), 1, 2), (Ranks{0}));
}

TEST(Selector, RanksOfSeveralMeshesNeedOne) {
  EXPECT_EQ(complaint({.ranks = "0"}, two_meshes()),
            "E0922: --rank counts within a mesh, and the job has more than one = name it by --mesh: trainer reader");
  const Selector selector = select({.mesh = "reader", .ranks = "1"}, two_meshes());
  EXPECT_EQ(ranks_of(selector, 0, 8), Ranks{});
  EXPECT_EQ(ranks_of(selector, 1, 2), (Ranks{1}));
}

TEST(Selector, NamesWhatExistsInsteadOfWhatDoesNot) {
  const JobSpec spec = one_mesh();
  EXPECT_EQ(complaint({.mesh = "trainr"}, two_meshes()),
            "E0921: --mesh trainr: the job has no such mesh = did you mean `trainer`? It has: trainer reader");
  EXPECT_EQ(complaint({.mesh = "zebra"}, two_meshes()),
            "E0921: --mesh zebra: the job has no such mesh = one of: trainer reader");
  EXPECT_EQ(complaint({.at = "replika=1"}, spec),
            "E0921: --at: the mesh `trainer` has no dimension `replika` = did you mean `replica`? it has replica=0-1 "
            "gpu=0-3");
  EXPECT_EQ(complaint({.at = "gpu=4"}, spec),
            "E0921: --at gpu=4: the mesh `trainer` has gpu=0-3 = it has replica=0-1 gpu=0-3");
  EXPECT_EQ(complaint({.at = "gpu=2:5"}, spec),
            "E0921: --at gpu=2:5: the mesh `trainer` has gpu=0-3 = it has replica=0-1 gpu=0-3");
  EXPECT_EQ(complaint({.ranks = "3,8"}, spec),
            "E0921: --rank: there is no rank 8 in the mesh `trainer` = it has the ranks 0-7");
  EXPECT_EQ(complaint({.hosts = "v2,v9"}, spec), "E0921: --host v9: the job has no such host = it has: v1 v2");
  EXPECT_EQ(complaint({.at = "gpu=3", .ranks = "0"}, spec),
            "E0921: no rank is selected by both --at and --rank = monarch plan and monarch status show the ranks");
}

TEST(Selector, RefusesWhatIsNoSelector) {
  const JobSpec spec = one_mesh();
  for (const char* wrong : {"", "gpu", "gpu=", "=1", "gpu=a", "gpu=1:1", "gpu=3:1", "gpu=0:4:0", "gpu=1,",
                            "gpu=1,gpu=2", "gpu=-1", "gpu=1 ", "gpu=99999999999", "gpu=0:4:1:1", "gpu==1"}) {
    EXPECT_EQ(complaint({.at = wrong}, spec).substr(0, 5), "E0920") << wrong;
  }
  for (const char* wrong : {"", "a", "3-1"})
    EXPECT_EQ(complaint({.ranks = wrong}, spec).substr(0, 5), "E0920") << wrong;
  for (const char* wrong : {"", "0", "x", "0-3"}) {
    EXPECT_EQ(complaint({.generations = wrong}, spec).substr(0, 5), "E0920") << wrong;
  }
  for (const char* wrong : {"", "v[1", "v1,v1", "\x1b[31m"}) {
    const std::string said = complaint({.hosts = wrong}, spec);
    EXPECT_EQ(said.substr(0, 5), "E0920") << wrong;
    EXPECT_EQ(said.find('\x1b'), std::string::npos);
  }
}

TEST(Selector, HostsAndGenerationsHoldToo) {
  const Selector selector = select({.hosts = "v[1-2]", .generations = "2,4-5"}, one_mesh());
  const RankId rank{MeshId(0), Rank(3)};
  EXPECT_TRUE(selector.has(rank, "v1", 2));
  EXPECT_TRUE(selector.has(rank, "v2", 5));
  EXPECT_FALSE(selector.has(rank, "v3", 2));
  EXPECT_FALSE(selector.has(rank, "v1", 3));
  EXPECT_FALSE(selector.has(rank, "v1", 1ULL << 32U));
  EXPECT_FALSE(selector.selects_all());
}

TEST(Selector, TakesTheEventsThatSayWhatIsMeant) {
  JobEvent of_job;
  JobEvent of_mesh;
  of_mesh.mesh = "trainer";
  JobEvent of_rank = of_mesh;
  of_rank.rank = 5;
  of_rank.host = "v2";
  of_rank.generation = 1;
  const JobSpec spec = two_meshes();
  const auto taken = [&](const SelectorWords& words) {
    const Selector selector = select(words, spec);
    return std::vector<bool>{selector.has(of_job), selector.has(of_mesh), selector.has(of_rank)};
  };
  EXPECT_EQ(taken({}), (std::vector<bool>{true, true, true}));
  EXPECT_EQ(taken({.mesh = "trainer"}), (std::vector<bool>{false, true, true}));
  EXPECT_EQ(taken({.mesh = "reader"}), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(taken({.at = "replica=1"}), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(taken({.mesh = "trainer", .ranks = "4"}), (std::vector<bool>{false, false, false}));
  EXPECT_EQ(taken({.hosts = "v2"}), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(taken({.generations = "2"}), (std::vector<bool>{false, false, false}));
}

TEST(Selector, LeavesTheMeantPartOfAStatus) {
  JobStatus status;
  status.job_id = "pair-0001";
  status.meshes = {{.name = "trainer", .dims = {}, .phase = "running", .ranks = {}},
                   {.name = "reader", .dims = {}, .phase = "running", .ranks = {}}};
  for (std::uint32_t r = 0; r < 8; ++r) {
    status.meshes[0].ranks.push_back({.rank = r, .phase = "running", .host = r < 4 ? "v1" : "v2", .generation = 1});
  }
  status.meshes[1].ranks = {{.rank = 0, .phase = "running", .host = "v3", .generation = 1}};
  for (const char* host : {"v1", "v2", "v3"}) status.hosts.push_back({.name = host, .phase = "ready", .role = "rank"});
  const JobStatus part = selected_part(status, select({.mesh = "trainer", .ranks = "6-7"}, two_meshes()));
  ASSERT_EQ(part.meshes.size(), 1U);
  EXPECT_EQ(part.meshes[0].ranks.size(), 2U);
  ASSERT_EQ(part.hosts.size(), 1U);
  EXPECT_EQ(part.hosts[0].name, "v2");
  EXPECT_EQ(part.job_id, "pair-0001");
  EXPECT_TRUE(selected_part(status, select({.generations = "9"}, two_meshes())).meshes.empty());
  EXPECT_EQ(selected_part(status, select({.hosts = "v3"}, two_meshes())).meshes[0].name, "reader");
}

}  // namespace monarch
