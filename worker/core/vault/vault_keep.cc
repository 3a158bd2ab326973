#include "worker/core/vault/vault_keep.h"

#include <algorithm>
#include <optional>

namespace monarch {

namespace {

using Held = std::vector<HeldCheckpoint>::const_iterator;

// The highest step below the newest committed one that this rank has whole here. Where the newest is not, this host is
// no holder any more, or not yet: what it has of before is nobody's to go on from.
std::optional<std::uint64_t> one_before(Held first, Held last, std::uint64_t committed) {
  std::optional<std::uint64_t> found;
  bool newest = false;
  for (Held held = first; held != last; ++held) {
    if (!held->complete) continue;
    newest = newest || held->key.step == committed;
    if (held->key.step < committed) found = std::max(found.value_or(0), held->key.step);
  }
  return newest ? found : std::nullopt;
}

// A rank of the present generation may still be about to load that.
bool is_resumed(std::uint64_t step, const VaultGang& gang) {
  return gang.resumed == step && (!gang.committed || *gang.committed <= step);
}

bool is_kept(const VaultKey& key, const VaultGang& gang, std::optional<std::uint64_t> before) {
  if (is_resumed(key.step, gang) || before == key.step) return true;
  if (gang.committed && key.step <= *gang.committed) return key.step == *gang.committed;
  if (key.generation == gang.generation && gang.passed && key.step < *gang.passed) return false;
  return key.generation >= gang.generation;
}

}  // namespace

std::vector<VaultKey> to_give_up(const std::vector<HeldCheckpoint>& held, const VaultGangs& gangs, VaultRoom room) {
  std::vector<VaultKey> out;
  for (Held first = held.begin(); first != held.end();) {
    const Held last =
        std::find_if(first, held.end(), [&](const HeldCheckpoint& one) { return one.key.rank != first->key.rank; });
    const auto gang = gangs.find({first->key.rank.mesh, first->gang});
    std::optional<std::uint64_t> before;
    if (room == VaultRoom::kEnough && gang != gangs.end() && gang->second.committed) {
      before = one_before(first, last, *gang->second.committed);
    }
    for (Held one = first; one != last; ++one) {
      if (gang == gangs.end() || !is_kept(one->key, gang->second, before)) out.push_back(one->key);
    }
    first = last;
  }
  return out;
}

}  // namespace monarch
