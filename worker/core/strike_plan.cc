#include "worker/core/strike_plan.h"

#include <algorithm>
#include <charconv>
#include <csignal>

#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr double kSlowShare = 0.7;
constexpr double kWantsMore = 0.1;
constexpr std::uint64_t kLeastPercentLeft = 5;

int signal_of(StrikeWhat what) {
  switch (what) {
    case StrikeWhat::kKill: return SIGKILL;
    case StrikeWhat::kSegv: return SIGSEGV;
    case StrikeWhat::kAbort: return SIGABRT;
    case StrikeWhat::kStop: return SIGSTOP;
    case StrikeWhat::kTerm: return SIGTERM;
    case StrikeWhat::kNoFiles:
    case StrikeWhat::kNoMemory:
    case StrikeWhat::kSlow:
    case StrikeWhat::kFlood:
    case StrikeWhat::kReset:
    case StrikeWhat::kMemoryPressure:
    case StrikeWhat::kBusy:
    case StrikeWhat::kCut: return 0;
  }
  return 0;
}

bool is_meant(const StrikeOrder& order, const StrikeCandidate& one) {
  switch (order.whom) {
    case StrikeWhom::kRank: return one.role == StrikeRole::kRank && one.mesh == order.mesh && one.rank == order.rank;
    case StrikeWhom::kDaemon: return one.role == StrikeRole::kDaemon;
    case StrikeWhom::kKeeper: return one.role == StrikeRole::kKeeper;
    case StrikeWhom::kWorker: return one.role == StrikeRole::kDaemon || one.role == StrikeRole::kKeeper;
    case StrikeWhom::kHost: return true;
    case StrikeWhom::kSupervisor: return one.role == StrikeRole::kSupervisor;
  }
  return false;
}

std::string name_of(const StrikeOrder& order) {
  switch (order.whom) {
    case StrikeWhom::kRank: return text("process of rank ", order.mesh, "/", order.rank);
    case StrikeWhom::kDaemon: return "daemon";
    case StrikeWhom::kKeeper: return "keeper";
    case StrikeWhom::kWorker: return "worker";
    case StrikeWhom::kHost: return "process";
    case StrikeWhom::kSupervisor: return "supervisor";
  }
  return "";
}

// An address of one of the two families, and nothing that nft could take for more.
bool is_numeric(const std::string& address) {
  return address.find_first_not_of("0123456789abcdef.:") == std::string::npos;
}

}  // namespace

void tell_ranks_apart(std::vector<StrikeCandidate>& there) {
  const auto is_left_by = [](const StrikeCandidate& one, const StrikeCandidate& other) {
    const bool of_one = one.mesh == other.mesh && one.rank == other.rank && one.generation == other.generation;
    return of_one && other.role == StrikeRole::kRank && other.leads_session && other.born < one.born;
  };
  const std::vector<StrikeCandidate> all = there;
  for (StrikeCandidate& one : there) {
    if (one.role != StrikeRole::kRank) continue;
    const bool is_left = std::any_of(all.begin(), all.end(), [&](const auto& other) { return is_left_by(one, other); });
    if (!one.leads_session || is_left) one.role = StrikeRole::kOther;
  }
}

Result<std::vector<Blow>> plan_strike(const StrikeOrder& order, const std::vector<StrikeCandidate>& there) {
  const int signal = signal_of(order.what);
  const bool of_ranks = order.what == StrikeWhat::kSegv || order.what == StrikeWhat::kAbort;
  const bool of_nobody =
      order.what == StrikeWhat::kBusy || order.what == StrikeWhat::kCut || order.what == StrikeWhat::kMemoryPressure;
  if (of_nobody) return Error{ErrorCode::kInvalid, "this strike hits no process"};
  if (of_ranks && order.whom != StrikeWhom::kRank) {
    return Error{ErrorCode::kInvalid, "SEGV and ABRT are for a rank: nothing else dies of its own doing"};
  }
  if (order.whom == StrikeWhom::kSupervisor && order.what != StrikeWhat::kKill && order.what != StrikeWhat::kStop) {
    return Error{ErrorCode::kInvalid, "a supervisor is killed or stopped, and nothing else is done to it"};
  }
  std::vector<StrikeCandidate> meant;
  std::copy_if(there.begin(), there.end(), std::back_inserter(meant),
               [&](const StrikeCandidate& one) { return is_meant(order, one); });
  if (meant.empty()) return Error{ErrorCode::kNotFound, text("no ", name_of(order), " of the job is on this host")};
  std::stable_sort(meant.begin(), meant.end(),
                   [](const StrikeCandidate& a, const StrikeCandidate& b) { return a.role < b.role; });
  std::vector<Blow> blows;
  blows.reserve(meant.size());
  for (const StrikeCandidate& one : meant) blows.push_back({.pid = one.pid, .signal = signal});
  return blows;
}

std::string tracing_refused(std::optional<std::uint64_t> ptrace_scope) {
  if (ptrace_scope.value_or(0) > 0) return text("refused by Yama (ptrace_scope ", *ptrace_scope, ")");
  return "refused by the kernel: it lets no other process of this user trace it";
}

Result<std::uint64_t> memory_to_leave(std::uint64_t size, std::uint64_t total) {
  const std::uint64_t least = total / 100 * kLeastPercentLeft;
  if (size >= least) return size;
  return Error{ErrorCode::kInvalid, text(amount_text(size), " are too little to leave: a host of ", amount_text(total),
                                         " needs ", amount_text(least), ", which is 5 %")};
}

bool is_slow(const CpuUse& use) {
  const double over = use.over.count_seconds();
  return use.ran.count_seconds() <= kSlowShare * over && use.waited.count_seconds() >= kWantsMore * over;
}

std::uint64_t packets_counted(std::string_view listing) {
  constexpr std::string_view kCounted = "counter packets ";
  std::uint64_t all = 0;
  for (std::size_t at = 0; (at = listing.find(kCounted, at)) != std::string_view::npos;) {
    at += kCounted.size();
    std::uint64_t counted = 0;
    (void)std::from_chars(listing.data() + at, listing.data() + listing.size(), counted);  // no number: none
    all += counted;
  }
  return all;
}

Result<std::string> cut_script(const StrikeOrder& order, const std::string& table) {
  if (order.what != StrikeWhat::kCut) return Error{ErrorCode::kInvalid, "this strike cuts nothing"};
  if (!is_numeric(order.address)) return Error{ErrorCode::kInvalid, "what is cut is named by a numeric address"};
  if (order.ports.empty()) return Error{ErrorCode::kInvalid, "what is cut is named by ports, or SSH would be cut, too"};
  if (order.percent == 0 || order.percent > 100) return Error{ErrorCode::kInvalid, "1 to 100 percent can be cut"};
  std::vector<std::string> ports;
  for (const std::uint16_t port : order.ports) ports.push_back(text(port));
  const std::string family = order.address.find(':') == std::string::npos ? "ip " : "ip6 ";
  // Counted before it is drawn, so that a small loss is seen to be there before its first packet is lost.
  const std::string some = order.percent == 100 ? "" : text(" numgen random mod 100 < ", order.percent);
  const auto chain = [&](const char* hook, const char* address, const char* port) {
    const std::string whose = order.address.empty() ? "" : text(family, address, " ", order.address, " ");
    return text("  chain ", hook, " {\n    type filter hook ", hook, " priority -300; policy accept;\n    ", whose,
                "tcp ", port, " { ", join(ports, ", "), " } counter", some, " drop\n  }\n");
  };
  std::string script = text("table inet ", table, " {\n");
  if (order.way != StrikeWay::kOut) script += chain("input", "saddr", "sport");
  if (order.way != StrikeWay::kIn) script += chain("output", "daddr", "dport");
  return script + "}\n";
}

}  // namespace monarch
