#include "supervisor/drill/core/needs.h"

#include <algorithm>
#include <utility>

#include "supervisor/core/spec/hostlist.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

// Yama's words, of admin-guide/LSM/Yama.rst.
constexpr std::uint64_t kFreely = 0;
constexpr std::uint64_t kWhomOneLets = 1;

std::string why_untraced(const FaultRights& there, RanksTraced ranks) {
  const std::uint64_t scope = there.ptrace_scope.value_or(kFreely);
  if (there.traces_all || scope == kFreely || (scope == kWhomOneLets && ranks == RanksTraced::kByAnybody)) return "";
  const std::string_view who = scope == kWhomOneLets
                                   ? "only ranks of a job that says `drills: {allow: true}` are traced"
                                   : "only root traces processes";
  return text(who, " there (kernel.yama.ptrace_scope is ", scope, ")");
}

}  // namespace

std::string unmet_need(FaultNeed need, const FaultRights& there, RanksTraced ranks) {
  switch (need) {
    case FaultNeed::kNothing: return "";
    case FaultNeed::kTracing: return why_untraced(there, ranks);
    case FaultNeed::kNft: return printable(there.no_nft_because);
  }
  return "";
}

WhereHad where_had(const Fault& fault, const std::vector<HostRights>& hosts, RanksTraced ranks) {
  WhereHad had;
  std::vector<std::pair<std::string, std::vector<std::string>>> reasons;  // and whose they are
  for (const HostRights& host : hosts) {
    std::string why = host.error.empty() ? unmet_need(fault.need, host.rights, ranks) : printable(host.error);
    if (fault.whom == StrikeWhom::kSupervisor) why.clear();
    if (why.empty()) {
      ++had.hosts;
      continue;
    }
    auto known = std::find_if(reasons.begin(), reasons.end(), [&](const auto& reason) { return reason.first == why; });
    if (known == reasons.end()) known = reasons.insert(known, {std::move(why), {}});
    known->second.push_back(host.host);
  }
  std::vector<std::string> words;
  for (const auto& [why, whose] : reasons) words.push_back(text(fold_hostlist(whose), ": ", why));
  had.why_not = join(words, "; ");
  return had;
}

}  // namespace monarch::drill
