// What monarch-rank decides by itself: what it is to be, and who may wait for whom.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "worker/rank/call_messages.h"
#include "worker/rank/rank_manifest.h"

namespace monarch {
namespace {

TEST(RankManifest, GivesActorsTheirArgsAsMessagePack) {
  const auto manifest =
      parse_rank_manifest(R"({"dims":{"host":2,"gpu":4},"actors":{"p":{"plugin":"p.so","sha256":"aa","class":"P",)"
                          R"("args":{"lr":0.1,"n":-3,"s":"3","l":[true,1]}},"q":{"plugin":"/q.so","class":"Q"}}})");
  ASSERT_TRUE(manifest.ok()) << manifest.error().message;
  EXPECT_EQ(manifest->dims, (std::vector<std::pair<std::string, std::uint32_t>>{{"host", 2}, {"gpu", 4}}));
  ASSERT_EQ(manifest->actors.size(), 2U);
  EXPECT_FALSE(manifest->controller);
  EXPECT_EQ(manifest->actors[0].sha256, "aa");
  EXPECT_EQ(manifest->actors[1].entry, "Q");
  EXPECT_TRUE(manifest->actors[1].args.empty());
  using namespace std::string_literals;
  EXPECT_EQ(manifest->actors[0].args,
            "\x84\xa2lr\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a\xa1n\xfd\xa1s\xa1\x33\xa1l\x92\xc3\x01"s);
}

TEST(RankManifest, SaysWhatIsWrong) {
  for (const char* wrong : {"", "[]", "{}", R"({"actors":[]})", R"({"actors":{"p":{"plugin":"p.so"}}})",
                            R"({"controller":{"entry":"drive"}})", R"({"dims":{"x":0},"actors":{}})"}) {
    const auto manifest = parse_rank_manifest(wrong);
    ASSERT_FALSE(manifest.ok()) << wrong;
    EXPECT_TRUE(manifest.error().message.starts_with("MONARCH_ACTORS")) << manifest.error().message;
  }
}

TEST(Deadlines, AreNoneWhereTheyHaveNoEnd) {
  const Instant now = Instant() + Duration::seconds(10);
  EXPECT_EQ(deadline_after(0, now), std::nullopt);
  EXPECT_EQ(deadline_after(1, now), now + Duration::nanoseconds(1));
  EXPECT_EQ(deadline_after(std::numeric_limits<std::int64_t>::max(), now), std::nullopt);
  EXPECT_EQ(deadline_after(std::numeric_limits<std::int64_t>::max() - 1, now), std::nullopt);
}

TEST(Arguments, OfAPluginOfBeforeAreInOne) {
  monarch_call_v1 call{};
  const monarch_bytes_v1 pieces[] = {{"one", 3}, {"two", 3}};
  call.arguments = {"whole", 5};
  call.pieces = pieces;  // what lies behind its struct is something else
  call.piece_count = 2;
  call.struct_size = offsetof(monarch_call_v1, pieces);
  EXPECT_EQ(arguments_of(call).joined(), "whole");
  call.struct_size = sizeof call;
  EXPECT_EQ(arguments_of(call).joined(), "onetwo");
  call.piece_count = 0;
  EXPECT_EQ(arguments_of(call).joined(), "whole");
}

TEST(RankPlace, IsInItsEnvironment) {
  std::map<std::string, std::string> environment = {{"MONARCH_MESH", "t"},
                                                    {"MONARCH_RANK", "3"},
                                                    {"MONARCH_GENERATION", "2"},
                                                    {"MONARCH_HOST", "v1"},
                                                    {"MONARCH_POST", "/run/post"}};
  const auto get = [&](const char* name) -> const char* {
    const auto found = environment.find(name);
    return found == environment.end() ? nullptr : found->second.c_str();
  };
  const auto place = read_place(get);
  ASSERT_TRUE(place.ok());
  EXPECT_EQ(place->name(), "t/3");
  EXPECT_EQ(place->generation, 2U);
  EXPECT_EQ(place->restart_cause, "");
  EXPECT_EQ(place->sockets, "");
  environment["MONARCH_SOCKET"] = "/run/w-12345678-0/1.3.s";
  EXPECT_EQ(read_place(get)->sockets, "/run/w-12345678-0/1.3.");
  environment["MONARCH_RESTART_CAUSE"] = "t/3 on v1 (pid 7): killed by SIGKILL";
  EXPECT_EQ(read_place(get)->restart_cause, "t/3 on v1 (pid 7): killed by SIGKILL");
  environment["MONARCH_RANK"] = "3x";
  EXPECT_FALSE(read_place(get).ok());
  environment.erase("MONARCH_RANK");
  EXPECT_EQ(read_place(get).error().message, "MONARCH_RANK is not set: `monarch run` starts this program");
}

}  // namespace
}  // namespace monarch
