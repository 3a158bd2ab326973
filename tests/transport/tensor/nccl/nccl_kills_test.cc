// Groups whose members are processes, one of which is killed.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/transport/tensor/nccl/member_process.h"
#include "transport/base/take_number.h"
#include "transport/tensor/nccl/load.h"

namespace monarch::tensor {
namespace {

constexpr std::int64_t kHeardWithin = 1'000;  // ms, from the verdict on

enum class Moment { kInit, kCall, kBetween };

std::string new_id() {
  const auto nccl = load_nccl(nullptr);
  EXPECT_TRUE(nccl.ok()) << (nccl.ok() ? "" : nccl.error().message);
  return nccl.ok() ? *(*nccl)->make_id() : std::string(kNcclIdBytes, '\0');
}

// "ended 3 gone: group sync: generator/2 has ended: killed by signal 9", then "over 1 1".
void expect_told(MemberProcess& member, Moment moment) {
  std::string line = member.line().value_or("nothing");
  if (line == "joined" && moment == Moment::kInit) line = member.line().value_or("nothing");
  ASSERT_EQ(line.substr(0, 6), "ended ") << line;
  std::string_view rest = std::string_view(line).substr(6);
  std::int64_t milliseconds = -1;
  ASSERT_TRUE(take_number(rest, milliseconds));
  EXPECT_EQ(rest, " gone: group sync: generator/2 has ended: killed by signal 9");
  EXPECT_GE(milliseconds, 0) << "before anybody said so";
  EXPECT_LE(milliseconds, kHeardWithin);
  const std::string over = member.line().value_or("nothing");
  // Who hears of it before he begins has nothing to abort.
  if (moment != Moment::kInit || over != "over 0 0") {
    EXPECT_EQ(over, "over 1 1") << "aborted once, of the one that was begun";
  }
  EXPECT_EQ(member.all_lines(), std::vector<std::string>());
}

void kill_one(std::uint32_t seed, Moment moment) {
  SCOPED_TRACE(text("seed ", seed));
  std::mt19937 random(seed);
  const auto size = static_cast<std::uint32_t>(2 + random() % 3);
  const auto victim = static_cast<std::uint32_t>(random() % size);
  const std::string id = new_id();
  std::vector<std::unique_ptr<MemberProcess>> members;
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    members.push_back(std::make_unique<MemberProcess>(std::vector<std::string>{
        moment == Moment::kBetween ? "between" : "calls", std::to_string(rank), std::to_string(size)}));
  }
  // In init: the one that is to die may have begun to join or not; the others cannot have ended joining before he has
  // it, and so he is given it last.
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (rank != victim) members[rank]->tell(id);
  }
  if (moment != Moment::kInit || random() % 2 == 0) members[victim]->tell(id);
  if (moment != Moment::kInit) {
    for (auto& member : members) ASSERT_EQ(member->line().value_or("nothing"), "joined");
  }
  (void)::poll(nullptr, 0, static_cast<int>(random() % 20));
  members[victim]->kill();
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    if (rank != victim) members[rank]->tell("L");
  }
  for (std::uint32_t rank = 0; rank < size; ++rank) {
    SCOPED_TRACE(text("member ", rank, " of ", size, ", killed: ", victim));
    if (rank != victim) expect_told(*members[rank], moment);
  }
}

TEST(NcclKills, EndAllOthersInInit) {
  for (std::uint32_t seed = 1; seed <= 10 && !testing::Test::HasFailure(); ++seed) kill_one(seed, Moment::kInit);
}

TEST(NcclKills, EndAllOthersInACall) {
  for (std::uint32_t seed = 1; seed <= 20 && !testing::Test::HasFailure(); ++seed) kill_one(seed, Moment::kCall);
}

TEST(NcclKills, EndAllOthersBetweenCalls) {
  for (std::uint32_t seed = 1; seed <= 10 && !testing::Test::HasFailure(); ++seed) kill_one(seed, Moment::kBetween);
}

std::vector<std::string> said_by(std::vector<std::string> arguments, const MemberProcess::Environment& environment) {
  return MemberProcess(std::move(arguments), environment).all_lines();
}

using Lines = std::vector<std::string>;

TEST(NcclLoad, TakesWhatIsFoundByItsName) { EXPECT_EQ(said_by({"load"}, {}), Lines{"NCCL 2.28.9"}); }

TEST(NcclLoad, TakesTheFileThatIsNamed) {
  const std::string file = MemberProcess::folder() + "/libnccl.so.2";
  EXPECT_EQ(said_by({"load"}, {{"LD_LIBRARY_PATH", ""}, {kNcclVariable, file}, {"FAKE_NCCL_VERSION", "22304"}}),
            Lines{"NCCL 2.23.4"});
}

TEST(NcclLoad, TakesWhatIsLoadedAlreadyBeforeTheFileThatIsNamed) {
  const std::string file = MemberProcess::folder() + "/libnccl.so.2";
  EXPECT_EQ(said_by({"load", file},
                    {{"LD_LIBRARY_PATH", ""}, {kNcclVariable, "/nowhere/libnccl.so"}, {"FAKE_NCCL_VERSION", "21403"}}),
            Lines{"NCCL 2.14.3"});
}

TEST(NcclLoad, SaysInTheLoadersWordsThatThereIsNone) {
  EXPECT_EQ(said_by({"load"}, {{kNcclVariable, "/nowhere/libnccl.so"}}),
            Lines{"unsupported: NCCL cannot be loaded: /nowhere/libnccl.so: cannot open shared object file: No such "
                  "file or directory"});
}

TEST(NcclLoad, RefusesWhatIsNotNccl) {
  EXPECT_EQ(said_by({"load"}, {{kNcclVariable, "libm.so.6"}}),
            Lines{"unsupported: libm.so.6 does not say which NCCL it is"});
}

TEST(NcclLoad, RefusesWhatIsTooOldByItsVersion) {
  const std::string why = " is too old: 2.14 or later can be asked without waiting";
  EXPECT_EQ(said_by({"load"}, {{"FAKE_NCCL_VERSION", "21304"}}), Lines{"unsupported: NCCL 2.13.4" + why});
  EXPECT_EQ(said_by({"load"}, {{"FAKE_NCCL_VERSION", "2804"}}), Lines{"unsupported: NCCL 2.8.4" + why});
}

// Where the real one is: MONARCH_TEST_NCCL, else what python3 has.
std::string real_nccl() {
  if (const char* const said = ::getenv("MONARCH_TEST_NCCL")) return said;
  const std::string find =
      "import importlib.util, os\n"
      "found = importlib.util.find_spec('nvidia')\n"
      "for folder in found.submodule_search_locations if found else []:\n"
      "  file = os.path.join(folder, 'nccl/lib/libnccl.so.2')\n"
      "  if os.path.exists(file): print(file)\n";
  for (std::string& file : MemberProcess("python3", {"-c", find}, {}).all_lines()) return file;
  for (const char* const one : {"/usr/local/cuda/lib64/libnccl.so.2", "/usr/lib/x86_64-linux-gnu/libnccl.so.2"}) {
    if (::access(one, R_OK) == 0) return one;
  }
  return "";
}

TEST(NcclLoad, TheRealOneMakesAnIdAndSaysWhyItHasNoGpu) {
  const std::string file = real_nccl();
  if (file.empty()) GTEST_SKIP() << "no libnccl.so.2: MONARCH_TEST_NCCL names one";
  const auto lines = said_by({"alone"}, {{"LD_LIBRARY_PATH", ""}, {kNcclVariable, file}});
  ASSERT_EQ(lines.size(), 2U) << file;
  EXPECT_EQ(lines[0].substr(lines[0].find(':')), ": an id of 128 bytes") << lines[0];
  const std::string words = "group one: member 0 of 1, on GPU 0: ncclCommInitRankConfig: ";
  if (lines[1] == "joined") return;  // there is a GPU
  EXPECT_NE(lines[1].find(words), std::string::npos) << lines[1];
  EXPECT_GT(lines[1].size(), lines[1].find(words) + words.size()) << lines[1];
}

}  // namespace
}  // namespace monarch::tensor
