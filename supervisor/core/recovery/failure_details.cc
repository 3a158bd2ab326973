#include "supervisor/core/recovery/failure_details.h"

#include "transport/base/text.h"
#include "transport/messages/describe_end.h"

namespace monarch {

EventDetails failure_details(GangId gang, const FirstCause& cause, bool hung, const Recovery& next) {
  const bool of_rank = cause.kind == CauseKind::kRank && !hung;
  EventDetails details = {{"gang", text(gang.value())}, {"cause", hung ? "hung" : of_rank ? "rank" : "host"}};
  if (of_rank) details.emplace_back("end", describe_end(cause.end));
  details.emplace_back("remedy", name_of(next.remedy));
  if (next.number > 0) details.emplace_back("number", text(next.number));
  if (next.number > 0 && next.of) details.emplace_back("of", text(*next.of));
  if (next.remedy == Remedy::kRestart) details.emplace_back("wait_ms", text(next.wait.count_milliseconds()));
  details.emplace_back("rule", cause.rule);
  return details;
}

}  // namespace monarch
