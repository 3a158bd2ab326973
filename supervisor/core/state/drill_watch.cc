#include "supervisor/core/state/drill_watch.h"

#include <algorithm>

namespace monarch {

namespace {

bool is_of(const StruckGang& struck, MeshId mesh, GangId gang) { return struck.mesh == mesh && struck.gang == gang; }

bool explains(const OpenFault& fault, MeshId mesh, GangId gang, Instant now) {
  return std::any_of(fault.gangs.begin(), fault.gangs.end(), [&](const StruckGang& struck) {
    return is_of(struck, mesh, gang) && (struck.failed || now < fault.until);
  });
}

bool is_over(const OpenFault& fault, Instant now) {
  const auto failed = [](const StruckGang& struck) { return struck.failed; };
  return now >= fault.until && std::none_of(fault.gangs.begin(), fault.gangs.end(), failed);
}

}  // namespace

std::vector<std::uint32_t> open_numbers(const DrillWatch& watch, Instant now) {
  std::vector<std::uint32_t> numbers;
  for (const OpenFault& fault : watch.open) {
    const bool failed =
        std::any_of(fault.gangs.begin(), fault.gangs.end(), [](const StruckGang& struck) { return struck.failed; });
    const bool acts = !fault.undone && !is_over(fault, now) && (fault.host || !fault.gangs.empty());
    if (fault.number != 0 && (failed || acts)) numbers.push_back(fault.number);
  }
  return numbers;
}

const OpenFault* explains_failure(const DrillWatch& watch, MeshId mesh, GangId gang, Instant now) {
  const auto found = std::find_if(watch.open.rbegin(), watch.open.rend(),
                                  [&](const OpenFault& fault) { return explains(fault, mesh, gang, now); });
  return found == watch.open.rend() ? nullptr : &*found;
}

const OpenFault* explains_loss(const DrillWatch& watch, HostId host, Instant now) {
  const auto found = std::find_if(watch.open.rbegin(), watch.open.rend(),
                                  [&](const OpenFault& fault) { return fault.host == host && now < fault.until; });
  return found == watch.open.rend() ? nullptr : &*found;
}

void note_failed(DrillWatch& watch, MeshId mesh, GangId gang, Instant now) {
  for (OpenFault& fault : watch.open) {
    if (!explains(fault, mesh, gang, now)) continue;
    for (StruckGang& struck : fault.gangs) struck.failed = struck.failed || is_of(struck, mesh, gang);
  }
}

void note_lost(DrillWatch& watch, HostId host, Instant now) {
  for (OpenFault& fault : watch.open) {
    if (fault.host == host && now < fault.until) fault.host.reset();
  }
}

void note_recovered(DrillWatch& watch, MeshId mesh, GangId gang) {
  for (OpenFault& fault : watch.open) {
    std::erase_if(fault.gangs, [&](const StruckGang& struck) { return is_of(struck, mesh, gang) && struck.failed; });
  }
}

void forget_over(DrillWatch& watch, Instant now) {
  std::erase_if(watch.open, [now](const OpenFault& fault) { return is_over(fault, now); });
}

}  // namespace monarch
