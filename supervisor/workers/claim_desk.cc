#include "supervisor/workers/claim_desk.h"

#include <algorithm>
#include <set>
#include <string>

#include "supervisor/core/facts/claims.h"
#include "supervisor/core/job/claim_plan.h"
#include "transport/base/text.h"

namespace monarch {

template <class Which>
std::vector<ClaimId> ClaimDesk::claims_of(HostId host, const Which& which) const {
  std::vector<ClaimId> found;
  for (const SlotClaim& claim : core_.state().claims.claims) {
    if (claim.holder.host == host && which(claim.holder.owner)) found.push_back(claim.id);
  }
  return found;
}

void ClaimDesk::hear(HostId host, const PostReport& report, Instant sent_at) {
  if (report.start == 0 || !is_joined(core_.facts().host(host).phase)) return;
  std::set<Key> waited_for;
  for (const PostWish& wish : report.wishes) waited_for.insert({{host, wish.owner}, wish.number});
  forget_answers(host, waited_for);
  for (auto& [key, one] : answers_) {
    if (key.first.host == host) one.is_sent = !waited_for.contains(key);  // or it is waited for still
  }
  for (const PostWish& wish : report.wishes) decide_about(host, wish);
  answer(host);
  drop_gone(host, report, sent_at);
}

// A refusal stands for a while: it may be on its way still when who lost his post says the wish anew, and nobody would
// know of what he is granted then.
void ClaimDesk::forget_answers(HostId host, const std::set<Key>& waited_for) {
  const Instant now = options_.now();
  std::size_t stand = 0;
  std::erase_if(answers_, [&](const auto& known) {
    const auto& [key, one] = known;
    if (key.first.host != host || waited_for.contains(key)) return false;
    const bool stands = !one.what.granted.error.empty() && now < one.waited_for + kComesBack;
    return !stands || ++stand > kRefusalsKept;
  });
}

void ClaimDesk::decide_about(HostId host, const PostWish& wish) {
  const ClaimHolder holder{host, wish.owner};
  const Key key{holder, wish.number};
  const auto [found, is_new] = answers_.try_emplace(key);
  found->second.waited_for = options_.now();
  if (!is_new) return;
  found->second.what = {.owner = wish.owner, .granted = {.number = wish.number, .error = {}, .mesh = {}, .ranks = {}}};
  if (wish.let_go != 0) {
    let_go(holder, wish);
  } else {
    claim(holder, wish, found->second);
  }
  found->second.asked = ++asked_;
  options_.when_durable([this, key, asked = asked_] {
    const auto waiting = answers_.find(key);
    if (waiting == answers_.end() || waiting->second.asked != asked) return;  // meanwhile it was not waited for
    waiting->second.is_durable = true;
    answer(key.first.host);
  });
}

// One that an earlier supervisor has granted is found again.
void ClaimDesk::claim(const ClaimHolder& holder, const PostWish& wish, Answer& answer) {
  const CoreFacts& job = core_.facts();
  if (claim_asked_for(job, holder, wish.number) == nullptr) {
    const Result<SlotsClaimed> planned = claim_plan(job, holder, wish.number, wish.what);
    if (!planned.ok()) {
      answer.what.granted.error = planned.error().message;
      return;
    }
    options_.decide(*planned);
  }
  const SlotClaim* const made = claim_asked_for(job, holder, wish.number);
  if (made == nullptr) {
    answer.what.granted.error = "the job is ending";
    return;
  }
  answer.claim = made->id;
  answer.what.granted.mesh = core_.spec().meshes[made->mesh.value()].name;
  answer.what.granted.ranks = made->ranks;
}

void ClaimDesk::let_go(const ClaimHolder& holder, const PostWish& wish) {
  const SlotClaim* const made = claim_asked_for(core_.facts(), holder, wish.let_go);
  if (made != nullptr)
    options_.decide(
        SlotsLetGo{.claims = {made->id}, .why = text("by their process on ", core_.facts().name_of(holder.host))});
}

void ClaimDesk::answer(HostId host) {
  const Roster* const roster = options_.roster_of(host);
  for (auto& [key, one] : answers_) {
    if (key.first.host != host || one.is_sent || !one.is_durable) continue;
    if (one.claim != ClaimId() && (roster == nullptr || !shows(*roster, one.claim))) continue;
    one.is_sent = true;
    options_.send(host, one.what);
  }
}

// One that is let go already has nothing to show.
bool ClaimDesk::shows(const Roster& roster, ClaimId id) const {
  const SlotClaim* const claim = find_claim(core_.facts(), id);
  if (claim == nullptr || claim->ranks.empty()) return true;
  const std::uint32_t rank = claim->ranks.front().value();
  return std::any_of(roster.runs.begin(), roster.runs.end(), [&](const RosterRun& run) {
    const std::uint32_t first = run.first.value();
    return run.mesh == claim->mesh && rank >= first && rank - first < run.count && run.state != RosterState::kIdle;
  });
}

void ClaimDesk::drop_gone(HostId host, const PostReport& report, Instant sent_at) {
  Post& post = posts_[host.value()];
  if (post.start != report.start) {
    post.start = report.start;
    post.patient_until = sent_at + kComesBack;
    post.absent_since.clear();
  }
  const auto is_here = [&](ClaimOwner owner) {
    return std::find(report.owners.begin(), report.owners.end(), owner) != report.owners.end();
  };
  std::map<ClaimOwner, Instant> absent;
  for (const SlotClaim& claim : core_.state().claims.claims) {
    const ClaimOwner owner = claim.holder.owner;
    if (claim.holder.host != host || is_here(owner)) continue;
    const auto before = post.absent_since.find(owner);
    absent[owner] = before == post.absent_since.end() ? sent_at : before->second;
  }
  post.absent_since = std::move(absent);
  const auto is_gone = [&](ClaimOwner owner) {
    const auto since = post.absent_since.find(owner);
    return since != post.absent_since.end() && sent_at >= since->second + kGone && sent_at >= post.patient_until;
  };
  std::vector<ClaimId> gone = claims_of(host, is_gone);
  if (!gone.empty())
    options_.decide(SlotsLetGo{.claims = std::move(gone),
                               .why = text("their process on ", core_.facts().name_of(host), " has ended")});
}

void ClaimDesk::changed() {
  for (const SlotClaim& claim : core_.state().claims.claims) {
    const HostId host = claim.holder.host;
    Post& post = posts_[host.value()];
    if (is_joined(core_.facts().host(host).phase) || post.lost) continue;
    post.lost = true;
    options_.at(options_.now() + kComesBack, [this, host] { drop_lost(host); });
  }
}

void ClaimDesk::drop_lost(HostId host) {
  posts_[host.value()].lost = false;
  if (is_joined(core_.facts().host(host).phase)) return;
  std::erase_if(answers_, [host](const auto& one) { return one.first.first.host == host; });
  std::vector<ClaimId> all = claims_of(host, [](ClaimOwner) { return true; });
  if (!all.empty())
    options_.decide(SlotsLetGo{.claims = std::move(all),
                               .why = text("their process was on ", core_.facts().name_of(host), ", which is lost")});
}

}  // namespace monarch
