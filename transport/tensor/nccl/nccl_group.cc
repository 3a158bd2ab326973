#include "transport/tensor/nccl/nccl_group.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <limits>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "transport/base/assert.h"
#include "transport/base/clock.h"
#include "transport/base/system/thread_limits.h"
#include "transport/base/text.h"
#include "transport/loop/no_signals.h"
#include "transport/tensor/core/nccl_life.h"

namespace monarch::tensor {

namespace {

// Between two looks at what has no descriptor: an answer mostly comes at once, and one that is late is not sooner for
// being asked for often.
constexpr Duration kFirstPause = Duration::microseconds(20);
constexpr Duration kLastPause = Duration::milliseconds(1);
// An error of NCCL's names no cause: the roster does, mostly a little later.
constexpr Duration kCausePatience = Duration::milliseconds(500);
// Memory is better free when a call returns; who waits for a peer that is gone is not to wait for long.
constexpr Duration kReturnPatience = Duration::milliseconds(500);
// That somebody is in a call that never blocks.
constexpr Duration kCallPatience = Duration::seconds(5);

std::chrono::nanoseconds as_chrono(Duration time) { return std::chrono::nanoseconds(time.count_nanoseconds()); }

}  // namespace

struct NcclGroup::Shared {
  Shared(NcclMeans with, NcclMember of)
      : means(std::move(with)), member(std::move(of)), label(text("group ", member.group)), life(label) {}

  // Its own thread.
  void watch();
  void wait_for_end();
  void abort();

  // `tells`: the others, who know nothing of it.
  void end(const std::string& cause, bool tells);
  Error fail(const char* what, const Error& error);
  // The answer to who has asked for something when it ended.
  Error gone();
  Error named(const Error& error) const {
    return {error.code, text(label, ": member ", member.place.rank, " of ", member.place.size, ", on GPU ",
                             member.device, ": ", error.message)};
  }
  // NCCL is called with the context of the GPU. Nothing: it has ended before, and was not asked.
  template <class Ask>
  std::optional<NcclAnswer> ask(const Ask& ask_nccl);
  // Until what was asked for is done. `what` is the call that errors name.
  Status settle(const char* what, std::optional<NcclAnswer> answer, Instant until);
  // Whether it has ended until then.
  bool pause(Duration time);

  const NcclMeans means;
  const NcclMember member;
  const std::string label;
  std::thread thread;

  std::mutex mutex;
  std::condition_variable changed;
  NcclLife life;
  std::unique_ptr<NcclComm> comm;  // set once, by who is in the call that makes it
  bool tells = false;
  bool turn = false;  // somebody has asked for work, and is not answered
};

// That a call still waits, for people.
class NcclGroup::Notice {
 public:
  Notice(const Shared& shared, const char* what) : shared_(shared), what_(what) {}

  void look(Instant now) {
    if (now < say_at_) return;
    say_at_ = now + shared_.means.waiting_every;
    const NcclPlace& place = shared_.member.place;
    shared_.means.say(text(shared_.label, ": member ", place.rank, " of ", place.size, ", on GPU ",
                           shared_.member.device, ": ", what_, " has not ended since ", to_text(now - begun_)));
  }

 private:
  const Shared& shared_;
  const char* const what_;
  const Instant begun_ = boot_now();
  Instant say_at_ = begun_ + shared_.means.waiting_every;
};

// Of who may ask for work: one at a time.
class NcclGroup::Turn {
 public:
  Turn(Shared& shared, Instant until) : shared_(shared) {
    std::unique_lock lock(shared.mutex);
    const auto free = [&] { return !shared.turn || shared.life.has_ended(); };
    while (!free() && boot_now() < until) (void)shared.changed.wait_for(lock, as_chrono(kLastPause * 10), free);
    has_ = !shared.turn && !shared.life.has_ended();
    if (has_) shared.turn = true;
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() {
    if (!has_) return;
    const std::lock_guard lock(shared_.mutex);
    shared_.turn = false;
    shared_.changed.notify_all();
  }

  Status status(const char* what) const {
    if (has_) return {};
    {
      const std::lock_guard lock(shared_.mutex);
      if (shared_.life.has_ended()) return shared_.life.gone();
    }
    return Error{ErrorCode::kTimeout, text(shared_.label, ": ", what, ": another thread's call is not done yet")};
  }

 private:
  Shared& shared_;
  bool has_ = false;
};

// ---- Its own thread.

void NcclGroup::Shared::watch() {
  wait_for_end();
  abort();
}

void NcclGroup::Shared::wait_for_end() {
  means.tie->wait([this] {
    const std::lock_guard lock(mutex);
    return life.has_ended();
  });
  // Of what ended at once the first counts.
  if (const std::optional<std::string> why = means.tie->lost()) end(*why, false);
}

void NcclGroup::Shared::abort() {
  std::string cause;
  {
    std::unique_lock lock(mutex);
    cause = life.gone().message;
    if (tells) {
      lock.unlock();
      means.tie->leave(cause);
      lock.lock();
    }
    // Without a communicator there is nothing that could end the call which makes one.
    while (!changed.wait_for(lock, as_chrono(kCallPatience), [&] { return life.begin_abort(true); })) {
      if (comm != nullptr && life.begin_abort(false)) break;
    }
  }
  if (comm != nullptr) {
    const auto scope = means.cuda->enter(member.device);
    const Status aborted = comm->abort();
    if (!scope.ok()) means.say(text(named(scope.error()).message, " (at the end of the group)"));
    if (!aborted.ok()) means.say(text(named(aborted.error()).message, " (at the end of the group)"));
  }
  const std::lock_guard lock(mutex);
  life.over();
  changed.notify_all();
}

// ---- Ends.

void NcclGroup::Shared::end(const std::string& cause, bool others_are_told) {
  {
    const std::lock_guard lock(mutex);
    if (!life.end(cause)) return;
    tells = others_are_told;
    changed.notify_all();
  }
  means.tie->wake();
}

bool NcclGroup::Shared::pause(Duration time) {
  std::unique_lock lock(mutex);
  return changed.wait_for(lock, as_chrono(time), [&] { return life.has_ended(); });
}

Error NcclGroup::Shared::gone() {
  std::unique_lock lock(mutex);
  const auto over = [&] { return life.phase() == NcclLife::Phase::kOver; };
  (void)changed.wait_for(lock, as_chrono(kReturnPatience), over);
  return life.gone();
}

Error NcclGroup::Shared::fail(const char* what, const Error& error) {
  // What was asked for in a wrong way is nobody's death.
  if (pause(error.code == ErrorCode::kInvalid ? Duration::zero() : kCausePatience)) return gone();
  Error said = named(error);
  end(text(what, " has failed in member ", member.place.rank, ": ", error.message), true);
  (void)gone();
  return said;
}

// ---- Calls.

template <class Ask>
std::optional<NcclAnswer> NcclGroup::Shared::ask(const Ask& ask_nccl) {
  {
    const std::lock_guard lock(mutex);
    if (!life.enter()) return std::nullopt;
  }
  const auto scope = means.cuda->enter(member.device);
  NcclAnswer answer = scope.ok() ? ask_nccl() : NcclAnswer(scope.error());
  const std::lock_guard lock(mutex);
  life.leave();
  changed.notify_all();
  return answer;
}

Status NcclGroup::Shared::settle(const char* what, std::optional<NcclAnswer> answer, Instant until) {
  Notice notice(*this, what);
  for (Duration time = kFirstPause;; time = std::min(time * 2, kLastPause)) {
    if (!answer) return gone();
    if (!answer->ok()) return fail(what, answer->error());
    if (**answer) return {};
    if (pause(time)) return gone();
    const Instant now = boot_now();
    notice.look(now);
    if (now >= until) {
      const std::string late = text(what, " was not done by its deadline");
      end(text(late, " in member ", member.place.rank), true);
      (void)gone();
      return named({ErrorCode::kTimeout, late});
    }
    answer = ask([&] { return comm->done(); });
  }
}

Result<std::unique_ptr<NcclGroup>> NcclGroup::open(NcclMeans means, NcclMember member, Duration timeout) {
  const NcclPlace& place = member.place;
  if (place.id.size() != kNcclIdBytes || place.rank >= place.size ||
      place.size > std::uint32_t{std::numeric_limits<int>::max()}) {
    return Error{ErrorCode::kInvalid, text("group ", member.group, ": member ", place.rank, " of ", place.size,
                                           ", with an id of ", place.id.size(), " bytes")};
  }
  const auto shared = std::make_shared<Shared>(std::move(means), std::move(member));
  const NoSignals none;
  try {
    shared->thread = std::thread([shared] { shared->watch(); });
  } catch (const std::system_error& error) {
    return thread_error(error.code().value());
  }
  std::unique_ptr<NcclGroup> made(new NcclGroup(shared));
  MONARCH_TRY(made->join(boot_now() + timeout));
  return made;
}

Status NcclGroup::join(Instant until) {
  auto begun = shared_->ask([&]() -> NcclAnswer {
    NcclLibrary::Begun made = shared_->means.nccl->begin(shared_->member.place);
    const std::lock_guard lock(shared_->mutex);
    shared_->comm = std::move(made.comm);
    return std::move(made.answer);
  });
  return shared_->settle("joining", std::move(begun), until);
}

NcclGroup::~NcclGroup() {
  shared_->end("this member has left it", true);
  bool over = false;
  {
    std::unique_lock lock(shared_->mutex);
    over = shared_->changed.wait_for(lock, as_chrono(shared_->means.abort_patience),
                                     [&] { return shared_->life.phase() == NcclLife::Phase::kOver; });
  }
  if (over) {
    shared_->thread.join();
    return;
  }
  shared_->means.say(text(shared_->label, ": NCCL has not ended it within ", to_text(shared_->means.abort_patience),
                          ": its thread is left behind"));
  shared_->thread.detach();
}

Status NcclGroup::check_memory(const char* which, const void* at) const {
  const auto device = shared_->means.cuda->device_of(static_cast<const char*>(at));
  if (!device.ok()) return Error{device.error().code, text(which, ": ", device.error().message)};
  if (*device == shared_->member.device) return {};
  return Error{ErrorCode::kInvalid, text(which, ": its memory is of GPU ", *device)};
}

// NCCL looks at no pointer by itself: what is wrong of one ends a GPU's whole context.
Status NcclGroup::check(const NcclWork& work) const {
  const auto invalid = [&](const std::string& words) { return Error{ErrorCode::kInvalid, words}; };
  const bool reduces = work.call == NcclCall::kAllReduce || work.call == NcclCall::kReduceScatter;
  const bool with_peer = work.call == NcclCall::kSend || work.call == NcclCall::kReceive;
  const NcclPlace& place = shared_->member.place;
  const std::uint64_t bytes = element_bytes(work.dtype);
  if (bytes == 0) return invalid(text("elements of ", to_text(work.dtype), " do not lie in whole bytes"));
  if (work.count > std::uint64_t{std::numeric_limits<std::int64_t>::max()} / bytes / place.size) {
    return invalid(text(work.count, " elements of ", to_text(work.dtype), " are more than there can be"));
  }
  if (reduces) MONARCH_TRY(shared_->means.nccl->check_reduces(work.dtype));
  if ((with_peer || work.call == NcclCall::kBroadcast) && work.peer >= place.size) {
    return invalid(text("there is no member ", work.peer));
  }
  if (with_peer && work.peer == place.rank) return invalid("that is this member itself");
  if (work.count == 0) return {};
  const bool gives = work.call != NcclCall::kReceive && (work.call != NcclCall::kBroadcast || work.peer == place.rank);
  if (gives) MONARCH_TRY(check_memory("from", work.from));
  if (work.call != NcclCall::kSend) MONARCH_TRY(check_memory("to", work.to));
  return {};
}

Status NcclGroup::run(const NcclWork& work, Duration timeout) {
  const char* const what = nccl_call_name(work.call);
  const Instant until = boot_now() + timeout;
  if (shared_->pause(Duration::zero())) return shared_->gone();
  const Status fits = check(work);
  if (!fits.ok()) return shared_->named({fits.error().code, text(what, ": ", fits.error().message)});
  const Turn turn(*shared_, until);
  MONARCH_TRY(turn.status(what));
  return shared_->settle(what, shared_->ask([&] { return shared_->comm->enqueue(work); }), until);
}

Status NcclGroup::wait(std::uint64_t stream, Duration timeout) {
  const Instant until = boot_now() + timeout;
  const CudaStream at{shared_->member.device, stream};
  if (shared_->pause(Duration::zero())) return shared_->gone();
  MONARCH_TRY(shared_->means.cuda->check(at));
  MONARCH_ASSIGN(const auto event, shared_->means.cuda->record(at));
  Notice notice(*shared_, "wait");
  for (Duration time = kFirstPause;; time = std::min(time * 2, kLastPause)) {
    const auto state = shared_->ask([&] { return shared_->comm->done(); });
    if (!state) return shared_->gone();
    if (!state->ok()) return shared_->fail("wait", state->error());
    const auto done = event->is_done();
    if (!done.ok()) return shared_->fail("wait", done.error());
    if (*done) return {};
    const Instant now = boot_now();
    notice.look(now);
    if (now >= until) {
      return shared_->named({ErrorCode::kTimeout, "what is enqueued has not ended by the deadline"});
    }
    if (shared_->pause(time)) return shared_->gone();
  }
}

Status NcclGroup::close(Duration timeout) {
  const Instant until = boot_now() + timeout;
  const Turn turn(*shared_, until);
  MONARCH_TRY(turn.status("close"));
  MONARCH_TRY(shared_->settle("close", shared_->ask([&] { return shared_->comm->flush(); }), until));
  const Status all_here = shared_->means.tie->finish(until);
  if (!all_here.ok()) {
    if (shared_->pause(Duration::zero())) return shared_->gone();
    return shared_->fail("close", all_here.error());
  }
  shared_->end("it was closed", false);
  (void)shared_->gone();
  return {};
}

}  // namespace monarch::tensor
