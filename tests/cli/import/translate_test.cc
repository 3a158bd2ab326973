#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "cli/import/translation.h"
#include "transport/base/text.h"

namespace monarch {
namespace {

// Of a machine with 6 processors and so many GPUs, of which `visible_devices` is taken for their number.
std::string ranks_of(const std::string& line, std::uint32_t gpus) {
  const MachineCounts machine{.processors = 6, .gpus = [gpus](const std::optional<std::string>& visible_devices) {
                                return visible_devices ? static_cast<std::uint32_t>(visible_devices->size()) : gpus;
                              }};
  const TranslatedLine translated = translate_line(line, machine);
  if (const auto* refused = std::get_if<Complaint>(&translated)) return refused->message;
  const auto& t = std::get<Translation>(translated);
  const bool threads = std::any_of(t.defaults.begin(), t.defaults.end(),
                                   [](const DefaultVariable& own) { return own.name == "OMP_NUM_THREADS"; });
  return text(t.per_host, threads ? " with one thread" : "", t.notes.empty() ? "" : ": ", join(t.notes, " / "));
}

TEST(Translate, CountsWhatTorchrunWould) {
  EXPECT_EQ(ranks_of("torchrun --nproc-per-node cpu t.py", 2),
            "6 with one thread: --nproc-per-node cpu: always 6, which is how many processors this machine has");
  EXPECT_EQ(ranks_of("torchrun --nproc-per-node=gpu t.py", 2),
            "2 with one thread: --nproc-per-node gpu: always 2, which is how many GPUs this machine has");
  EXPECT_EQ(ranks_of("torchrun --nproc-per-node auto t.py", 1),
            "1: --nproc-per-node auto: always 1, which is how many GPUs this machine has");
  EXPECT_EQ(ranks_of("torchrun --nproc-per-node auto t.py", 0),
            "6 with one thread: --nproc-per-node auto: always 6, which is how many processors this machine has");
  EXPECT_EQ(ranks_of("torchrun --nproc-per-node gpu t.py", 0),
            "torchrun `--nproc-per-node gpu`: this machine has no GPU");
}

TEST(Translate, CountsTheGpusThatTheLineLeavesVisible) {
  EXPECT_EQ(ranks_of("CUDA_VISIBLE_DEVICES=0,1 torchrun --nproc-per-node gpu t.py", 8),
            "3 with one thread: --nproc-per-node gpu: always 3, which is how many GPUs this machine has");
}

}  // namespace
}  // namespace monarch
