#include "tests/sim/takeover/acceptor.h"

#include <algorithm>

namespace monarch::sim::takeover {

namespace {

constexpr std::size_t kMostUnanswered = 16;

}  // namespace

void Acceptor::look_at_clock(Instant now) {
  std::erase_if(held_, [&](const auto& entry) { return entry.second.granted_by != 0 && entry.second.until <= now; });
}

// What has no lease that stands is nobody's any more: another may have been started in its place.
void Acceptor::promise(const Prepare& prepare, Instant now) {
  if (prepare.epoch <= promised_) return;
  promised_ = prepare.epoch;
  echo_ = prepare.stamp;
  if (!is(options_.wrong, Wrong::kObeyAnyEpoch)) sent_.clear();
  std::erase_if(held_, [&](const auto& entry) {
    const Held& held = entry.second;
    if (held.granted_by == 0) return !is(options_.wrong, Wrong::kAdoptNeverLeased);
    return !is_lazy() && held.until <= now;
  });
}

void Acceptor::repeat_promise(const Prepare& prepare) {
  if (prepare.epoch == promised_) echo_ = std::max(echo_, prepare.stamp);
}

void Acceptor::on(const Ack& ack, Instant now) {
  if (ack.boot != options_.boot || (ack.epoch != promised_ && !is(options_.wrong, Wrong::kObeyAnyEpoch))) return;
  if (ack.epoch == promised_) echo_ = std::max(echo_, ack.stamp);
  const auto sent = sent_.find(ack.seq);
  if (sent == sent_.end()) return;
  const Instant from = is(options_.wrong, Wrong::kLeaseFromReceipt) ? now : sent->second;
  const Instant until = from + kLease;
  if (until <= now) return;
  for (const Grant& grant : ack.grants) {
    const auto found = held_.find(grant.rank);
    if (found == held_.end() || found->second.gen != grant.gen) continue;
    found->second.granted_by = ack.epoch;
    found->second.until = std::max(found->second.until, until);
  }
}

void Acceptor::on(const Start& start, Instant now) {
  if (start.boot != options_.boot || (start.epoch != promised_ && !is(options_.wrong, Wrong::kObeyAnyEpoch))) return;
  Gen& highest = highest_[start.rank];
  if (start.gen <= highest) return;
  highest = start.gen;
  Held held{.rank = start.rank, .gen = start.gen, .granted_by = 0, .until = {}};
  if (is(options_.wrong, Wrong::kStartLeases)) {
    held.granted_by = start.epoch;
    held.until = now + kLease;
  }
  held_[start.rank] = held;
}

void Acceptor::on(const Kill& kill) {
  const auto found = held_.find(kill.rank);
  if (found != held_.end() && found->second.gen == kill.gen) held_.erase(found);
}

Report Acceptor::report(Instant now) {
  Report report{
      .promised = promised_, .boot = options_.boot, .seq = ++last_seq_, .echo = echo_, .held = {}, .started = {}};
  for (const auto& [rank, held] : held_) report.held.push_back(held);
  for (const auto& [rank, gen] : highest_) report.started.push_back({.rank = rank, .gen = gen});
  sent_[report.seq] = now;
  if (sent_.size() > kMostUnanswered) sent_.erase(sent_.begin());
  return report;
}

}  // namespace monarch::sim::takeover
