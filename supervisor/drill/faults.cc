#include "supervisor/drill/faults.h"

#include <algorithm>
#include <array>

namespace monarch::drill {

namespace {

constexpr std::array kFaults = {
    Fault{.name = "kill", .id = "P01", .what = StrikeWhat::kKill, .whom = StrikeWhom::kRank},
    Fault{.name = "segv", .id = "P02", .what = StrikeWhat::kSegv, .whom = StrikeWhom::kRank},
    Fault{.name = "abort", .id = "P03", .what = StrikeWhat::kAbort, .whom = StrikeWhom::kRank},
    Fault{.name = "term", .id = "P14", .what = StrikeWhat::kTerm, .whom = StrikeWhom::kRank},
    Fault{.name = "no-memory", .id = "P11", .what = StrikeWhat::kNoMemory, .whom = StrikeWhom::kRank, .lasts = true},
    Fault{.name = "no-files", .id = "P18", .what = StrikeWhat::kNoFiles, .whom = StrikeWhom::kRank, .lasts = true},
    Fault{.name = "hang", .id = "P06", .what = StrikeWhat::kStop, .whom = StrikeWhom::kRank, .lasts = true},
    Fault{.name = "power-loss", .id = "H01", .what = StrikeWhat::kKill, .whom = StrikeWhom::kHost},
    Fault{.name = "freeze", .id = "H02", .what = StrikeWhat::kStop, .whom = StrikeWhom::kHost, .lasts = true},
    Fault{.name = "daemon-kill", .id = "H05", .what = StrikeWhat::kKill, .whom = StrikeWhom::kDaemon},
    Fault{.name = "keeper-kill", .id = "H05", .what = StrikeWhat::kKill, .whom = StrikeWhom::kKeeper},
    Fault{.name = "worker-kill", .id = "H05", .what = StrikeWhat::kKill, .whom = StrikeWhom::kWorker},
    Fault{.name = "daemon-hang", .id = "H06", .what = StrikeWhat::kStop, .whom = StrikeWhom::kDaemon, .lasts = true},
    Fault{.name = "worker-hang", .id = "H06", .what = StrikeWhat::kStop, .whom = StrikeWhom::kWorker, .lasts = true},
    Fault{.name = "overload", .id = "H07", .what = StrikeWhat::kBusy, .whom = StrikeWhom::kHost, .lasts = true},
    Fault{.name = "cut", .id = "N01", .what = StrikeWhat::kCut, .lasts = true},
    Fault{.name = "cut-out", .id = "N02", .what = StrikeWhat::kCut, .way = StrikeWay::kOut, .lasts = true},
    Fault{.name = "cut-in", .id = "N03", .what = StrikeWhat::kCut, .way = StrikeWay::kIn, .lasts = true},
};

}  // namespace

std::span<const Fault> faults() { return kFaults; }

const Fault* find_fault(std::string_view name) {
  const auto* const found =
      std::find_if(kFaults.begin(), kFaults.end(), [&](const Fault& f) { return f.name == name; });
  return found == kFaults.end() ? nullptr : found;
}

}  // namespace monarch::drill
