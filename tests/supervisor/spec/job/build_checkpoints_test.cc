#include "supervisor/spec/job/build_checkpoints.h"

#include <gtest/gtest.h>

#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

// Two gangs, each on hosts of its own.
SpecOutcome two_gangs(std::string_view checkpoints, std::string_view launch = "") {
  return load_text(
      around_mesh("    dims: {replica: 2, host: 2, gpu: 4}\n    per_host: [gpu]\n    gang: replica\n"
                  "    program: [/bin/true]\n",
                  text("checkpoints: ", checkpoints, "\n", launch)));
}

TEST(Checkpoints, SayHowManyCopiesThereAreAndHowMuchMemoryTheyMayTake) {
  const SpecOutcome outcome = two_gangs("{peer: 2, memory: 8GiB}");
  ASSERT_TRUE(outcome.loaded);
  EXPECT_EQ(outcome.loaded->spec.checkpoints, (CheckpointSpec{.peer = 2, .memory = 8ULL << 30U}));
  EXPECT_EQ(load_text(around_top("")).loaded->spec.checkpoints, CheckpointSpec{});
  for (const char* nothing : {"{}", "{peer: 0, memory: 0B}", "{memory: 0B}"}) {
    EXPECT_TRUE(two_gangs(nothing).loaded) << nothing;
  }
}

TEST(Checkpoints, NeedAsManyHostsOutsideOfAGang) {
  EXPECT_EQ(ids(two_gangs("{peer: 3, memory: 8GiB}")), std::vector<std::string>{"E0331"});
  EXPECT_TRUE(two_gangs("{peer: 3, memory: 8GiB}", "launch: {local: {spares: 1}}\n").loaded);
  // Hosts of the pool that are not kept connected keep nothing.
  EXPECT_EQ(ids(two_gangs("{peer: 3, memory: 8GiB}", "launch: {local: {hosts: 6}}\n")),
            std::vector<std::string>{"E0331"});
  EXPECT_EQ(ids(two_gangs("{peer: 9, memory: 8GiB}", "launch: {local: {spares: 9}}\n")),
            std::vector<std::string>{"E0206"});
}

TEST(Checkpoints, OfAnotherMeshMayBeKeptWhereASidecarsRanksAre) {
  const auto with = [](std::string_view sidecar) {
    return load_text(text("version: 1\njob: j\ncheckpoints: {peer: 1, memory: 1GiB}\nmeshes:\n",
                          "  wide:\n    dims: {host: 2}\n    program: [/bin/true]\n    sidecar: ", sidecar, "\n",
                          "  m:\n    dims: {slot: 1}\n    hosts: {like: wide}\n    program: [/bin/true]\n"));
  };
  EXPECT_TRUE(with("true").loaded);
  EXPECT_EQ(ids(with("false")), std::vector<std::string>{"E0331"});
}

TEST(Checkpoints, NeedCopiesAndMemory) {
  for (const char* half : {"{peer: 1}", "{peer: 1, memory: 0B}", "{memory: 1GiB}", "{peer: 0, memory: 1GiB}"}) {
    EXPECT_EQ(ids(two_gangs(half)), std::vector<std::string>{"E0332"}) << half;
  }
}

}  // namespace
}  // namespace monarch
