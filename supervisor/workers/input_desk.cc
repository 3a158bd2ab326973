#include "supervisor/workers/input_desk.h"

#include <utility>

#include "transport/base/text.h"

namespace monarch {

InputDesk::InputDesk(const JobCore& core, InputDeskOptions options) : core_(core), options_(std::move(options)) {
  ranks_ = ranks_with_input(core_.spec());
  if (!ranks_.empty()) options_.at(options_.now() + kPatience, [this] { end_where_nobody_gives(); });
}

Generation InputDesk::generation_of(RankId id) const { return core_.facts().crew_with(id).generation; }

InputDesk::Reader InputDesk::reader(RankId id) const {
  const MeshState& mesh = core_.state().meshes[id.mesh.value()];
  const auto gang = mesh.gangs[core_.spec().meshes[id.mesh.value()].gang_of(id.rank).value()].phase;
  if (has_ended(gang) || is_parked(gang)) return Reader::kGone;
  switch (core_.facts().member(id).stage) {
    case RankStage::kRunning:
    case RankStage::kStopping: return Reader::kHere;
    // A gang that fails is started again, perhaps; of one that runs this rank is done.
    case RankStage::kEnded: return is_running(gang) ? Reader::kGone : Reader::kNotYet;
    case RankStage::kPending:
    case RankStage::kStarting:
    case RankStage::kLost: return Reader::kNotYet;
  }
  return Reader::kNotYet;
}

void InputDesk::give(std::uint64_t viewer, InputRequest request, Answer answer) {
  if (ranks_.empty())
    return answer(Error{ErrorCode::kInvalid, "no rank of this job gets input: its spec has no `stdin`"});
  if (request.bytes.size() > kInputBytes) {
    return answer(
        Error{ErrorCode::kInvalid, text(request.bytes.size(), " bytes at once: ", kInputBytes, " are the most")});
  }
  viewer_ = viewer;
  const std::uint64_t behind = request.offset + request.bytes.size();
  const bool says_who = request.bytes.empty() && !request.end;
  if (says_who || over_ || (behind <= done_ && !request.end)) return answer(std::string("taken"));
  piece_ = std::move(request);
  answer_ = std::move(answer);
  go_on(true);
}

void InputDesk::left(std::uint64_t viewer) {
  if (viewer != viewer_ || over_) return;
  viewer_ = 0;
  options_.at(options_.now() + kPatience, [this] { end_where_nobody_gives(); });
}

void InputDesk::end_where_nobody_gives() {
  if (viewer_ != 0 || over_ || (piece_ && piece_->end)) return;
  options_.on_end();
  if (!piece_) piece_ = InputRequest{.offset = done_, .bytes = {}, .end = true};
  piece_->end = true;
  go_on(true);
}

void InputDesk::taken(HostId host, const InputTaken& taken) {
  const RankId id = taken.process.rank;
  const bool its_own = core_.facts().has_rank(id) && place_of(core_.facts(), id) == host;
  if (!its_own || taken.process.generation != generation_of(id)) return;
  // Of an earlier generation nothing is asked any more.
  std::erase_if(given_, [&](const auto& one) { return one.first.rank == id && one.first != taken.process; });
  given_[taken.process] = {.offset = taken.offset, .over = taken.over};
  go_on(false);
}

void InputDesk::go_on(bool send) {
  if (!piece_) return;
  const std::uint64_t behind = piece_->offset + piece_->bytes.size();
  bool any = false;
  bool all = true;
  std::map<std::pair<HostId, Generation>, std::vector<RankId>> missing;
  for (const RankId& id : ranks_) {
    const Reader is = reader(id);
    any = any || is != Reader::kGone;
    all = all && is != Reader::kNotYet;
    if (is != Reader::kHere) continue;
    const Generation generation = generation_of(id);
    const auto given = given_.find({id, generation});
    const bool has_it =
        given != given_.end() && (given->second.over || (given->second.offset >= behind && !piece_->end));
    if (has_it) continue;
    all = false;
    missing[{core_.placement().host_of(id), generation}].push_back(id);
  }
  if (!any) return answer(Error{ErrorCode::kNotFound, "no rank reads it any more"});
  if (all) {
    done_ = behind;
    over_ = piece_->end;
    return answer(std::string("taken"));
  }
  for (auto& [where, ranks] : missing) {
    if (!send) break;
    options_.send(where.first, Input{.ranks = std::move(ranks),
                                     .generation = where.second,
                                     .offset = piece_->offset,
                                     .bytes = piece_->bytes,
                                     .end = piece_->end});
  }
  again_later();
}

void InputDesk::again_later() {
  if (std::exchange(again_, true)) return;
  options_.at(options_.now() + kAgain, [this] {
    again_ = false;
    go_on(true);
  });
}

void InputDesk::answer(Result<std::string> with) {
  piece_.reset();
  if (const Answer told = std::exchange(answer_, {})) told(std::move(with));
}

}  // namespace monarch
