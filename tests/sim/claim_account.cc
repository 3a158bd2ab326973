#include "tests/sim/claim_account.h"

#include <algorithm>

#include "supervisor/core/facts/claims.h"
#include "tests/sim/incarnation_text.h"
#include "tests/sim/posts.h"
#include "tests/sim/violation.h"
#include "tests/sim/world.h"
#include "tests/supervisor/core/state_parts.h"
#include "transport/base/text.h"

namespace monarch::sim {

namespace {

constexpr const char* kLabel = "claims";
// A patience of the desk, a stop with its deadlines, and beats.
constexpr Duration kRestsWithin = Duration::seconds(60);

std::string claim_text(const ClaimHolder& holder, std::uint64_t number) {
  return text("wish ", number, " of owner ", holder.owner.value(), " on host ", holder.host.value());
}

bool is_same(const SlotClaim& a, const SlotClaim& b) {
  return a.id == b.id && a.holder == b.holder && a.number == b.number && a.mesh == b.mesh && a.ranks == b.ranks &&
         a.what == b.what;
}

std::map<std::string, std::string> variables_of(const Start& start, const RankStart& rank) {
  std::map<std::string, std::string> all = start.env;
  for (const auto& [name, value] : rank.env) all[name] = value;
  return all;
}

}  // namespace

const ClaimAccount::Given* ClaimAccount::has(MeshId mesh, Rank rank) const {
  for (const Given& one : given_) {
    const auto& ranks = one.claim.ranks;
    if (one.ended || one.claim.mesh != mesh) continue;
    if (std::find(ranks.begin(), ranks.end(), rank) != ranks.end()) return &one;
  }
  return nullptr;
}

// The newest.
const ClaimAccount::Given* ClaimAccount::find(const ClaimHolder& holder, std::uint64_t number) const {
  const auto found = std::find_if(given_.rbegin(), given_.rend(), [&](const Given& one) {
    return one.claim.holder == holder && one.claim.number == number;
  });
  return found == given_.rend() ? nullptr : &*found;
}

std::uint64_t ClaimAccount::life_of(const JobCore& core, MeshId mesh, GangId slot) const {
  if (!core.spec().meshes[mesh.value()].idle) return 0;
  const Given* given = has(mesh, Rank(slot.value()));
  return given == nullptr ? 0 : given->claim.id.value();
}

void ClaimAccount::decided(const Ticket& here, const CoreEvent& event, const JobCore& core) {
  if (const auto* claimed = std::get_if<SlotsClaimed>(&event)) on(here, *claimed, core);
  if (const auto* let_go = std::get_if<SlotsLetGo>(&event)) on(here, *let_go, core);
  check_state(core);
}

void ClaimAccount::on(const Ticket& here, const SlotsClaimed& event, const JobCore& core) {
  const SlotClaim& claim = event.claim;
  if (find_claim(core.facts(), claim.id) == nullptr) return;  // the job is ending
  const std::string name = claim_text(claim.holder, claim.number);
  const Claimant* who = world_.posts->find(claim.holder);
  must(who != nullptr && who->said.contains(claim.number), kLabel, text(name, " was never said, and is granted"));
  must(!who->has.contains(claim.number), kLabel, text(name, " is granted again"));
  must(who->said.at(claim.number).what == claim.what, kLabel, text(name, " is granted as another"));
  const Given* before = find(claim.holder, claim.number);
  must(before == nullptr || before->ended, kLabel, text(name, " is granted again, and was not let go"));
  for (const Rank rank : claim.ranks) {
    must(has(claim.mesh, rank) == nullptr, kLabel,
         text(name, " is given slot ", rank.value(), ", which somebody has: given twice"));
  }
  check_hosts(claim, core);
  given_.push_back({.claim = claim, .made = here, .ended = std::nullopt});
}

// As many on each host, in the order of these.
void ClaimAccount::check_hosts(const SlotClaim& claim, const JobCore& core) const {
  const std::string name = claim_text(claim.holder, claim.number);
  must(core.spec().meshes[claim.mesh.value()].idle, kLabel, text(name, " is given ranks of a mesh that is not idle"));
  std::vector<std::string> hosts = claim.what.hosts;
  if (hosts.empty()) hosts.push_back(core.hosts()[claim.holder.host.value()].name);
  must(claim.ranks.size() == hosts.size() * claim.what.count, kLabel,
       text(name, " asks for ", hosts.size() * claim.what.count, " slots, and is given ", claim.ranks.size()));
  for (std::size_t i = 0; i < claim.ranks.size(); ++i) {
    const HostId where = core.placement().host_of({claim.mesh, claim.ranks[i]});
    must(core.hosts()[where.value()].name == hosts[i / claim.what.count], kLabel,
         text(name, " is given slot ", claim.ranks[i].value(), " on another host than it asks for"));
  }
}

void ClaimAccount::on(const Ticket& here, const SlotsLetGo& event, const JobCore& core) {
  for (Given& one : given_) {
    const bool named = std::find(event.claims.begin(), event.claims.end(), one.claim.id) != event.claims.end();
    if (one.ended || !named) continue;
    check_taken(one.claim, core);
    one.ended = here;
    one.was_known = world_.posts->lost(one.claim.holder, one.claim.number);
  }
}

// Whoever has it has said so, or is away.
bool ClaimAccount::may_be_taken(const SlotClaim& claim) const {
  const Claimant* who = world_.posts->find(claim.holder);
  const bool asked = std::any_of(who->said.begin(), who->said.end(),
                                 [&](const auto& one) { return one.second.let_go == claim.number; });
  return asked || !world_.posts->is_settled(*who);
}

// That, or its host is lost.
void ClaimAccount::check_taken(const SlotClaim& claim, const JobCore& core) const {
  const bool lost = state_parts::host(core.state(), claim.holder.host).phase != HostPhase::kJoined;
  must(lost || may_be_taken(claim), kLabel,
       text(claim_text(claim.holder, claim.number), " is taken from who has it, and is there"));
}

void ClaimAccount::check_state(const JobCore& core) const {
  const ClaimState& state = core.state().claims;
  std::size_t known = 0;
  for (const Given& one : given_) {
    if (one.ended) continue;
    ++known;
    const SlotClaim* claim = find_claim(core.facts(), one.claim.id);
    must(claim != nullptr && is_same(*claim, one.claim), kLabel,
         text(claim_text(one.claim.holder, one.claim.number), " was granted, and the core does not have it"));
    for (const Rank rank : one.claim.ranks) {
      must(claim_of(core.facts(), one.claim.mesh, GangId(rank.value())) == claim, kLabel,
           text("slot ", rank.value(), " is not of ", claim_text(one.claim.holder, one.claim.number)));
    }
  }
  must(known == state.claims.size(), kLabel,
       text("the core has ", state.claims.size(), " claims, and ", known, " were granted"));
}

void ClaimAccount::recovered(const JobCore& core) {
  std::erase_if(given_, [this](const Given& one) { return !durable_.holds(one.made); });
  for (Given& one : given_) {
    if (!one.ended || durable_.holds(*one.ended)) continue;
    one.ended.reset();
    if (one.was_known) world_.posts->has_again(one.claim.holder, one.claim.number);
  }
  check_state(core);
}

void ClaimAccount::starts(const SendStart& start, const JobCore& core) {
  const MeshId mesh = start.message.mesh;
  if (mesh.value() >= core.spec().meshes.size() || !core.spec().meshes[mesh.value()].idle) return;
  for (const RankStart& rank : start.message.ranks) {
    const Incarnation key{rank.rank, start.message.generation};
    const Given* given = has(mesh, rank.rank.rank);
    must(given != nullptr, kLabel, text(incarnation_text(key), " is started, and nobody has claimed it"));
    const Env got = variables_of(start.message, rank);
    const Env due = env_of(given->claim, rank.rank.rank);
    for (const auto& [name, value] : due) {
      const auto found = got.find(name);
      must(found != got.end() && found->second == value, kLabel,
           text(incarnation_text(key), " is started without ", name, "=", value, " of ",
                claim_text(given->claim.holder, given->claim.number)));
    }
    started_[key] = due;
  }
}

void ClaimAccount::starts_on_the_wire(const SendStart& start) const {
  for (const RankStart& rank : start.message.ranks) {
    const Incarnation key{rank.rank, start.message.generation};
    const auto known = started_.find(key);
    if (known == started_.end()) continue;
    const Env got = variables_of(start.message, rank);
    for (const auto& [name, value] : known->second) {
      const auto found = got.find(name);
      must(found != got.end() && found->second == value, kLabel,
           text("a START of ", incarnation_text(key), " that is said again has not ", name, "=", value));
    }
  }
}

void ClaimAccount::answers(HostId host, const ClaimAnswer& answer, const JobCore& core) {
  const PostGranted& said = answer.granted;
  const ClaimHolder holder{host, answer.owner};
  const std::string name = claim_text(holder, said.number);
  const Claimant* who = world_.posts->find(holder);
  must(who != nullptr && who->said.contains(said.number), kLabel, text(name, " was never said, and is answered"));
  const PostWish& wish = who->said.at(said.number);
  const Given* given = find(holder, wish.let_go == 0 ? said.number : wish.let_go);
  if (wish.let_go != 0) {
    must(said.error.empty() && said.ranks.empty(), kLabel, text(name, " lets go, and is answered something else"));
    must(given == nullptr || (given->ended && durable_.holds(*given->ended)), kLabel,
         text(name, " counts as let go before that is durable"));
    return;
  }
  if (!said.error.empty()) {
    must(given == nullptr || given->ended, kLabel, text(name, " has been granted, and is refused"));
    return;
  }
  must(given != nullptr, kLabel, text(name, " is answered, and nothing was given"));
  must(durable_.holds(given->made), kLabel, text(name, " is answered before it is durable"));
  must(!given->ended || may_be_taken(given->claim), kLabel, text(name, " is answered with slots that it has lost"));
  must(said.mesh == core.spec().meshes[given->claim.mesh.value()].name && said.ranks == given->claim.ranks, kLabel,
       text(name, " is answered with other slots than it was given"));
}

// ---- now and then ----

// Its owner is there, and has it or waits for it.
bool ClaimAccount::is_wanted(const SlotClaim& claim) const {
  const Claimant* who = world_.posts->find(claim.holder);
  return !who->gone && (who->has.contains(claim.number) || who->unanswered.contains(claim.number));
}

bool ClaimAccount::lives_somewhere(RankId rank) const {
  for (const auto& host : world_.hosts) {
    for (const auto& worker : host->workers) {
      for (const auto& [key, process] : worker->ranks().processes()) {
        if (key.rank == rank && process.alive() && !process.killed && !host->off) return true;
      }
    }
  }
  return false;
}

void ClaimAccount::look(const JobCore& core, bool calm) {
  const Instant now = world_.scheduler.now();
  const bool counts = calm && core.state().phase == JobPhase::kRunning && !core.state().foreseen;
  std::map<ClaimId, Instant> unwanted;
  for (const SlotClaim& claim : core.state().claims.claims) {
    if (!counts || is_wanted(claim)) continue;
    const auto before = unwanted_.find(claim.id);
    const Instant since = before == unwanted_.end() ? now : before->second;
    must(now - since < kRestsWithin, kLabel,
         text(claim_text(claim.holder, claim.number), " keeps its slots, and nobody is there who has it"));
    unwanted[claim.id] = since;
  }
  unwanted_ = std::move(unwanted);
  for (std::uint32_t m = 0; m < core.spec().meshes.size(); ++m) {
    for (std::uint32_t g = 0; core.spec().meshes[m].idle && g < core.spec().meshes[m].gangs(); ++g) {
      look_at_slot(core, MeshId(m), GangId(g), counts);
    }
  }
}

// Nobody's rests; somebody's does not wait where it could be started.
void ClaimAccount::look_at_slot(const JobCore& core, MeshId mesh, GangId slot, bool calm) {
  const Instant now = world_.scheduler.now();
  const GangState& gang = state_parts::gang(core.state(), mesh, slot);
  const RankId rank{mesh, Rank(slot.value())};
  const HostState& host = state_parts::host(core.state(), core.placement().host_of(rank));
  const bool nobodys = has(mesh, rank.rank) == nullptr;
  const bool serves = host.phase == HostPhase::kJoined && host.standing == HostStanding::kGood && !host.wedged;
  const bool rests = is_idle(gang.phase) && !lives_somewhere(rank);
  const bool waits = is_waiting(gang.phase) && serves;
  const bool is_fine = nobodys ? rests || host.wedged : !waits && !is_idle(gang.phase);
  if (!calm || is_fine) return void(restless_.erase({mesh, slot}));
  const Instant since = restless_.try_emplace({mesh, slot}, now).first->second;
  must(now - since < kRestsWithin, kLabel,
       text("slot ", slot.value(), " of mesh ", mesh.value(), " is ", nobodys ? "nobody's" : "somebody's",
            ", and in phase ", static_cast<int>(gang.phase),
            nobodys && lives_somewhere(rank) ? ", with a process" : ""));
}

}  // namespace monarch::sim
