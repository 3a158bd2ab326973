#include "transport/process/cpu_affinity.h"

#include <sched.h>

#include <cstddef>
#include <memory>

namespace monarch {

namespace {

constexpr std::size_t kMostCpus = 1U << 16U;

// Of any size: cpu_set_t itself ends at 1,024 processors (CPU_SET(3)).
class CpuSet {
 public:
  CpuSet() : set_(CPU_ALLOC(kMostCpus), [](cpu_set_t* set) { CPU_FREE(set); }) { CPU_ZERO_S(size(), set_.get()); }
  static std::size_t size() { return CPU_ALLOC_SIZE(kMostCpus); }
  cpu_set_t* get() const { return set_.get(); }

 private:
  std::unique_ptr<cpu_set_t, void (*)(cpu_set_t*)> set_;
};

}  // namespace

std::vector<std::uint32_t> usable_cpus(pid_t thread) {
  const CpuSet set;
  std::vector<std::uint32_t> usable;
  if (::sched_getaffinity(thread, CpuSet::size(), set.get()) != 0) return usable;
  for (std::size_t cpu = 0; cpu < kMostCpus; ++cpu) {
    if (CPU_ISSET_S(cpu, CpuSet::size(), set.get())) usable.push_back(static_cast<std::uint32_t>(cpu));
  }
  return usable;
}

bool bind_to_cpus(const std::vector<std::uint32_t>& cpus, pid_t thread) {
  const CpuSet set;
  for (const std::uint32_t cpu : cpus) CPU_SET_S(cpu, CpuSet::size(), set.get());
  return ::sched_setaffinity(thread, CpuSet::size(), set.get()) == 0;
}

}  // namespace monarch
