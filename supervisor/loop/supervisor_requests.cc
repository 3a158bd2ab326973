// What people ask of a live job's ranks.

#include <algorithm>
#include <csignal>
#include <utility>
#include <vector>

#include "supervisor/loop/supervisor_loop.h"
#include "transport/base/text.h"
#include "transport/loop/signals.h"

namespace monarch {

namespace {

// Of a request, each once: all where none is named.
Result<std::vector<RankId>> meant(const JobSpec& spec, std::vector<RankId> ranks) {
  for (const RankId& rank : ranks) {
    const bool known =
        rank.mesh.value() < spec.meshes.size() && rank.rank.value() < spec.meshes[rank.mesh.value()].size();
    if (!known) return Error{ErrorCode::kInvalid, "no such rank"};
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  if (!ranks.empty()) return ranks;
  for (std::uint32_t m = 0; m < spec.meshes.size(); ++m) {
    for (std::uint32_t r = 0; r < spec.meshes[m].size(); ++r) ranks.push_back({MeshId(m), Rank(r)});
  }
  return ranks;
}

}  // namespace

// What is answered is not forgotten by the next supervisor.
void Supervisor::answer_durably(Result<std::string> words, const ControlHandlers::Answer& answer) {
  if (!words.ok()) return answer(std::move(words));
  decider_->when_durable([words = std::move(words), answer] { answer(words); });
}

void Supervisor::signal_ranks(const SignalRequest& request, const ControlHandlers::Answer& answer) {
  if (request.number <= 0 || request.number >= NSIG) {
    return answer(Error{ErrorCode::kInvalid, text("no signal has the number ", request.number)});
  }
  Result<std::vector<RankId>> selected = meant(core_.spec(), request.ranks);
  if (!selected.ok()) return answer(selected.error());
  std::vector<RankId> ranks = std::move(*selected);
  // One that is starting may run already, and its host's word of that be on its way: the keeper knows, and passes the signal
  // on if it does. Whether a rank stands still by somebody's order is to be known for sure.
  std::erase_if(ranks, [&](const RankId& rank) {
    const RankStage stage = core_.state().meshes[rank.mesh.value()].ranks[rank.rank.value()].stage;
    return !lives(stage) || (stage == RankStage::kStarting && HangWatch::concerns(request.number));
  });
  const std::string name = signal_name(request.number);
  if (ranks.empty()) {
    return answer(Error{ErrorCode::kNotFound, text("no rank that is meant is running, so ", name, " went to none")});
  }
  const auto send = [this, ranks, number = request.number, to = request.to, name, answer] {
    const std::size_t reached = links_->signal(ranks, number, to);
    const std::string_view noun = ranks.size() == 1 ? " rank" : " ranks";
    if (reached == ranks.size()) return answer(text(name, " was sent to ", reached, noun));
    answer(text(name, " was sent to ", reached, " of ", ranks.size(), noun,
                ": the hosts of the others are not connected"));
  };
  if (!HangWatch::concerns(request.number)) return send();
  hangs_->signalled(ranks, request.number);  // before one could be seen to stand still, also by the next supervisor
  decider_->when_durable(send);
}

Result<std::string> Supervisor::hold_ranks(HoldRequest request) {
  MONARCH_ASSIGN(request.ranks, meant(core_.spec(), std::move(request.ranks)));
  return hangs_->hold(request);
}

}  // namespace monarch
