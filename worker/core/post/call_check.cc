#include "worker/core/post/call_check.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "transport/base/nearest.h"
#include "transport/base/report_limits.h"
#include "transport/base/take_number.h"
#include "transport/base/text.h"
#include "worker/core/post/guests.h"

namespace monarch {

namespace {

constexpr std::uint64_t kBytesOfARank = 64;    // of a call: what is kept for each
constexpr HostId kNoHost{~std::uint32_t{0}};   // none of any roster
constexpr std::size_t kGuestsOfACall = 4'096;  // as many as a door has connections

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
                          longer("its signature", target.signature, kSignatureBytes),
                          longer("the name of its host", call.host, limits::kNameBytes)}) {
    if (!why.empty()) return why;
  }
  return {};
}

// Where they are, by the call. Who was on a host that is none of the job any more is lost with it.
Result<HostId> host_of_guests(const PostCall& call, const RosterView& roster, HostId here) {
  if (call.target.actor == kCardsActor) return refused(Guests::kNoCards);
  std::uint64_t count = 0;
  for (const RankSteps& steps : call.ranks) count += steps.count;
  if (count > kGuestsOfACall) {
    return refused(text("the call names ", count, " guests, and ", kGuestsOfACall, " are the most"));
  }
  return call.host.empty() ? here : roster.host_named(call.host).value_or(kNoHost);
}

// In order, each once.
Result<std::vector<Rank>> ranks_of(const PostCall& call, std::uint32_t size) {
  std::vector<Rank> ranks;
  for (const RankSteps& steps : call.ranks) {
    if (steps.count == 0) continue;
    const std::uint64_t last = steps.first + std::uint64_t{steps.count - 1} * steps.step;
    if (last >= size && call.mesh == kGuestsMesh) return refused(text("there is no guest of a number like ", last));
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
                                      const PostLimits& limits, HostId here) {
  if (std::string passed = roster.passed(caller); !passed.empty()) return refused(std::move(passed));
  // Whoever has a card may be anywhere.
  const std::uint64_t most = call.target.actor == kCardsActor ? limits.far_bytes : limits.body_bytes;
  if (call.body.bytes > most) return refused(too_large("its arguments are", call.body.bytes, limits));
  if (std::string why = why_too_long(call); !why.empty()) return refused(std::move(why));
  const auto mesh = roster.called_mesh(call.mesh);
  if (!mesh) return refused(unknown_mesh(call.mesh, roster.roster()));
  if (call.target.actor == kCardsActor && !known_generation(call.target)) {
    return refused(text("the signature of ", kCardsActor, " is a generation"));
  }
  std::optional<HostId> host;
  if (mesh == kGuestsMeshId) {
    MONARCH_ASSIGN(host, host_of_guests(call, roster, here));
  } else if (!call.host.empty()) {
    return refused(text("the call names host ", call.host, ", and ", call.mesh,
                        " is a mesh of the job, whose ranks are where they are"));
  }
  MONARCH_ASSIGN(std::vector<Rank> ranks, ranks_of(call, roster.ranks_of(*mesh)));
  const CallTarget& target = call.target;
  const std::uint64_t bytes = call.body.bytes + target.actor.size() + target.endpoint.size() + target.signature.size() +
                              ranks.size() * kBytesOfARank;
  return CallTable::Entered{.mesh = *mesh,
                            .ranks = std::move(ranks),
                            .host = host,
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

std::string too_large(const char* what, std::uint64_t bytes, const PostLimits& limits) {
  return text(what, ' ', amount_text(bytes), ": a call carries ", amount_text(limits.body_bytes), " at most, ",
              amount_text(limits.far_bytes), " to another host");
}

std::string unknown_mesh(const std::string& name, const Roster& roster) {
  std::vector<std::string> known;
  for (const RosterMesh& mesh : roster.meshes) known.push_back(mesh.name);
  return text("the job has no mesh ", name, nearest_or_all(name, known));
}

}  // namespace monarch
