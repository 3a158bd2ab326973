#include "worker/core/post/call_check.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "transport/base/nearest.h"
#include "transport/base/report_limits.h"
#include "transport/base/take_number.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::uint64_t kBytesOfARank = 64;  // of a call: what is kept for each

Error refused(std::string why) { return {ErrorCode::kInvalid, std::move(why)}; }

// Nothing that is quoted or sent on has a name that is longer.
std::string why_too_long(const PostCall& call) {
  const auto longer = [](const char* what, const std::string& name, std::size_t most) {
    return name.size() > most ? text(what, " is ", name.size(), " bytes long, and ", most, " are the most")
                              : std::string();
  };
  const CallTarget& target = call.target;
  for (std::string why : {longer("the name of its mesh", call.mesh, limits::kNameBytes),
                          longer("the name of its actor", target.actor, kActorNameBytes),
                          longer("the name of its endpoint", target.endpoint, kActorNameBytes),
                          longer("its signature", target.signature, kSignatureBytes)}) {
    if (!why.empty()) return why;
  }
  return {};
}

// In order, each once.
Result<std::vector<Rank>> ranks_of(const PostCall& call, std::uint32_t size) {
  std::vector<Rank> ranks;
  for (const RankSteps& steps : call.ranks) {
    if (steps.count == 0) continue;
    const std::uint64_t last = steps.first + std::uint64_t{steps.count - 1} * steps.step;
    if (last >= size || steps.count > size) {
      return refused(text("there is no rank ", call.mesh, '/', last, ": the mesh has ", size));
    }
    for (std::uint32_t i = 0; i < steps.count; ++i) ranks.emplace_back(steps.first + i * steps.step);
    if (ranks.size() > size) return refused(text("the call names a rank of ", call.mesh, " twice"));
  }
  std::sort(ranks.begin(), ranks.end());
  const auto twice = std::adjacent_find(ranks.begin(), ranks.end());
  if (twice != ranks.end()) return refused(text("the call names ", call.mesh, '/', twice->value(), " twice"));
  return ranks;
}

}  // namespace

Result<CallTable::Entered> entered_of(const PostCall& call, const CallerName& caller, const RosterView& roster,
                                      const PostLimits& limits) {
  if (std::string passed = roster.passed(caller); !passed.empty()) return refused(std::move(passed));
  if (call.body.bytes > limits.body_bytes) {
    return refused(text("its arguments are ", amount_text(call.body.bytes), ", and one call carries ",
                        amount_text(limits.body_bytes), " at most"));
  }
  if (std::string why = why_too_long(call); !why.empty()) return refused(std::move(why));
  const auto mesh = roster.mesh_named(call.mesh);
  if (!mesh) return refused(unknown_mesh(call.mesh, roster.roster()));
  if (call.target.actor == kCardsActor && !known_generation(call.target)) {
    return refused(text("the signature of ", kCardsActor, " is a generation"));
  }
  MONARCH_ASSIGN(std::vector<Rank> ranks, ranks_of(call, roster.ranks_of(*mesh)));
  const CallTarget& target = call.target;
  const std::uint64_t bytes = call.body.bytes + target.actor.size() + target.endpoint.size() + target.signature.size() +
                              ranks.size() * kBytesOfARank;
  return CallTable::Entered{.mesh = *mesh,
                            .ranks = std::move(ranks),
                            .quiet = call.quiet,
                            .deadline = call.deadline,
                            .bytes = bytes,
                            .what = text(target.actor, '.', target.endpoint)};
}

std::optional<std::uint64_t> known_generation(const CallTarget& target) {
  std::string_view digits = target.signature;
  std::uint64_t generation = 0;
  return take_number(digits, generation) && digits.empty() ? std::optional(generation) : std::nullopt;
}

std::string unknown_mesh(const std::string& name, const Roster& roster) {
  std::vector<std::string> known;
  for (const RosterMesh& mesh : roster.meshes) known.push_back(mesh.name);
  return text("the job has no mesh ", name, nearest_or_all(name, known));
}

}  // namespace monarch
