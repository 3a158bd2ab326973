#include "worker/errand/fault_rights.h"

#include <linux/capability.h>

#include <array>
#include <charconv>
#include <fstream>

#include "transport/base/text.h"
#include "transport/process/read_small.h"
#include "transport/process/run_program.h"

namespace monarch {

namespace {

constexpr std::array kNft = {"/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"};  // a login's PATH may lack these folders
constexpr Duration kPatience = Duration::seconds(3);

// proc(5): CapEff.
bool has_capability(unsigned number) {
  std::ifstream status("/proc/self/status");
  constexpr std::string_view kKey = "CapEff:\t";
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with(kKey)) continue;
    std::uint64_t mask = 0;
    const auto [end, error] = std::from_chars(line.data() + kKey.size(), line.data() + line.size(), mask, 16);
    return error == std::errc() && ((mask >> number) & 1U) != 0;
  }
  return false;
}

}  // namespace

std::vector<std::string> drill_tables(std::string_view listing) {
  std::vector<std::string> tables;
  while (!listing.empty()) {
    const std::string_view line = listing.substr(0, listing.find('\n'));
    listing.remove_prefix(std::min(line.size() + 1, listing.size()));
    const std::string_view name = line.substr(line.rfind(' ') + 1);  // npos + 1 is 0
    if (name.starts_with(kStrikeTables)) tables.emplace_back(name);
  }
  return tables;
}

// WARNING: nft(8) asks the kernel for no table at all without CAP_NET_ADMIN in the network that it is in; so whoever
// may list them may make one.
FaultRights fault_rights() {
  FaultRights rights{.no_nft_because = "there is no nft (nftables)",
                     .tables = {},
                     .ptrace_scope = read_number("/proc/sys/kernel/yama/ptrace_scope"),
                     .traces_all = has_capability(CAP_SYS_PTRACE)};
  for (const char* nft : kNft) {
    const auto listed = run_program({nft, "list", "tables"}, {.deadline = kPatience});
    if (!listed.ok() && listed.error().code == ErrorCode::kNotFound) continue;
    if (listed.ok()) rights.tables = drill_tables(*listed);
    rights.no_nft_because = listed.ok() ? "" : listed.error().message;
    break;
  }
  return rights;
}

}  // namespace monarch
