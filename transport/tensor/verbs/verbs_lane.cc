#include "transport/tensor/verbs/verbs_lane.h"

#include <poll.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/tensor/core/slot_word.h"

namespace monarch::tensor {

namespace {

const LaneWork kNoWork;
constexpr int kRounds = 8;  // of completions, before others are looked at

}  // namespace

VerbsLane::VerbsLane(std::unique_ptr<TcpLane> link, Destination& destination, VerbsDestination& known, Options options)
    : link_(std::move(link)), destination_(destination), known_(known), options_(std::move(options)) {
  link_->hear_others([this](const StreamLink::Received& word) { return heard(word); });
  const Status started = start_meeting();
  if (!started.ok()) stop_verbs(started.error().message);
}

VerbsLane::~VerbsLane() {
  if (queue_ && posted_ != done_) (void)drain();  // the queue's end is that of all that it has under way
  queue_.reset();
  drop_rooms();
}

// ---- Meeting the owner.

Status VerbsLane::start_meeting() {
  VerbsDevice* const device = known_.device();
  if (device == nullptr) return Error{ErrorCode::kNotFound, known_.why_not()};
  MONARCH_TRY(known_.know());
  MONARCH_ASSIGN(words_memory_,
                 device->know(reinterpret_cast<char*>(words_.get()), sizeof *words_, VerbsAccess::kFilledHere));
  MONARCH_ASSIGN(OwnQueue made, make_own_queue(*device, kUnderWay, options_.towards, {}));
  queue_ = std::move(made.queue);
  own_ = made.address;
  gid_index_ = made.gid_index;
  link_->say({.kind = FrameKind::kVerbs}, codec::encode(VerbsWord{.why_not = {}, .address = own_}));
  return {};
}

Status VerbsLane::heard(const StreamLink::Received& word) {
  if (word.frame.kind == FrameKind::kVerbs) {
    VerbsWord theirs;
    codec::DecodeError error;
    const bool is_word = codec::decode(word.behind, theirs, error);
    if (!is_word) return Error{ErrorCode::kInvalid, "what it says of its queue is none"};
    const Status done = met(theirs);
    if (!done.ok()) stop_verbs(done.error().message);
    return {};
  }
  if (asked_ == 0 || (word.frame.flags & kByKey) == 0)
    return Error{ErrorCode::kInvalid, "it says what nobody has asked"};
  --asked_;
  return heard_slot(word.frame);
}

Status VerbsLane::met(const VerbsWord& theirs) {
  if (!queue_) return {};
  // After the meeting it says so when a slot of it cannot be READ.
  if (!theirs.why_not.empty()) return Error{ErrorCode::kUnsupported, printable(theirs.why_not)};
  if (met_) return {};
  MONARCH_ASSIGN(const QueuePath path, meet_queues(own_, gid_index_, theirs.address));
  MONARCH_TRY(queue_->connect(path));
  met_ = true;
  if (work_ != nullptr) look();
  return {};
}

// ---- A fetch.

void VerbsLane::begin(const VersionId& version, const LaneWork& work) {
  version_ = version;
  work_ = &work;
  long_over_link_ = false;
  split(work);
  phase_ = queue_ ? Phase::kIdle : Phase::kOverLink;
  if (!queue_) {
    link_->begin(version, options_.tcp ? work : kNoWork);
    return;
  }
  if (short_.pieces.empty()) {
    link_->say({.kind = FrameKind::kReading, .version = version});
  } else {
    link_->begin(version, short_);
  }
  if (!met_) return;
  look();
  if (queue_) take_completions();
}

void VerbsLane::split(const LaneWork& work) {
  short_ = long_ = LaneWork{.pieces = {}, .bytes = 0, .slot_bytes = work.slot_bytes};
  for (const Piece& piece : work.pieces) {
    LaneWork& of = piece.row < known_.short_row() ? short_ : long_;
    of.pieces.push_back(piece);
    of.bytes += piece.bytes();
  }
}

void VerbsLane::look() {
  if (long_.pieces.empty()) {
    phase_ = Phase::kAllHere;
    word_ = word_of(version_.number);
    return;
  }
  if (views_.empty()) return ask_slot();
  phase_ = Phase::kLooking;
  for (std::size_t i = 0; i < views_.size() && queue_; ++i) post_word(views_[i], i);
}

void VerbsLane::ask_slot() {
  phase_ = Phase::kAsking;
  ++asked_;
  link_->say({.kind = FrameKind::kSlot, .flags = kByKey, .version = version_});
}

// That of a fetch that was stopped is taken as well: the next one finds it.
Status VerbsLane::heard_slot(const LinkFrame& frame) {
  const bool wanted = phase_ == Phase::kAsking && frame.version == version_;
  if (frame.length == 0) {
    if (!wanted) return {};
    phase_ = Phase::kAllHere;
    word_ = 0;
    return {};
  }
  const View view{.slot = frame.slot, .serial = frame.offset, .bytes = frame.length, .key = frame.rows};
  const auto known =
      std::find_if(views_.begin(), views_.end(), [&](const View& one) { return one.slot == frame.slot; });
  if (known != views_.end()) {
    *known = view;
  } else if (views_.size() < kViews) {
    views_.push_back(view);
  }
  if (!wanted || !queue_) return {};
  if (view.bytes < long_.slot_bytes) {
    return Error{ErrorCode::kInvalid,
                 text("a slot of ", view.bytes, " bytes, and its index speaks of ", long_.slot_bytes)};
  }
  view_ = view;
  phase_ = Phase::kRows;
  next_ = {};
  post_rows();
  return {};
}

void VerbsLane::post_rows() {
  while (queue_ && posted_ - done_ < kUnderWay && next_.piece < long_.pieces.size()) {
    const Piece& piece = long_.pieces[next_.piece];
    if (!next_.room) next_.room = destination_.room(piece);
    waits_for_room_ = !next_.room;
    if (waits_for_room_) return;
    VerbsRead read;
    read.from = piece.source + next_.row * piece.source_pitch + next_.at;
    read.into = next_.room->at + next_.row * next_.room->pitch + next_.at;
    read.bytes = static_cast<std::uint32_t>(std::min<std::uint64_t>(kReadBytes, piece.row - next_.at));
    read.local_key = known_.key_of(read.into);
    read.remote_key = view_.key;
    next_.at += read.bytes;
    if (next_.at == piece.row) {
      next_.at = 0;
      if (++next_.row == piece.rows) {
        filling_.push_back({next_.piece, *next_.room, posted_});
        next_ = {.piece = next_.piece + 1, .row = 0, .at = 0};
      }
    }
    // The last one before a room is waited for is told as well: what it is of leaves one.
    const bool has_ended = next_.row == 0 && next_.at == 0 && piece.device != kHostMemory;
    read.told = (posted_ + 1) % kToldEvery == 0 || next_.piece == long_.pieces.size() || has_ended;
    post(read);
  }
}

void VerbsLane::take_filled() {
  while (!filling_.empty() && filling_.front().last < done_) {
    const Filling& first = filling_.front();
    destination_.filled(long_.pieces[first.piece], first.room);
    filling_.pop_front();
  }
}

void VerbsLane::drop_rooms() {
  for (const Filling& one : filling_) destination_.drop(one.room);
  filling_.clear();
  if (next_.room) destination_.drop(*next_.room);
  next_.room.reset();
  waits_for_room_ = false;
}

void VerbsLane::post_word(const View& view, std::size_t into) {
  words_->words[into] = 0;
  post({.into = reinterpret_cast<char*>(&words_->words[into]),
        .local_key = words_memory_->local_key(),
        .from = 0,
        .remote_key = view.key,
        .bytes = sizeof(std::uint64_t)});
}

void VerbsLane::post(VerbsRead read) {
  read.id = posted_;
  const Status posted = queue_->post(read);
  if (!posted.ok()) return stop_verbs(posted.error().message);
  ++posted_;
}

void VerbsLane::take_completions() {
  if (queue_->was_woken()) armed_ = false;
  for (int rounds = 0;; ++rounds) {
    // Others have their turn: a card may be as fast as this looks.
    more_ = rounds == kRounds;
    if (more_) return;
    const auto taken = queue_->take(kUnderWay);
    if (!taken.ok()) return stop_verbs(taken.error().message);
    if (!count(*taken)) return stop_verbs(text("a READ failed: ", failure_));
    if (!taken->empty()) {
      completed();
      if (!queue_) return;
      continue;
    }
    if (armed_ || done_ == posted_) return;
    const Status armed = queue_->arm();
    if (!armed.ok()) return stop_verbs(armed.error().message);
    armed_ = true;
  }
}

bool VerbsLane::count(const std::vector<VerbsCompletion>& taken) {
  for (const VerbsCompletion& one : taken) {
    done_ = one.id + 1;
    if (failure_.empty()) failure_ = one.error;
  }
  return failure_.empty();
}

void VerbsLane::completed() {
  switch (phase_) {
    case Phase::kLooking: {
      if (done_ != posted_) return;
      std::atomic_thread_fence(std::memory_order_acquire);
      for (std::size_t i = 0; i < views_.size(); ++i) {
        if (words_->words[i] != word_of(version_.number) || views_[i].bytes < long_.slot_bytes) continue;
        view_ = views_[i];
        phase_ = Phase::kRows;
        next_ = {};
        return post_rows();
      }
      return ask_slot();
    }
    case Phase::kRows:
      take_filled();
      post_rows();
      if (!queue_ || done_ != posted_ || next_.piece < long_.pieces.size()) return;
      phase_ = Phase::kWord;
      return post_word(view_, 0);
    case Phase::kWord:
      std::atomic_thread_fence(std::memory_order_acquire);
      word_ = words_->words[0];
      phase_ = Phase::kAllHere;
      return;
    case Phase::kIdle:
    case Phase::kAsking:
    case Phase::kAllHere:
    case Phase::kOverLink: return;  // nothing is under way
  }
}

void VerbsLane::poll_for(std::vector<pollfd>& descriptors) const {
  link_->poll_for(descriptors);
  if (queue_ && posted_ != done_) descriptors.push_back({queue_->descriptor(), POLLIN, 0});
}

Status VerbsLane::go_on() {
  MONARCH_TRY(broken_);
  MONARCH_TRY(link_->go_on());
  if (queue_ && waits_for_room_ && phase_ == Phase::kRows) post_rows();
  if (queue_ && posted_ != done_) take_completions();
  if (phase_ == Phase::kOverLink) MONARCH_TRY(go_over_link());
  return broken_;
}

// ---- Where READs lead nowhere.

// The slots' memory is not asked any more; what it was asked for comes over the link, if it may, else the link is asked
// whether he lives: that is for it to say.
void VerbsLane::stop_verbs(const std::string& why) {
  if (!why_not_.empty()) return;
  why_not_ = why;
  if (queue_ && posted_ != done_) (void)drain();
  queue_.reset();
  drop_rooms();
  more_ = false;
  views_.clear();
  if (work_ == nullptr) return;
  phase_ = Phase::kOverLink;
  long_over_link_ = true;
}

Status VerbsLane::go_over_link() {
  if (long_over_link_) {
    if (!short_.pieces.empty()) {
      const auto word = link_->word();
      if (!word) return {};
      if (*word != word_of(version_.number)) {
        phase_ = Phase::kAllHere;
        word_ = *word;
        return {};
      }
    }
    long_over_link_ = false;
    link_->begin(version_, options_.tcp ? long_ : kNoWork);
    MONARCH_TRY(link_->go_on());
  }
  if (options_.tcp || !link_->word()) return {};
  return Error{ErrorCode::kTimeout,
               text("no common transport: tcp is not among `tensors.transports`, and verbs: ", why_not_)};
}

bool VerbsLane::drain() {
  queue_->set_error();
  const Instant until = boot_now() + kDrain;
  while (posted_ != done_) {
    const auto taken = queue_->take(kUnderWay);
    if (!taken.ok()) return false;
    (void)count(*taken);  // they were made to fail
    if (!taken->empty()) continue;
    const Instant now = boot_now();
    if (now >= until || !queue_->arm().ok()) return false;
    const auto more = queue_->take(kUnderWay);
    if (!more.ok()) return false;
    (void)count(*more);
    if (!more->empty()) continue;
    pollfd waiting{queue_->descriptor(), POLLIN, 0};
    (void)::poll(&waiting, 1, EventLoop::wait_milliseconds(now, until));  // a signal: it is all looked at again
    (void)queue_->was_woken();                                            // it is armed anew
  }
  return true;
}

std::optional<std::uint64_t> VerbsLane::word() {
  if (work_ == nullptr) return std::nullopt;
  if (phase_ == Phase::kOverLink) {
    return long_over_link_ || !options_.tcp ? std::nullopt : link_->word();
  }
  if (phase_ != Phase::kAllHere) return std::nullopt;
  if (word_ != word_of(version_.number) || short_.pieces.empty()) return word_;
  return link_->word();
}

bool VerbsLane::stop() {
  work_ = nullptr;
  phase_ = Phase::kIdle;
  const bool is_idle = link_->stop();
  const bool has_ended = !queue_ || posted_ == done_;
  if (!has_ended) {
    (void)drain();  // else its end is that of all that it has under way
    queue_.reset();
    more_ = false;
  }
  drop_rooms();
  return has_ended && is_idle && broken_.ok();
}

}  // namespace monarch::tensor
