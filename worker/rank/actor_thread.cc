#include "worker/rank/actor_thread.h"

#include <array>
#include <chrono>
#include <string_view>
#include <system_error>
#include <utility>

#include "transport/base/system/thread_limits.h"
#include "transport/base/text.h"
#include "worker/rank/deliveries.h"
#include "worker/rank/rank_words.h"
#include "worker/rank/stack_watch.h"

namespace monarch {

namespace {

constexpr std::size_t kWhyBytes = 4096;

thread_local ActorThread::Present present_here;

}  // namespace

Result<std::unique_ptr<ActorThread>> ActorThread::make(const monarch_class_v1& of, const monarch_host_v1& host,
                                                       const monarch_place_v1& place) {
  std::unique_ptr<ActorThread> made(new ActorThread(of, host, place.actor == nullptr ? "" : place.actor));
  try {
    made->thread_ = std::thread([self = made.get(), &place] { self->live(place); });
  } catch (const std::system_error& error) {
    return thread_error(error.code().value());
  }
  std::unique_lock lock(made->mutex_);
  made->changed_.wait(lock, [&] { return made->made_; });
  if (made->actor_ != nullptr) return made;
  const std::string why = with_threads_limit(made->why_not_);
  lock.unlock();
  return Error{ErrorCode::kInvalid, why};
}

ActorThread::Present ActorThread::present() { return present_here; }

ActorThread::~ActorThread() {
  begin_stop();
  join();
}

bool ActorThread::join(Duration patience) {
  if (!thread_.joinable()) return true;
  if (patience != Duration::forever()) {
    std::unique_lock lock(mutex_);
    const std::chrono::nanoseconds most(patience.count_nanoseconds());
    if (!changed_.wait_for(lock, most, [this] { return ended_; })) return false;
  }
  thread_.join();
  return true;
}

void ActorThread::refuse(const Run& run) const {
  CallOutcome outcome;
  outcome.kind = OutcomeKind::kRankLost;
  outcome.text = "it has not run: the rank was told to end";
  run.delivery->of->answer(run.delivery, std::move(outcome), {});
}

const monarch_endpoint_v1* ActorThread::find(const std::string& endpoint) const {
  for (std::uint32_t i = 0; i < of_.endpoint_count; ++i) {
    if (of_.endpoints[i].name == endpoint) return &of_.endpoints[i];
  }
  return nullptr;
}

void ActorThread::read_at(DoorThread& door) {
  for (std::uint32_t i = 0; i < of_.endpoint_count; ++i) {
    if (of_.endpoints[i].at_most > 0) return;
  }
  const std::lock_guard lock(mutex_);
  door_ = &door;
  changed_.notify_all();
}

void ActorThread::put(Run run) {
  std::unique_lock lock(mutex_);
  if (stopping_) {
    lock.unlock();
    return refuse(run);
  }
  Queue& queue = run.endpoint->at_most == 0 ? waiting_ : lanes_[run.endpoint].waiting;
  queue.emplace(++came_, std::move(run));
  summon();
  changed_.notify_all();
  DoorThread* const door = door_;
  lock.unlock();
  if (door != nullptr) door->wake_readers(this);
}

bool ActorThread::take_out(const monarch_delivery_v1* delivery) {
  const auto is_it = [delivery](const auto& one) { return one.second.delivery == delivery; };
  const std::lock_guard lock(mutex_);
  bool taken = std::erase_if(waiting_, is_it) > 0;
  for (auto& [endpoint, lane] : lanes_) taken = taken || std::erase_if(lane.waiting, is_it) > 0;
  return taken;
}

void ActorThread::begin_stop() {
  Queue not_run;
  DoorThread* door = nullptr;
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    door = door_;
    not_run.swap(waiting_);
    for (auto& [endpoint, lane] : lanes_) not_run.merge(lane.waiting);
  }
  changed_.notify_all();
  if (door != nullptr) door->wake_readers(this);
  for (const auto& [came, run] : not_run) refuse(run);
}

void ActorThread::live(const monarch_place_v1& place) {
  const StackWatch watch(text("actor ", name_));
  std::array<char, kWhyBytes> why{};
  present_here = {&name_, 0};
  void* const actor = of_.create(&host_, &place, why.data(), why.size());
  present_here = {};
  std::unique_lock lock(mutex_);
  actor_ = actor;
  why_not_ = why.data();
  made_ = true;
  changed_.notify_all();
  ended_ = actor == nullptr;
  if (ended_) return;
  serve(lock);
  door_ = nullptr;
  std::vector<std::thread> helpers = std::move(helpers_);
  lock.unlock();
  for (std::thread& helper : helpers) helper.join();
  of_.destroy(actor);
  lock.lock();
  ended_ = true;
  changed_.notify_all();
}

void ActorThread::serve(std::unique_lock<std::mutex>& lock) {
  for (;;) {
    wait_for_work(lock);
    if (stopping_) return;
    const Run run = take_first(*next_own());
    present_here = {&name_, run.delivery->id};
    invoke(run, lock);
    present_here = {};
  }
}

void ActorThread::wait_for_work(std::unique_lock<std::mutex>& lock) {
  const auto has_work = [this] { return stopping_ || next_own() != nullptr; };
  changed_.wait(lock, [&] { return door_ != nullptr || has_work(); });
  while (!has_work()) {
    lock.unlock();
    const auto may_go_on = [&] {
      const std::lock_guard held(mutex_);
      return has_work();
    };
    (void)door_->read_until(this, may_go_on, Instant::never());  // no handler runs on this thread
    lock.lock();
  }
}

ActorThread::Lane* ActorThread::next_lane() {
  Lane* next = nullptr;
  for (auto& [endpoint, lane] : lanes_) {
    if (lane.waiting.empty() || lane.running >= endpoint->at_most) continue;
    if (next == nullptr || lane.waiting.begin()->first < next->waiting.begin()->first) next = &lane;
  }
  return next;
}

ActorThread::Queue* ActorThread::next_own() {
  Queue* const own = waiting_.empty() ? nullptr : &waiting_;
  Lane* const beside = alone_ ? next_lane() : nullptr;
  if (beside == nullptr) return own;
  const bool own_is_first = own != nullptr && own->begin()->first < beside->waiting.begin()->first;
  return own_is_first ? own : &beside->waiting;
}

ActorThread::Run ActorThread::take_first(Queue& queue) {
  Run run = std::move(queue.extract(queue.begin()).mapped());
  if (run.endpoint->at_most > 0) ++lanes_[run.endpoint].running;
  summon();
  return run;
}

void ActorThread::summon() {
  if (idle_helpers_ > 0 || stopping_ || next_lane() == nullptr) return;
  try {
    helpers_.emplace_back([this] { help(); });
    ++idle_helpers_;
    alone_ = false;
  } catch (const std::system_error& error) {
    alone_ = true;
    if (std::exchange(told_, true)) return;
    say(text("actor ", name_,
             ": calls wait that could run beside others: ", thread_error(error.code().value()).message));
  }
}

void ActorThread::help() {
  const StackWatch watch(text("actor ", name_));
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || next_lane() != nullptr; });
    --idle_helpers_;
    if (stopping_) return;
    const Run run = take_first(next_lane()->waiting);
    invoke(run, lock);
    ++idle_helpers_;
  }
}

// User code runs without the lock.
void ActorThread::invoke(const Run& run, std::unique_lock<std::mutex>& lock) {
  lock.unlock();
  const std::string_view arguments = run.arguments.bytes();
  run.endpoint->invoke(actor_, {arguments.data(), arguments.size()}, &host_, run.delivery);
  lock.lock();
  if (run.endpoint->at_most == 0) return;
  --lanes_[run.endpoint].running;
  changed_.notify_all();
}

}  // namespace monarch
