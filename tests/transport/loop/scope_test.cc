#include "transport/loop/scope.h"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace monarch {
namespace {

struct Owner {
  Scope scope;
  int calls = 0;
};

TEST(Scope, CallsWhileItsOwnerIsThere) {
  Owner owner;
  const std::function<void(int, const std::string&)> later =
      owner.scope.guard([&owner](int many, const std::string& word) { owner.calls += many + (word == "x" ? 1 : 0); });
  later(2, "x");
  later(1, "y");
  EXPECT_EQ(owner.calls, 4);
}

TEST(Scope, CallsNothingOnceItsOwnerHasGone) {
  int calls = 0;
  std::optional<Owner> owner(std::in_place);
  const std::function<void()> later = owner->scope.guard([&calls] { ++calls; });
  owner.reset();
  later();
  EXPECT_EQ(calls, 0);
}

TEST(Scope, TellsWhoIsUnderWayThatItsOwnerHasGone) {
  std::optional<Owner> owner(std::in_place);
  const Scope::Watch here = owner->scope.watch();
  EXPECT_FALSE(here.gone());
  owner.reset();
  EXPECT_TRUE(here.gone());
}

TEST(Scope, HandsOnWhatCanOnlyBeMoved) {
  Owner owner;
  auto later = owner.scope.guard([&owner](std::unique_ptr<int> given) { owner.calls = *given; });
  later(std::make_unique<int>(7));
  EXPECT_EQ(owner.calls, 7);
}

}  // namespace
}  // namespace monarch
