#include "tests/sim/beat_account.h"

#include "tests/sim/incarnation_text.h"
#include "tests/sim/violation.h"
#include "transport/base/text.h"

namespace monarch::sim {

void BeatAccount::heard(HostId host, const Beat& beat) {
  for (const RankReport& report : beat.content.ranks) {
    if (report.end.kind != EndKind::kNone) ended_.insert({host, report.process});
    if (!report.progress.step) continue;
    NamedStep& named = steps_[{host, report.process}];
    // A beat that was overtaken tells of what was before.
    if (beat.seq >= named.seq) named = {.seq = beat.seq, .step = *report.progress.step};
  }
}

void BeatAccount::decided(const CoreEvent& event) const {
  const auto* change = std::get_if<RankChanged>(&event);
  if (change == nullptr || change->report.end.kind == EndKind::kNone) return;
  must(ended_.contains({change->host, change->report.process}), "beat",
       text("an end of ", incarnation_text(change->report.process), " is journalled, and no beat told it"));
  const auto named = steps_.find({change->host, change->report.process});
  if (named == steps_.end()) return;
  must(change->step == named->second.step, "step",
       text("the end of ", incarnation_text(change->report.process), " is journalled without step ", named->second.step,
            ", which it had named"));
}

void BeatAccount::answered(const Ack& ack) const {
  for (const Incarnation& process : ack.forget) {
    must(!copies_ || copied_.contains(process), "copy",
         text(incarnation_text(process), " is forgotten, and its output is not copied"));
  }
}

}  // namespace monarch::sim
