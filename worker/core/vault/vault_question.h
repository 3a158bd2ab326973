#pragma once

// What a rank asks a vault, and the forms of its answers: lines of KEY=VALUE, and one object of JSON. Parsing is total:
// any bytes give a question or a sentence that says what is wrong with them.
//
// Thread: pure functions.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "transport/base/ids.h"
#include "transport/base/result.h"

namespace monarch {

enum class VaultAsks : std::uint8_t { kSave, kLoad };

struct VaultQuestion {
  VaultAsks kind = VaultAsks::kSave;
  std::string mesh = {};
  Rank rank = {};
  std::uint64_t generation = 0;  // of the checkpoint: with kSave that of who asks
  std::uint64_t step = 0;
  std::string digest = {};            // sha256 of the whole, 64 hex digits
  std::vector<HostId> hosts = {};     // kLoad: who has it
  std::vector<HostId> not_from = {};  // kLoad: whose copy was not good
  bool operator==(const VaultQuestion&) const = default;
};

inline constexpr std::size_t kVaultHolders = 16;  // hosts that a question may name

Result<VaultQuestion> parse_vault_question(std::string_view message);

// {"v":1,"ok":true,"hosts":[0,4]}, and where fewer hosts have it than should, "short" with the reasons.
std::string vault_saved(const std::vector<HostId>& hosts, std::string_view too_few);
// {"v":1,"ok":true,"host":4,"bytes":123}
std::string vault_found(HostId host, std::uint64_t bytes);
// {"v":1,"ok":false,"full":"…"}: `kind` is refused, full or missing.
std::string vault_denied(std::string_view kind, std::string_view why);
// {"v":1,"error":"…"}: it is no question.
std::string vault_error(std::string_view why);

}  // namespace monarch
