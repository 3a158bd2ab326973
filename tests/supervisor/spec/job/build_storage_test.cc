#include "supervisor/spec/job/build_storage.h"

#include <gtest/gtest.h>

#include "tests/supervisor/spec/spec_text.h"

namespace monarch {
namespace {

TEST(Storage, IsAListOfFoldersThatMayBeShared) {
  const SpecOutcome outcome = load_text(around_top("storage: [{path: /data/ckpt, shared: true}, {path: /scratch}]\n"));
  ASSERT_TRUE(outcome.loaded);
  EXPECT_EQ(outcome.loaded->spec.storage,
            (std::vector<StorageSpec>{{.path = "/data/ckpt", .shared = true}, {.path = "/scratch"}}));
  EXPECT_EQ(ids(load_text(around_top("storage: [{shared: true}]\n"))).size(), 1U);
}

}  // namespace
}  // namespace monarch
