// Slow: all threads of a rank on one of its processors, beside a process of ours that spins there.

#include <algorithm>
#include <charconv>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/process/cpu_affinity.h"
#include "transport/process/processor_times.h"
#include "transport/process/read_small.h"
#include "worker/core/strike_plan.h"
#include "worker/drill/effect.h"
#include "worker/drill/own_children.h"
#include "worker/drill/targets.h"

namespace monarch {

namespace {

constexpr Duration kWindow = Duration::seconds(1);
constexpr int kMostPasses = 20;  // over threads that begin others meanwhile

using Cpus = std::vector<std::uint32_t>;

std::vector<ProcessEntry> threads_of(const std::vector<ProcessEntry>& processes) {
  std::vector<ProcessEntry> threads;
  for (const ProcessEntry& process : processes) {
    for (const std::string& name : names_in(text("/proc/", process.pid, "/task"))) {
      pid_t thread = 0;
      (void)std::from_chars(name.data(), name.data() + name.size(), thread);
      const auto entry = read_process(thread);
      if (entry && !entry->dead()) threads.push_back(*entry);
    }
  }
  return threads;
}

using TimesByThread = std::map<std::pair<pid_t, unsigned long long>, ProcessorTimes>;

TimesByThread times_of(const std::vector<ProcessEntry>& threads) {
  TimesByThread times;
  for (const ProcessEntry& thread : threads) {
    if (const auto now = processor_times(thread.pid)) times[{thread.pid, thread.start}] = *now;
  }
  return times;
}

class Slow final : public Effect {
 public:
  Slow(std::vector<ProcessEntry> processes, Cpus usual) : processes_(std::move(processes)), usual_(std::move(usual)) {
    const auto drawn = static_cast<std::size_t>(processes_.front().pid) % usual_.size();  // neighbours get others
    cpu_ = {usual_[drawn]};
    for (const ProcessEntry& thread : threads_of(with_their_own(processes_))) {
      before_[{thread.pid, thread.start}] = usable_cpus(thread.pid);
    }
  }

  Status strike(Duration patience, StrikeSeen& seen) override {
    seen.struck_at = wall_now();
    if (!move_all([this](const ProcessEntry& thread) { return usable_cpus(thread.pid) == cpu_ ? Cpus() : cpu_; })) {
      return Error{ErrorCode::kTimeout, "its threads do not stay on one processor: somebody else moves them"};
    }
    MONARCH_TRY(spinner_.start(1, [this] {
      if (bind_to_cpus(cpu_)) spin();
    }));
    for (const ProcessEntry& process : processes_) seen.struck.push_back(process.pid);
    return see(patience);
  }

  Status give_back(Duration /*patience*/) override {
    spinner_.end();
    if (move_all([this](const ProcessEntry& thread) { return due_to(thread); })) return {};
    return Error{ErrorCode::kTimeout,
                 text("a thread of process ", processes_.front().pid, " has not the processors that it had")};
  }

  bool outlives_us() const override { return true; }

 private:
  // The processors that a thread is to have back; none where it was moved since, or had this one before. A thread that
  // began meanwhile gets those of the first one of its rank.
  Cpus due_to(const ProcessEntry& thread) const {
    if (usable_cpus(thread.pid) != cpu_) return {};
    const auto known = before_.find({thread.pid, thread.start});
    const Cpus& due = known == before_.end() ? usual_ : known->second;
    return due == cpu_ ? Cpus() : due;
  }

  // Also of a process that has lost its parents since.
  std::vector<ProcessEntry> threads_now() const {
    std::vector<ProcessEntry> threads = threads_of(with_their_own(processes_));
    for (const auto& [known, cpus] : before_) {
      const auto entry = read_process(known.first);
      if (entry && !entry->dead() && entry->start == known.second) threads.push_back(*entry);
    }
    return threads;
  }

  // Until nobody is left to be moved: what a thread begins has its processors.
  template <class Where>
  bool move_all(const Where& where) const {
    for (int pass = 0; pass < kMostPasses; ++pass) {
      bool moved = false;
      for (const ProcessEntry& thread : threads_now()) {
        const Cpus cpus = where(thread);
        if (cpus.empty()) continue;
        moved = true;
        (void)bind_to_cpus(cpus, thread.pid);  // it may have ended; looked at in the next pass
      }
      if (!moved) return true;
    }
    return false;
  }

  Status see(Duration patience) const {
    const Instant end = boot_now() + patience;
    CpuUse use;
    do {
      const auto before = times_of(threads_now());
      if (before.empty()) return Error{ErrorCode::kUnsupported, "the kernel does not tell how long its threads wait"};
      const Instant from = boot_now();
      (void)until([] { return false; }, std::min(kWindow, end - from));
      const auto after = times_of(threads_now());
      use = {.ran = {}, .waited = {}, .over = boot_now() - from};
      for (const auto& [thread, times] : after) {
        const auto known = before.find(thread);
        const ProcessorTimes old = known == before.end() ? ProcessorTimes{} : known->second;
        use.ran = use.ran + (times.ran - old.ran);
        use.waited = use.waited + (times.waited - old.waited);
      }
      if (is_slow(use) && spinner_.all_live()) return {};
    } while (boot_now() + kWindow <= end);
    const auto percent = [&](Duration part) {
      return part.count_nanoseconds() * 100 / std::max<std::int64_t>(use.over.count_nanoseconds(), 1);
    };
    return Error{ErrorCode::kTimeout, text("it is not slow: it had ", percent(use.ran), " % of processor ", cpu_[0],
                                           " and waited for ", percent(use.waited), " % of the time")};
  }

  std::vector<ProcessEntry> processes_;  // of the rank; what they start is looked for each time
  Cpus usual_;
  Cpus cpu_;
  std::map<std::pair<pid_t, unsigned long long>, Cpus> before_;
  OwnChildren spinner_;
};

}  // namespace

PlannedEffect plan_slow(const StrikeOrder& order) {
  MONARCH_ASSIGN(StrikeTargets targets, targets_of(order));
  Cpus usual = usable_cpus(targets.processes.front().pid);
  if (usual.empty()) return Error{ErrorCode::kNotFound, "it had ended before it was struck"};
  return std::unique_ptr<Effect>(std::make_unique<Slow>(std::move(targets.processes), std::move(usual)));
}

}  // namespace monarch
