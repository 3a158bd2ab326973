#include "supervisor/drill/core/needs.h"

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

}  // namespace monarch::drill
