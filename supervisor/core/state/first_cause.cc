#include "supervisor/core/state/first_cause.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <tuple>

#include "transport/base/exit_code.h"

namespace monarch {

namespace {

// Lower comes first.
int urgency(const RankEnd& end) {
  return end.kind == EndKind::kNotExecuted || end.kind == EndKind::kSetupFailed || end.out_of_memory ? 0 : 1;
}

// Whoever loses a peer exits or aborts: such an end may be an answer to another, a crash or a kill is none.
int class_order(const RankEnd& end) {
  const bool answers = end.value == SIGABRT || end.value == SIGPIPE || end.value == SIGTERM;
  return end.kind == EndKind::kSignaled && !answers ? 0 : 1;
}

// Those that may have been the first to end, as far as clocks tell.
std::vector<std::size_t> may_be_first(const std::vector<EndedRank>& ends) {
  std::vector<std::size_t> candidates;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    if (is_failure(ends[i].end) && !ends[i].end.after_our_signal) candidates.push_back(i);
  }
  if (candidates.empty()) return candidates;

  const auto urgent = std::min_element(candidates.begin(), candidates.end(), [&](std::size_t a, std::size_t b) {
    return urgency(ends[a].end) < urgency(ends[b].end);
  });
  const int wanted = urgency(ends[*urgent].end);
  std::erase_if(candidates, [&](std::size_t i) { return urgency(ends[i].end) != wanted; });

  const auto earliest = *std::min_element(candidates.begin(), candidates.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(ends[a].ended_at, ends[a].process.rank) < std::pair(ends[b].ended_at, ends[b].process.rank);
  });
  // On one host the order is exact: its keeper's clock is one, and only what was ending already when it looked has one
  // time. Comparing each with the earliest, and not pair by pair, keeps the order total: "may be the same moment" is
  // not transitive.
  std::erase_if(candidates, [&](std::size_t i) {
    const EndedRank& first = ends[earliest];
    const Duration doubt = ends[i].host == first.host ? Duration::zero() : ends[i].uncertainty + first.uncertainty;
    return ends[i].ended_at - first.ended_at > doubt;
  });
  return candidates;
}

}  // namespace

bool is_failure(const RankEnd& end) {
  switch (end.kind) {
    case EndKind::kNone: return false;
    case EndKind::kExited: return end.value != 0;
    case EndKind::kSignaled:
    case EndKind::kNotExecuted:
    case EndKind::kSetupFailed: return true;
  }
  return true;
}

bool is_lack_of_host(const RankEnd& end) {
  if (end.kind != EndKind::kNotExecuted) return false;
  const auto lacks = {ENFILE, ENOSPC, EDQUOT, EIO, ENOMEM};
  return std::find(lacks.begin(), lacks.end(), end.value) != lacks.end();
}

std::optional<std::size_t> first_cause(const std::vector<EndedRank>& ends) {
  const std::optional<std::size_t> exit = first_to_exit(ends);
  if (!exit || urgency(ends[*exit].end) == 0) return exit;
  const auto earliest = std::min_element(ends.begin(), ends.end(), [](const EndedRank& a, const EndedRank& b) {
    return std::pair(a.evidence_at, a.process.rank) < std::pair(b.evidence_at, b.process.rank);
  });
  const EndedRank& other = ends[*exit];
  if (earliest->evidence_at == Instant::never()) return exit;
  // On one host one clock tells both.
  const Duration doubt = earliest->host == other.host ? Duration::zero() : earliest->uncertainty + other.uncertainty;
  const bool before = earliest->evidence_at + doubt < std::min(other.evidence_at, other.ended_at);
  return before ? static_cast<std::size_t>(earliest - ends.begin()) : *exit;
}

std::optional<std::size_t> first_to_exit(const std::vector<EndedRank>& ends) {
  const std::vector<std::size_t> candidates = may_be_first(ends);
  if (candidates.empty()) return std::nullopt;
  return *std::min_element(candidates.begin(), candidates.end(), [&](std::size_t a, std::size_t b) {
    const auto key = [&](std::size_t i) {
      return std::tuple(class_order(ends[i].end), ends[i].ended_at, ends[i].process.rank);
    };
    return key(a) < key(b);
  });
}

std::vector<std::size_t> as_early_as(std::size_t first, const std::vector<EndedRank>& ends) {
  if (first_to_exit(ends) != first) return {};
  std::vector<std::size_t> candidates = may_be_first(ends);
  std::erase(candidates, first);
  std::sort(candidates.begin(), candidates.end(),
            [&](std::size_t a, std::size_t b) { return ends[a].process.rank < ends[b].process.rank; });
  return candidates;
}

int exit_code_of(const RankEnd& end) {
  switch (end.kind) {
    case EndKind::kNone: return kExitInternal;
    case EndKind::kExited:
    case EndKind::kSetupFailed: return end.value;
    case EndKind::kSignaled: return kExitSignalBase + end.value;
    case EndKind::kNotExecuted:
      return is_lack_of_host(end) ? kExitLost : end.value == ENOENT ? kExitNotFound : kExitNotExecutable;
  }
  return kExitInternal;
}

}  // namespace monarch
