#include "supervisor/workers/stack_dumps.h"

#include <algorithm>
#include <utility>

#include "supervisor/client/stacks/ask_stacks.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr Duration kNetwork = Duration::seconds(1);  // for a question and its answer on the way
constexpr Duration kShortestLimit = Duration::milliseconds(10);

// A process that is there, or may be: what its host knows better is its host's to say.
bool may_run(RankStage stage) {
  switch (stage) {
    case RankStage::kPending:
    case RankStage::kEnded:
    case RankStage::kLost: return false;
    case RankStage::kStarting:
    case RankStage::kRunning:
    case RankStage::kStopping: return true;
  }
  return false;
}

}  // namespace

void StackDumps::ask(const StackQuestion& question, Answer answer_with) {
  const RankId rank = question.rank;
  const HostId host = core_.placement().host_of(rank);
  const std::uint64_t number = next_++;
  Open& open = open_[number];
  open.generation = core_.facts().crew_with(rank).generation;
  open.told = {
      .rank = rank, .generation = open.generation.counter, .host = core_.hosts()[host.value()].name, .stacks = {}};
  open.answer = std::move(answer_with);
  if (!may_run(core_.facts().member(rank).stage)) return answer_soon(number, StacksEnd::kEnded, "it does not run");
  const Duration patience = std::max(question.limit, question.patience);
  const bool sent = send_(host, {.process = {rank, open.generation},
                                 .number = number,
                                 .limit = question.limit,
                                 .patience = patience,
                                 .all_threads = question.all_threads,
                                 .native = question.native});
  if (!sent) return answer_soon(number, StacksEnd::kUnreachable, "the host is not connected");
  open.deadline = std::make_unique<FairTimer>(loop_);
  open.deadline->start(patience + kNetwork, [this, number, patience](const std::string& late) {
    Stacks none;
    none.end = StacksEnd::kUnreachable;
    none.detail = text("the host did not answer within ", to_text(patience + kNetwork), late);
    answer(number, std::move(none));
  });
}

// By a timer, so that who asks is never answered before it knows that it has asked.
void StackDumps::answer_soon(std::uint64_t number, StacksEnd end, std::string detail) {
  Open& open = open_[number];
  open.deadline = std::make_unique<FairTimer>(loop_);
  open.deadline->start(Duration::zero(), [this, number, end, detail = std::move(detail)](const std::string&) {
    Stacks none;
    none.end = end;
    none.detail = detail;
    answer(number, std::move(none));
  });
}

void StackDumps::answer(std::uint64_t number, Stacks stacks) {
  const auto found = open_.find(number);
  if (found == open_.end()) return;
  Open open = std::move(found->second);
  open_.erase(found);
  open.told.stacks = std::move(stacks);
  open.answer(open.told);
}

void StackDumps::on_stacks(StacksCame&& came) {
  const auto found = open_.find(came.stacks.number);
  // It came after its deadline, or answers what nobody asked of this rank.
  if (found == open_.end() || came.process != Incarnation{found->second.told.rank, found->second.generation}) return;
  answer(came.stacks.number, std::move(came.stacks));
}

Status StackDumps::ask_all(const StacksRequest& request, const Answer& answer_with) {
  if (request.limit < kShortestLimit || request.limit > limits::kLongestStackLimit) {
    return Error{ErrorCode::kInvalid, text("a limit of ", to_text(request.limit), " is not between ",
                                           to_text(kShortestLimit), " and ", to_text(limits::kLongestStackLimit))};
  }
  std::map<HostId, std::uint32_t> asked;  // of each host
  for (const RankId& rank : request.ranks) {
    const bool known = rank.mesh.value() < core_.spec().meshes.size() &&
                       rank.rank.value() < core_.spec().meshes[rank.mesh.value()].size();
    if (!known) return Error{ErrorCode::kInvalid, "no such rank"};
    ++asked[core_.placement().host_of(rank)];
  }
  for (const RankId& rank : request.ranks) {
    const std::uint32_t on_host = asked[core_.placement().host_of(rank)];
    ask({.rank = rank,
         .limit = request.limit,
         .patience = patience_with_host(request.limit, on_host),
         .all_threads = request.all_threads,
         .native = request.native},
        answer_with);
  }
  return {};
}

}  // namespace monarch
