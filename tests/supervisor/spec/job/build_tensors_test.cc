// Which ways tensors may take, and what follows from their being asked for.

#include <gtest/gtest.h>

#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

SpecOutcome load(std::string_view top_lines) {
  return load_spec({.name = "spec.yaml", .text = around_top(top_lines), .directory = "/"}, {});
}

JobSpec job(std::string_view top_lines) {
  SpecOutcome outcome = load(top_lines);
  EXPECT_TRUE(outcome.loaded) << render(outcome);
  return outcome.loaded ? std::move(outcome.loaded->spec) : JobSpec{};
}

TEST(Tensors, TakeAllWaysUnlessSomeAreNamed) {
  EXPECT_EQ(job("").tensors, std::nullopt);
  EXPECT_EQ(job("tensors: {}\n").tensors, (TensorSpec{.shm = true, .verbs = true, .tcp = true}));
  EXPECT_EQ(job("tensors: {transports: [tcp]}\n").tensors, (TensorSpec{.shm = false, .verbs = false, .tcp = true}));
  EXPECT_EQ(job("tensors: {transports: [tcp, shm]}\n").tensors, (TensorSpec{.shm = true, .verbs = false, .tcp = true}));
  EXPECT_EQ(job("tensors: {pin: false}\n").tensors, (TensorSpec{.pin = false}));
  EXPECT_EQ(job("tensors: {transports: [verbs]}\n").tensors, (TensorSpec{.shm = false, .verbs = true, .tcp = false}));
  EXPECT_EQ(ids_and_places(load("tensors: {transports: [rdma]}\n")), std::vector<std::string>{"E0205 3:24"});
  EXPECT_FALSE(load("tensors: {transports: []}\n").loaded);
}

TEST(Tensors, NeedPostsAsCallsDo) {
  EXPECT_FALSE(job("").calls);
  EXPECT_TRUE(job("tensors: {}\n").calls);
}

}  // namespace
}  // namespace monarch
