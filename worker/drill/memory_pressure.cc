#include "worker/drill/memory_pressure.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/process/read_small.h"
#include "worker/core/strike_plan.h"
#include "worker/drill/own_children.h"
#include "worker/drill/shared_count.h"
#include "worker/drill/targets.h"

namespace monarch {

namespace {

constexpr std::string_view kKilledFirst = "1000";  // oom_score_adj, proc_pid_oom_score_adj(5)
constexpr std::size_t kLeastChunk = 1U << 20U;
constexpr std::size_t kMostChunk = 256U << 20U;
constexpr int kMemoryTickMilliseconds = 20;

std::optional<std::uint64_t> kibibytes_of(std::string_view lines, std::string_view name) {
  const std::size_t at = lines.find(name);
  if (at == std::string_view::npos) return std::nullopt;
  const std::size_t digit = lines.find_first_of("0123456789", at + name.size());
  if (digit == std::string_view::npos) return std::nullopt;
  std::uint64_t number = 0;
  (void)std::from_chars(lines.data() + digit, lines.data() + lines.size(), number);
  return number << 10U;
}

struct Chunk {
  void* address;
  std::size_t size;
};

std::optional<Chunk> take_chunk(std::size_t size) {
  void* const address = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return std::nullopt;
  (void)::madvise(address, size, MADV_HUGEPAGE);  // fewer faults, where there are any
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < size; at += page) static_cast<volatile char*>(address)[at] = 1;
  return Chunk{address, size};
}

// It is the first that a host without memory ends, or it takes none.
void take_until(std::uint64_t leave, const MemoryReading& reading, SharedCount& taken) {
  const UniqueFd score(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  const auto length = static_cast<ssize_t>(kKilledFirst.size());
  if (::write(score.get(), kKilledFirst.data(), kKilledFirst.size()) != length) return;
  std::vector<Chunk> chunks;
  for (;;) {
    const auto now = reading(taken.now());
    if (!now.ok()) return;
    if (now->available > leave && taken.now() < now->total) {
      const std::uint64_t more = now->available - leave;
      const std::size_t size = std::clamp<std::size_t>(more / 4, std::min<std::size_t>(more, kLeastChunk), kMostChunk);
      const auto chunk = take_chunk(size);
      if (!chunk) return;
      chunks.push_back(*chunk);
      taken.add(chunk->size);
      continue;
    }
    if (!memory_to_leave(now->available, now->total).ok() && !chunks.empty()) {
      taken.take(chunks.back().size);
      (void)::munmap(chunks.back().address, chunks.back().size);
      chunks.pop_back();
      continue;
    }
    (void)::poll(nullptr, 0, kMemoryTickMilliseconds);
  }
}

class MemoryPressure final : public Effect {
 public:
  MemoryPressure(std::uint64_t leave, MemoryReading reading, std::unique_ptr<SharedCount> taken)
      : leave_(leave), reading_(std::move(reading)), taken_(std::move(taken)) {}

  Status strike(Duration patience, StrikeSeen& seen) override {
    seen.struck_at = wall_now();
    MONARCH_TRY(taker_.start(1, [this] { take_until(leave_, reading_, *taken_); }));
    seen.struck = {taker_.pids().front()};
    std::uint64_t available = 0;
    const auto is_short = [&] {
      const auto now = reading_(taken_->now());
      available = now.ok() ? now->available : available;
      return now.ok() && now->available <= leave_;
    };
    if (until([&] { return is_short() || !taker_.all_live(); }, patience) && taker_.all_live()) return {};
    const std::string_view how = taker_.all_live() ? "" : "the process that took memory has ended: ";
    return Error{ErrorCode::kTimeout,
                 text(how, amount_text(available), " are available after ", amount_text(taken_->now()),
                      " were taken, and ", amount_text(leave_), " were to be left")};
  }
  Status give_back(Duration /*patience*/) override {
    taker_.end();
    return {};
  }

 private:
  std::uint64_t leave_;
  MemoryReading reading_;
  std::unique_ptr<SharedCount> taken_;
  OwnChildren taker_;
};

}  // namespace

Result<HostMemory> host_memory() {
  const std::string told = read_small("/proc/meminfo").value_or("");
  const auto total = kibibytes_of(told, "MemTotal:");
  const auto available = kibibytes_of(told, "MemAvailable:");
  if (!total || !available) return Error{ErrorCode::kUnsupported, "/proc/meminfo does not say what is available"};
  return HostMemory{.total = *total, .available = *available};
}

PlannedEffect plan_memory_pressure(std::uint64_t size, MemoryReading reading) {
  MONARCH_ASSIGN(const HostMemory now, reading(0));
  MONARCH_ASSIGN(const std::uint64_t leave, memory_to_leave(size, now.total));
  if (now.available <= leave) {
    return Error{ErrorCode::kInvalid, text("no more than ", amount_text(now.available), " are available already")};
  }
  MONARCH_ASSIGN(auto taken, SharedCount::create());
  return std::unique_ptr<Effect>(std::make_unique<MemoryPressure>(leave, std::move(reading), std::move(taken)));
}

PlannedEffect plan_memory_pressure(const StrikeOrder& order) {
  return plan_memory_pressure(order.size, [](std::uint64_t) { return host_memory(); });
}

}  // namespace monarch
