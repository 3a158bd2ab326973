#include "worker/rank/calls.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "worker/rank/buffers.h"
#include "worker/rank/call_messages.h"

namespace monarch {

namespace {

// A post that has ended is started again within a second.
constexpr Duration kPostPatience = Duration::seconds(5);
// A post that lives says itself that a deadline has passed, and what has ended until then.
constexpr Duration kPostsWord = Duration::milliseconds(100);
// Who has so many more calls under way than those that are waited for calls on while another thread reads.
constexpr std::size_t kManyMore = 8;
// What callbacks call while the post is away.
constexpr std::size_t kUnsent = 1'024;
// One that is busy with what this process has called says it later.
constexpr Duration kRingPatience = Duration::seconds(1);

// Its sender hears when nobody reads it any more, be it that nobody could.
Result<DoorBody> take_value(const DoorThread::Connection& by, const PostAnswer& answer, std::vector<UniqueFd>& beside) {
  const CallBody& of = answer.outcome.body;
  if (by == nullptr) return DoorBody::take(of, beside);
  auto body = by->take(of, beside);
  if (of.way != BodyWay::kBeside || of.block == 0) return body;
  const auto tell = [by = std::weak_ptr(by), id = answer.id, rank = answer.rank] {
    if (const auto connection = by.lock()) connection->let_go({.id = id, .rank = rank});
  };
  if (body.ok()) {
    body->readers()->when_none(tell);
  } else {
    tell();
  }
  return body;
}

}  // namespace

void Calls::stop() {
  std::shared_ptr<DoorThread> ended;
  {
    const std::lock_guard lock(starting_);
    const std::lock_guard also(mutex_);
    stopped_ = true;
    ended = door_;
  }
  if (ended != nullptr) ended->stop();
  std::map<std::uint64_t, Call> left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(calls_);
    dues_.clear();
    attended_ = under_way_ = 0;
  }
  for (const auto& [number, call] : left) end(call, {MONARCH_GONE, "this process ends"});
}

Result<std::shared_ptr<DoorThread>> Calls::door() {
  const std::lock_guard lock(starting_);
  if (stopped_) return Error{ErrorCode::kGone, "this process is about to end"};
  if (door_ == nullptr) {
    MONARCH_ASSIGN(
        door_, DoorThread::start(
                   door_path_, hello_,
                   {.came =
                        [this](const DoorThread::Connection& connection) {
                          came(connection);
                          send_unsent(connection);
                        },
                    .heard = [this](const DoorThread::Connection&, DoorClient::Heard& heard) { this->heard(heard); },
                    .ended = [this](const DoorThread::Connection& connection,
                                    const std::string& why) { end_all_of(connection, why); },
                    .look = [this] { return expire(); },
                    .wanted = [this](std::size_t waiting) { return wants_own_thread(waiting); },
                    .cut_off = cut_off_},
                   memory_));
  }
  return door_;
}

void Calls::came(const DoorThread::Connection& connection) {
  const std::lock_guard lock(mutex_);
  live_ = connection;
  mesh_names_.clear();
  for (const RosterMesh& mesh : connection->welcome().meshes) {
    mesh_names_.push_back(mesh.name);
    meshes_.try_emplace(mesh.name, mesh);
  }
}

void Calls::send_unsent(const DoorThread::Connection& connection) {
  std::vector<Unsent> unsent;
  {
    const std::lock_guard lock(mutex_);
    unsent.swap(unsent_);
    for (const Unsent& one : unsent) calls_.at(one.message.id).by = connection;
  }
  for (Unsent& one : unsent) {
    const std::uint64_t number = one.message.id;
    const Status sent = connection->send(std::move(one.message), one.arguments);
    if (sent.ok() || sent.error().code == ErrorCode::kGone) continue;
    if (const auto not_sent = take(number)) end(*not_sent, {MONARCH_REFUSED, sent.error().message});
  }
}

std::uint64_t Calls::call(const monarch_call_v1& asked) {
  const Instant now = boot_now();
  PostCall message = message_of(asked, now);
  const BodyPieces arguments = arguments_of(asked);
  Call call{.by = nullptr,
            .mesh = message.mesh,
            .actor = message.target.actor,
            .bytes = arguments.bytes(),
            .since = now,
            .deadline = message.deadline,
            .ranks = message.ranks,
            .answered = {},
            .waited = Call::Waited::kNot,
            .ring = {},
            .any_thread = (asked.flags & MONARCH_CALL_ANY_THREAD) != 0,
            .on_answer = asked.on_answer,
            .user = asked.user};
  const auto found = door();
  const std::shared_ptr<DoorThread> by = found.ok() ? *found : nullptr;
  const std::string no_answer = found.ok() ? "the post of this host does not answer" : found.error().message;
  const bool tries = (asked.flags & MONARCH_CALL_TRY) != 0;
  const Instant patience = now + (tries ? Duration::zero() : kPostPatience);
  const bool by_deadline = message.deadline && *message.deadline < patience;
  for (;;) {
    if (by != nullptr) call.by = by->wait(by_deadline ? *message.deadline : patience);
    std::unique_lock lock(mutex_);
    if (call.by != nullptr && call.by != live_) continue;  // it has ended just now
    message.id = next_++;
    if (stopped_) return message.id;  // nobody hears of it any more: the process ends
    if (call.by == nullptr && by != nullptr && by->is_here() && unsent_.size() < kUnsent) {
      unsent_.push_back({std::move(message), arguments.joined()});
      if (enter(unsent_.back().message.id, call)) by->wake();
      return unsent_.back().message.id;
    }
    const std::string busy = tries && call.by != nullptr ? why_busy(call) : std::string();
    if (call.by != nullptr && busy.empty()) {
      if (enter(message.id, call)) by->wake();
      lock.unlock();
      if (!call.any_thread) by->attend();
      break;
    }
    lock.unlock();
    if (tries) {
      end(call, {MONARCH_BUSY, busy.empty() ? text(no_answer, " just now") : busy});
      return message.id;
    }
    const bool late = by != nullptr && by_deadline;
    end(call,
        late ? Ending{MONARCH_DEADLINE, text("it was not sent: ", no_answer)} : Ending{MONARCH_REFUSED, no_answer});
    return message.id;
  }
  const std::uint64_t number = message.id;
  const Status sent = call.by->send(std::move(message), arguments);
  if (sent.ok() || sent.error().code == ErrorCode::kGone) return number;  // the end of a connection is heard
  const bool late = sent.error().code == ErrorCode::kTimeout;
  if (const auto not_sent = take(number)) {
    end(*not_sent, late ? Ending{MONARCH_DEADLINE, "it was not sent: the post of this host does not read"}
                        : Ending{MONARCH_REFUSED, sent.error().message});
  }
  return number;
}

bool Calls::enter(std::uint64_t number, const Call& call) {
  Call& entered = calls_.emplace(number, call).first->second;
  ++under_way_;
  if (!call.any_thread) attend(entered);
  if (!call.deadline) return false;
  const Instant due = *call.deadline + kPostsWord;
  dues_.emplace(due, number);
  if (due >= next_look_) return false;
  next_look_ = due;
  return true;
}

void Calls::forget(std::uint64_t number, const Call& call) {
  if (call.deadline) dues_.erase({*call.deadline + kPostsWord, number});
  if (call.attended) --attended_;
  --under_way_;
}

bool Calls::wants_own_thread(std::size_t waiting) const { return attended_ > 0 || under_way_ >= waiting + kManyMore; }

void Calls::attend(Call& call) {
  if (!std::exchange(call.attended, true)) ++attended_;
}

void Calls::attend(std::uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    const auto call = calls_.find(number);
    if (call == calls_.end()) return;
    attend(call->second);
  }
  if (const auto by = open_door()) by->attend();
}

Instant Calls::expire() {
  std::vector<Call> late;
  Instant next;
  const Instant now = boot_now();
  {
    const std::lock_guard lock(mutex_);
    while (!dues_.empty() && dues_.begin()->first <= now) {
      const std::uint64_t number = dues_.begin()->second;
      std::erase_if(unsent_, [number](const Unsent& one) { return one.message.id == number; });
      late.push_back(std::move(calls_.extract(number).mapped()));
      forget(number, late.back());
    }
    next = next_look_ = dues_.empty() ? Instant::never() : dues_.begin()->first;
  }
  if (!late.empty()) asked_.notify_all();
  for (const Call& call : late) {
    end(call, {MONARCH_DEADLINE, text("its deadline has passed, after ", to_text(*call.deadline - call.since),
                                      ", and the post of this host says nothing")});
  }
  return next;
}

std::string Calls::why_busy(const Call& call) const {
  const PostWelcome& may = call.by->welcome();
  std::uint64_t bytes = 0;
  std::vector<const Call*> there;  // at the same actor
  for (const auto& [number, one] : calls_) {
    bytes += one.bytes;
    if (one.mesh == call.mesh && one.actor == call.actor) there.push_back(&one);
  }
  const bool is_full = calls_.size() >= may.calls || bytes + call.bytes > may.call_bytes;
  if (is_full && !calls_.empty()) {
    return text(calls_.size(), " calls of ", amount_text(bytes), " are under way by this process");
  }
  for (const RankSteps& steps : call.ranks) {
    for (std::uint32_t i = 0; i < steps.count; ++i) {
      const std::uint32_t rank = steps.first + i * steps.step;
      std::size_t calls = 0;
      std::uint64_t held = 0;
      for (const Call* const one : there) {
        const bool waits =
            are_named(one->ranks, rank) && std::count(one->answered.begin(), one->answered.end(), rank) == 0;
        calls += waits ? 1 : 0;
        held += waits ? one->bytes : 0;
      }
      if (calls > 0 && (calls >= kWindowCalls || held + call.bytes > kWindowBytes)) {
        return text(calls, " calls of ", amount_text(held), " are under way at ", call.actor, " of ", call.mesh, '/',
                    rank);
      }
    }
  }
  return "";
}

// WARNING: nothing here waits for the post to read. One that has too much of this process' calls does not, and what it
// waits for may be the very actor that would wait here.
std::string Calls::begin_wait(std::uint64_t number, const std::string& actor, std::uint64_t delivery) {
  if (const auto by = open_door()) by->attend();  // this thread reads nothing meanwhile
  std::unique_lock lock(mutex_);
  auto call = calls_.find(number);
  if (call == calls_.end() || call->second.by == nullptr) return {};
  if (call->second.waited == Call::Waited::kNot) {
    const PostWait wait{.id = number, .actor = actor, .delivery = delivery};
    if (!call->second.by->try_to_send(wait).ok()) return {};  // it is asked again in a second
    call->second.waited = Call::Waited::kAsked;
  }
  const std::chrono::nanoseconds most(kRingPatience.count_nanoseconds());
  (void)asked_.wait_for(lock, most, [&] {
    call = calls_.find(number);
    return call == calls_.end() || call->second.waited == Call::Waited::kTold;
  });
  return call == calls_.end() ? std::string() : call->second.ring;
}

std::shared_ptr<DoorThread> Calls::open_door() {
  const std::lock_guard lock(starting_);
  return door_;
}

bool Calls::is_here() {
  const auto by = open_door();
  return by != nullptr && by->is_here();
}

bool Calls::read_until(const void* key, const std::function<bool()>& done, Instant until) {
  const auto by = open_door();
  return by != nullptr && by->read_until(key, done, until);
}

void Calls::wake_readers(const void* key) {
  if (const auto by = open_door()) by->wake_readers(key);
}

void Calls::run(std::function<void()> run) {
  if (const auto by = open_door()) return by->run(std::move(run));
  run();
}

void Calls::end_wait(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto call = calls_.find(number);
  if (call == calls_.end() || std::exchange(call->second.waited, Call::Waited::kNot) == Call::Waited::kNot) return;
  ended_waits_.push_back(number);
  say_ended_waits();
}

// What the post did not read then it is told when it says something: it reads again.
void Calls::say_ended_waits() {
  while (!ended_waits_.empty()) {
    const auto call = calls_.find(ended_waits_.back());
    if (call != calls_.end() && call->second.waited == Call::Waited::kNot) {
      const PostWait none{.id = call->first, .actor = {}, .delivery = 0};
      const Status sent = call->second.by->try_to_send(none);
      if (!sent.ok() && sent.error().code == ErrorCode::kBusy) return;
    }
    ended_waits_.pop_back();
  }
}

void Calls::told_ring(const PostRing& said) {
  {
    const std::lock_guard lock(mutex_);
    const auto call = calls_.find(said.id);
    if (call == calls_.end() || call->second.waited != Call::Waited::kAsked) return;
    call->second.waited = Call::Waited::kTold;
    call->second.ring = said.ring;
  }
  asked_.notify_all();
}

void Calls::cancel(std::uint64_t number) {
  DoorThread::Connection by;
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(number);
    if (found == calls_.end()) return;
    by = found->second.by;
    if (by == nullptr) std::erase_if(unsent_, [number](const Unsent& one) { return one.message.id == number; });
  }
  if (by != nullptr) return (void)by->send(PostCancel{number});  // where it has ended, so has the call
  if (const auto call = take(number)) end(*call, {MONARCH_CANCELLED, "its caller has cancelled it"});
}

Status Calls::wait() {
  MONARCH_ASSIGN(const std::shared_ptr<DoorThread> by, door());
  if (by->wait(Instant::never()) == nullptr) return Error{ErrorCode::kGone, "this process is about to end"};
  return {};
}

const RosterMesh* Calls::mesh(const std::string& name) {
  if (!wait().ok()) return nullptr;
  const std::lock_guard lock(mutex_);
  const auto found = meshes_.find(name);
  return found == meshes_.end() ? nullptr : &found->second;
}

void Calls::watch(std::function<void(const Failure&)> run) {
  {
    const std::lock_guard lock(mutex_);
    watcher_ = std::move(run);
  }
  (void)door();
}

std::optional<Calls::Call> Calls::take(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  auto node = calls_.extract(number);
  if (!node.empty()) forget(number, node.mapped());
  if (!node.empty() && node.mapped().waited == Call::Waited::kAsked) asked_.notify_all();
  return node.empty() ? std::nullopt : std::optional(std::move(node.mapped()));
}

void Calls::heard(DoorClient::Heard& heard) {
  // What a post says and this process does not know is a later one's.
  (void)route(heard.frame.header, heard.frame.payload,
              when<PostAnswer>([&](PostAnswer&& answer) { answered(std::move(answer), std::move(heard.descriptors)); }),
              when<PostOver>([&](PostOver&& said) { over(std::move(said)); }),
              when<PostAnswers>([&](PostAnswers&& said) {
                for (SaidAnswer& one : said.answers) {
                  answered({.id = one.id, .rank = one.rank, .outcome = std::move(one.outcome)}, {});
                  if (one.last) over({.id = one.id, .refused = {}});
                }
              }),
              when<PostRing>([&](PostRing&& said) { told_ring(said); }),
              when<PostFailure>([&](PostFailure&& failure) { failed(failure); }));
}

bool Calls::may_answer_here(std::uint64_t number) {
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(number);
    if (found == calls_.end() || found->second.any_thread) return true;
  }
  const auto by = open_door();
  return by == nullptr || by->is_own();
}

void Calls::answered(PostAnswer answer, std::vector<UniqueFd> beside) {
  if (may_answer_here(answer.id)) return answer_here(answer, beside);
  const auto kept =
      std::make_shared<std::pair<PostAnswer, std::vector<UniqueFd>>>(std::move(answer), std::move(beside));
  run([this, kept] { answer_here(kept->first, kept->second); });
}

void Calls::answer_here(const PostAnswer& answer, std::vector<UniqueFd>& beside) {
  void (*on_answer)(void*, const monarch_answer_v1*) = nullptr;
  void* user = nullptr;
  DoorThread::Connection by;
  {
    const std::lock_guard lock(mutex_);
    const auto found = calls_.find(answer.id);
    by = found == calls_.end() ? live_ : found->second.by;
    if (found != calls_.end()) {
      found->second.answered.push_back(answer.rank);
      say_ended_waits();
      on_answer = found->second.on_answer;
      user = found->second.user;
    }
  }
  const CallOutcome& outcome = answer.outcome;
  const auto body = take_value(by, answer, beside);
  if (on_answer == nullptr) return;  // nobody waits for it any more
  monarch_answer_v1 said = answer_of(answer.rank, kind_of(outcome.kind), outcome.text);
  said.generation = outcome.generation;
  said.type = outcome.type.c_str();
  said.traceback = outcome.traceback.c_str();
  if (!body.ok()) {
    said.kind = MONARCH_GONE;
    said.text = body.error().message.c_str();
    return on_answer(user, &said);
  }
  said.value = {body->bytes().data(), body->bytes().size()};
  const PresentValue present(said, *body);
  on_answer(user, &said);
}

void Calls::over(PostOver over) {
  if (may_answer_here(over.id)) return over_here(over);
  run([this, over = std::move(over)] { over_here(over); });
}

void Calls::over_here(const PostOver& over) {
  const auto call = take(over.id);
  if (!call) return;
  if (!over.refused.empty()) return end(*call, {MONARCH_REFUSED, over.refused});
  call->on_answer(call->user, nullptr);
}

void Calls::failed(const PostFailure& said) {
  const RosterFailure& failure = said.failure;
  std::function<void(const Failure&)> watcher;
  Failure told{.mesh = {}, .rank = failure.first.value(), .generation = failure.generation, .cause = failure.cause};
  {
    const std::lock_guard lock(mutex_);
    watcher = watcher_;
    if (failure.mesh.value() < mesh_names_.size()) told.mesh = mesh_names_[failure.mesh.value()];
  }
  if (watcher) run([watcher = std::move(watcher), told = std::move(told)] { watcher(told); });
}

void Calls::end_all_of(const DoorThread::Connection& connection, const std::string& why) {
  std::vector<Call> ended;
  {
    const std::lock_guard lock(mutex_);
    if (live_ == connection) live_ = nullptr;
    for (auto at = calls_.begin(); at != calls_.end();) {
      if (at->second.by != connection) {
        ++at;
        continue;
      }
      forget(at->first, at->second);
      ended.push_back(std::move(at->second));
      at = calls_.erase(at);
    }
  }
  asked_.notify_all();
  for (const Call& call : ended) end(call, {MONARCH_GONE, why});
}

void Calls::end(const Call& call, const Ending& ending) {
  for (const std::uint32_t rank : missing_of(call.ranks, call.answered)) {
    const monarch_answer_v1 said = answer_of(rank, ending.kind, ending.text);
    call.on_answer(call.user, &said);
  }
  call.on_answer(call.user, nullptr);
}

}  // namespace monarch
