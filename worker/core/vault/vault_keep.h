#pragma once

// Which checkpoints a vault gives up: a function of what it holds and of what the supervisor said of their gangs.
//
// Of a gang are kept: the newest step that all its ranks have committed and, beside that and while there is room, the
// one before; the step that its present generation began with, until a later one is committed; and what the present
// generation has saved beyond and not passed. What an earlier generation saved beyond can never be committed (I20). Of
// a gang that is done, or was never heard of, nothing is kept.
//
// Thread: a pure function.

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "transport/messages/vault.h"

namespace monarch {

using VaultGangs = std::map<std::pair<MeshId, GangId>, VaultGang>;

// `held` is in order, and `gang_of` of each. Those to give up, in order.
struct HeldCheckpoint {
  VaultKey key;
  GangId gang;
  bool complete = false;  // one that is on its way counts for no other's end
};
enum class VaultRoom : std::uint8_t { kEnough, kNone };
std::vector<VaultKey> to_give_up(const std::vector<HeldCheckpoint>& held, const VaultGangs& gangs,
                                 VaultRoom room = VaultRoom::kEnough);

}  // namespace monarch
