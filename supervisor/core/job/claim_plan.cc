#include "supervisor/core/job/claim_plan.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/core/facts/claims.h"
#include "supervisor/core/facts/some_of.h"
#include "supervisor/core/spec/variables.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr const char* kGpuVariable = "CUDA_VISIBLE_DEVICES";
constexpr std::uint64_t kClaimRanks = 4'096;  // so that a claim fits into a record

bool is_listed(const std::vector<std::string>& patterns, const std::string& name) {
  return std::any_of(patterns.begin(), patterns.end(),
                     [&name](const std::string& pattern) { return fits_variable(pattern, name); });
}

class ClaimPlanner {
 public:
  ClaimPlanner(const CoreFacts& job, const ClaimHolder& holder, const SlotWish& wish)
      : job_(job), holder_(holder), wish_(wish) {}

  Result<SlotClaim> plan() {
    MONARCH_TRY(check_size());
    MONARCH_TRY(find_hosts());
    MONARCH_TRY(find_mesh());
    MONARCH_TRY(check_words());
    MONARCH_TRY(take_slots());
    if (!wish_.rank_env.empty() && wish_.rank_env.size() != ranks_.size()) {
      return refused(text("it has variables for ", wish_.rank_env.size(), " ranks, and wants ", ranks_.size()));
    }
    SlotClaim claim{.id = ClaimId(job_.state.claims.next),
                    .holder = holder_,
                    .number = 0,
                    .mesh = mesh_,
                    .ranks = std::move(ranks_),
                    .what = wish_};
    return claim;
  }

 private:
  static Error refused(std::string why) { return {ErrorCode::kInvalid, std::move(why)}; }

  Status check_size() const {
    if (job_.state.phase < JobPhase::kStarting || job_.starts_nothing()) return refused("the job is ending");
    if (wish_.count == 0) return refused("it wants no slot");
    const std::uint64_t ranks = std::uint64_t{wish_.count} * std::max<std::size_t>(wish_.hosts.size(), 1);
    if (ranks <= kClaimRanks) return {};
    return refused(text("it wants ", ranks, " slots, and ", kClaimRanks, " are the most of one claim"));
  }

  Status find_hosts() {
    if (wish_.hosts.empty()) hosts_.push_back(holder_.host);
    for (const std::string& name : wish_.hosts) {
      std::vector<std::string> known;
      for (const PoolHost& host : job_.hosts) known.push_back(host.name);
      const auto found = std::find(known.begin(), known.end(), name);
      if (found == known.end()) return refused(text("the job has no host ", name, nearest_or_all(name, known)));
      const HostId id(static_cast<std::uint32_t>(found - known.begin()));
      if (std::find(hosts_.begin(), hosts_.end(), id) != hosts_.end())
        return refused(text("it names ", name, " twice"));
      hosts_.push_back(id);
    }
    return {};
  }

  Status find_mesh() {
    std::vector<std::string> idle;
    for (std::uint32_t m = 0; m < job_.spec.meshes.size(); ++m) {
      const MeshSpec& spec = job_.spec.meshes[m];
      if (!spec.idle) continue;
      idle.push_back(spec.name);
      const bool there = job_.placement.gangs_on(MeshId(m), hosts_.front()).count > 0;
      if (wish_.mesh.empty() ? !there : wish_.mesh != spec.name) continue;
      mesh_ = MeshId(m);
      return {};
    }
    if (idle.empty()) return refused("no mesh of this job has idle slots: `idle: true` makes them");
    if (wish_.mesh.empty()) return refused(text("no idle mesh has slots on ", job_.name_of(hosts_.front())));
    return refused(text("mesh ", wish_.mesh, " has no idle slots", nearest_or_all(wish_.mesh, idle)));
  }

  // What a process of one host has executed on another: only what the spec allows.
  Status check_words() const {
    const MeshSpec& spec = job_.mesh(mesh_);
    if (wish_.program.empty() && spec.program.empty()) {
      return refused(text("mesh ", spec.name, " has no program, so a claim has to name one"));
    }
    std::vector<const std::map<std::string, std::string>*> all = {&wish_.env};
    for (const auto& env : wish_.rank_env) all.push_back(&env);
    const bool abroad = std::any_of(hosts_.begin(), hosts_.end(), [this](HostId id) { return id != holder_.host; });
    const bool believed = !abroad || spec.claims.trusts_job;
    for (const auto* const env : all) {
      for (const auto& [name, value] : *env) {
        if (!is_variable(name)) return refused(text("`", name, "` is not the name of a variable"));
        if (is_variable_of_ours(name)) return refused(text(name, " is set by monarch for each rank"));
        if (believed || name == kGpuVariable || is_listed(spec.claims.env, name)) continue;
        return refused(text(name, " comes from another host: mesh ", spec.name, " takes it with `claims: {env: [", name,
                            "]}`, or all with `trust: job`"));
      }
    }
    if (believed || (wish_.program.empty() && wish_.workdir.empty())) return {};
    return refused(text("its ", wish_.program.empty() ? "working directory" : "program",
                        " comes from another host: mesh ", spec.name, " takes it with `trust: job`"));
  }

  Status take_slots() {
    for (const HostId host : hosts_) {
      const GangRange here = job_.placement.gangs_on(mesh_, host);
      std::vector<Rank> idle;
      for (std::uint32_t g = here.first; g < here.first + here.count; ++g) {
        if (is_idle(job_.gang(mesh_, GangId(g)).phase)) idle.emplace_back(g);
      }
      const bool there = is_joined(job_.host(host).phase) && job_.may_serve(host);
      if (!there || idle.size() < wish_.count) return too_few(host, here.count, there ? idle.size() : 0, there);
      pick(idle);
    }
    return {};
  }

  // Neighbours where there are as many, so that a view of them is one run; else the lowest.
  void pick(const std::vector<Rank>& idle) {
    std::size_t first = 0;
    for (std::size_t i = 0; i + wish_.count <= idle.size(); ++i) {
      if (idle[i + wish_.count - 1].value() - idle[i].value() + 1 != wish_.count) continue;
      first = i;
      break;
    }
    ranks_.insert(ranks_.end(), idle.begin() + static_cast<std::ptrdiff_t>(first),
                  idle.begin() + static_cast<std::ptrdiff_t>(first + wish_.count));
  }

  Error too_few(HostId host, std::uint32_t all, std::size_t idle, bool there) const {
    std::vector<std::string> who;
    for (const SlotClaim& claim : job_.state.claims.claims) {
      const auto here = std::count_if(claim.ranks.begin(), claim.ranks.end(), [&](Rank rank) {
        return claim.mesh == mesh_ && job_.placement.host_of({mesh_, rank}) == host;
      });
      if (here == 0) continue;
      who.push_back(text(claim.what.name.empty() ? text("claim ", claim.id.value()) : printable(claim.what.name), " (",
                         here, ")"));
    }
    const std::string taken = who.empty() ? std::string() : text(": ", some_of(std::move(who)), " has the others");
    const std::string why = there ? std::string() : " (the host serves nobody now)";
    return {ErrorCode::kBusy, text("it wants ", wish_.count, " slots of mesh ", job_.mesh(mesh_).name, " on ",
                                   job_.name_of(host), ", and ", idle, " of ", all, " are idle", why, taken)};
  }

  const CoreFacts& job_;
  const ClaimHolder& holder_;
  const SlotWish& wish_;
  std::vector<HostId> hosts_;
  MeshId mesh_;
  std::vector<Rank> ranks_;
};

}  // namespace

Result<SlotsClaimed> claim_plan(const CoreFacts& job, const ClaimHolder& holder, std::uint64_t number,
                                const SlotWish& wish) {
  MONARCH_ASSIGN(SlotClaim claim, ClaimPlanner(job, holder, wish).plan());
  claim.number = number;
  return SlotsClaimed{std::move(claim)};
}

}  // namespace monarch
