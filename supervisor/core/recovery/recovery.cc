#include "supervisor/core/recovery/recovery.h"

#include <algorithm>

#include "supervisor/core/recovery/restart_budget.h"
#include "supervisor/core/state/first_cause.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::uint32_t kMostCrashesAtStep = 3;

Recovery fail(std::string rule) { return {.remedy = Remedy::kFail, .wait = {}, .rule = std::move(rule)}; }

// Nobody wants another try of these.
std::optional<Recovery> hopeless(const Supervision& policy, const FailureFacts& facts) {
  if (facts.kind != FailureKind::kRank) return std::nullopt;
  const RankEnd& end = facts.end;
  if (end.kind == EndKind::kNotExecuted && !is_lack_of_host(end)) return fail("exec error: fail, no retry");
  if (end.kind == EndKind::kSetupFailed) return fail("setup failed: fail, no retry");
  const auto& fatal = policy.fatal_exit_codes;
  if (end.kind == EndKind::kExited && std::find(fatal.begin(), fatal.end(), end.value) != fatal.end()) {
    return fail(text("fatal_exit_codes has ", end.value, ": fail"));
  }
  if (facts.unmade) return fail("its actors could not be made: fail, no retry");
  if (end.out_of_memory && facts.out_of_memory_before) return fail("out of memory again: retried once: fail");
  if (facts.crashes_at_step >= kMostCrashesAtStep) {
    return fail(text("crash ", facts.crashes_at_step, " in a row at step ", facts.step, ": fail"));
  }
  return std::nullopt;
}

Recovery restart(const RestartPolicy& policy, const FailureFacts& facts) {
  const std::optional<std::uint32_t> limit = policy.max;
  if (limit == 0U) return fail("restart.max is 0: fail");
  if (limit && facts.failures >= *limit) {
    return fail(text("restart: ", spent_text(facts.failures, limit, policy.window), " are spent: fail"));
  }
  const std::uint32_t number = facts.failures + 1;
  const Duration wait = backoff_of(policy, facts.failures, facts.seed);
  const std::string when = wait == Duration::zero()
                               ? std::string("at once")
                               : text("after ", to_text(Duration::milliseconds(wait.count_milliseconds())));
  const std::string then = limit && number >= *limit ? std::string("fail") : text("restart ", number + 1);
  return {.remedy = Remedy::kRestart,
          .wait = wait,
          .rule = text(facts.end.out_of_memory      ? "out of memory: retried once: "
                       : is_lack_of_host(facts.end) ? "its host could not start it: "
                                                    : "",
                       "restart ", spent_text(number, limit, policy.window), ", ", when, "; then: ", then),
          .number = number,
          .of = limit};
}

Recovery replace(const ReallocatePolicy& policy, const FailureFacts& facts) {
  const std::optional<std::uint32_t> limit = policy.max;
  const bool affordable = limit != 0U && (!limit || facts.reallocations + facts.slots_out <= *limit);
  std::string why;
  if (limit == 0U) {
    why = "reallocate.max is 0";
  } else if (!affordable) {
    why = text("reallocate: ", spent_text(facts.reallocations, limit, policy.window), " are spent");
  } else if (facts.hosts_left < facts.slots_out) {
    why = "no other host is left";
  }
  const std::uint32_t with_these = facts.reallocations + std::max(facts.slots_out, 1U);
  const std::string number = spent_text(with_these, limit, policy.window);
  if (why.empty()) {
    const bool last = limit && with_these >= *limit;
    const std::string then = !last            ? text("replacement ", with_these + 1)
                             : facts.may_park ? std::string("its gang is parked")
                                              : std::string("fail");
    return {.remedy = Remedy::kReplace,
            .wait = {},
            .rule = text(facts.out, ": replacement ", number, "; then: ", then),
            .number = with_these,
            .of = limit};
  }
  if (facts.may_park) {
    return {.remedy = Remedy::kPark, .wait = {}, .rule = text(facts.out, ": ", why, ": shrink: its gang is parked")};
  }
  if (affordable && facts.hosts_left + facts.hosts_due >= facts.slots_out) {
    return {.remedy = Remedy::kAwait,
            .wait = {},
            .rule = text(facts.out, ": ", why, ", one may be launched again in ", to_text(facts.due_in),
                         ": replacement ", number),
            .number = with_these,
            .of = limit};
  }
  return fail(text(facts.out, ": ", why, ": fail"));
}

}  // namespace

std::string_view name_of(Remedy remedy) {
  switch (remedy) {
    case Remedy::kRestart: return "restart";
    case Remedy::kReplace: return "replace";
    case Remedy::kPark: return "park";
    case Remedy::kAwait: return "wait";
    case Remedy::kFail: return "fail";
  }
  return "";
}

Recovery recover(const Supervision& policy, const FailureFacts& facts) {
  if (auto end = hopeless(policy, facts)) return std::move(*end);
  return facts.kind == FailureKind::kHostLost ? replace(policy.reallocate, facts) : restart(policy.restart, facts);
}

}  // namespace monarch
