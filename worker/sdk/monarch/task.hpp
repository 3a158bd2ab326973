#pragma once

// Coroutines: an endpoint or a controller that returns a Task<T> may wait with co_await, for futures of calls and for
// other Tasks. It goes on where it began, on the thread of its actor, and what holds for the actor holds on: one call
// at a time, but for concurrent endpoints.
//
//   monarch::Task<double> step(int n) {
//     auto a = left.call_one<&Left::f>(n);
//     auto b = right.call_one<&Right::f>(n);
//     co_return co_await a + co_await b;
//   }
//
// Thread: a Task is its coroutine's alone.

#include <condition_variable>
#include <coroutine>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <monarch/future.hpp>

namespace monarch {

inline namespace v1 MONARCH_INSIDE {

template <class T = void>
class MONARCH_SEEN Task;

namespace detail {

// What a coroutine waits for. Owners: its frame, the call until it is over, and the resumer.
struct MONARCH_SEEN Await {
  std::coroutine_handle<> waiter;
  std::shared_ptr<CallState> call;
  std::exception_ptr error;  // nothing would end it
};

// The coroutines of one thread that can go on. The thread is its actor's, and does nothing else until one can: so it
// waits as get() does. Owners: the thread, and who will say so.
class Resumer {
 public:
  void wait_for(std::shared_ptr<Await> await) {
    const std::lock_guard lock(mutex_);
    awaited_ = std::move(await);
  }
  void put(const std::shared_ptr<Await>& await) {
    {
      const std::lock_guard lock(mutex_);
      if (await->error) return;  // it has gone on already
      if (awaited_ == await) awaited_.reset();
      ready_.push_back(await->waiter);
    }
    changed_.notify_one();
  }
  std::coroutine_handle<> take() {
    std::unique_lock lock(mutex_);
    const auto has_one = [this] { return !ready_.empty(); };
    if (!changed_.wait_for(lock, kSoon, has_one)) look_and_wait(lock);
    const std::coroutine_handle<> next = ready_.front();
    ready_.pop_front();
    return next;
  }

 private:
  void look_and_wait(std::unique_lock<std::mutex>& lock) {
    std::optional<Waiting> told;
    while (ready_.empty()) {
      if (const std::shared_ptr<Await> await = awaited_) {
        if (!told) told.emplace(await->call->host());
        lock.unlock();
        const std::exception_ptr error = look(*await->call, *told);
        lock.lock();
        if (error && awaited_ == await) {
          await->error = error;
          awaited_.reset();
          return ready_.push_back(await->waiter);
        }
      }
      (void)changed_.wait_for(lock, kLookEvery, [this] { return !ready_.empty(); });
    }
  }
  static std::exception_ptr look(const CallState& call, Waiting& told) {
    try {
      call.look(told);
      return nullptr;
    } catch (const Deadlock&) {
      return std::current_exception();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::shared_ptr<Await> awaited_;
  std::deque<std::coroutine_handle<>> ready_;
};

// WARNING: the frame of a user's coroutine holds what follows as members and is visible where the user's types are:
// hidden types in it are a warning of GCC 12 in the user's code.
struct MONARCH_SEEN GoOn {
  bool await_ready() const noexcept { return false; }
  std::coroutine_handle<> await_suspend(std::coroutine_handle<> /*done*/) const noexcept { return next; }
  void await_resume() const noexcept {}
  std::coroutine_handle<> next;
};

struct MONARCH_SEEN PromiseBase {
  std::shared_ptr<Resumer> resumer;
  std::coroutine_handle<> waiter;  // goes on once this is done
  std::exception_ptr error;

  std::suspend_always initial_suspend() const noexcept { return {}; }
  GoOn final_suspend() const noexcept { return {waiter ? waiter : std::noop_coroutine()}; }
  void unhandled_exception() { error = std::current_exception(); }
};

template <class T>
struct MONARCH_SEEN Promise : PromiseBase {
  Task<T> get_return_object();
  template <class U>
  void return_value(U&& given) {
    value.emplace(std::forward<U>(given));
  }
  T take() {
    if (error) std::rethrow_exception(error);
    return std::move(*value);
  }
  std::optional<T> value;
};
template <>
struct MONARCH_SEEN Promise<void> : PromiseBase {
  Task<void> get_return_object();
  void return_void() const {}
  void take() const {
    if (error) std::rethrow_exception(error);
  }
};

template <class T>
struct MONARCH_SEEN TaskAwaiter {
  std::coroutine_handle<Promise<T>> coroutine;
  bool await_ready() const { return false; }
  template <class P>
  std::coroutine_handle<> await_suspend(std::coroutine_handle<P> waiter) const {
    coroutine.promise().resumer = waiter.promise().resumer;
    coroutine.promise().waiter = waiter;
    return coroutine;
  }
  T await_resume() const { return coroutine.promise().take(); }
};

template <class F>
struct MONARCH_SEEN FutureAwaiter {
  F future;
  std::shared_ptr<Await> await;
  bool await_ready() const { return future.ready(); }
  template <class P>
  void await_suspend(std::coroutine_handle<P> self) const {
    await->waiter = self;
    await->call = future.state();
    const std::shared_ptr<Resumer> resumer = self.promise().resumer;
    resumer->wait_for(await);
    future.then([resumer, await = await](const auto& /*ended*/) { resumer->put(await); });
  }
  auto await_resume() const {
    if (await->error) std::rethrow_exception(await->error);
    return future.get();
  }
};

}  // namespace detail

template <class T>
class MONARCH_SEEN Task {
 public:
  using promise_type = detail::Promise<T>;

  explicit Task(std::coroutine_handle<promise_type> coroutine) : coroutine_(coroutine) {}
  Task(Task&& other) noexcept : coroutine_(std::exchange(other.coroutine_, nullptr)) {}
  Task& operator=(Task&& other) noexcept {
    std::swap(coroutine_, other.coroutine_);
    return *this;
  }
  ~Task() {
    if (coroutine_) coroutine_.destroy();
  }

  // Here, on this thread, to its end; gives what it gives, throws what it throws.
  T run() {
    const auto resumer = std::make_shared<detail::Resumer>();
    coroutine_.promise().resumer = resumer;
    coroutine_.resume();
    while (!coroutine_.done()) resumer->take().resume();
    return coroutine_.promise().take();
  }

  detail::TaskAwaiter<T> operator co_await() && { return {coroutine_}; }

 private:
  std::coroutine_handle<promise_type> coroutine_;
};

namespace detail {

template <class T>
Task<T> Promise<T>::get_return_object() {
  return Task<T>(std::coroutine_handle<Promise<T>>::from_promise(*this));
}
inline Task<void> Promise<void>::get_return_object() {
  return Task<void>(std::coroutine_handle<Promise<void>>::from_promise(*this));
}

template <class T>
struct IsTask : std::false_type {
  using Value = T;
};
template <class T>
struct IsTask<Task<T>> : std::true_type {
  using Value = T;
};

}  // namespace detail

// What get() would give or throw.
template <class R>
auto operator co_await(Future<R> future) {
  return detail::FutureAwaiter<Future<R>>{std::move(future), std::make_shared<detail::Await>()};
}
template <class R>
auto operator co_await(FutureOne<R> future) {
  return detail::FutureAwaiter<FutureOne<R>>{std::move(future), std::make_shared<detail::Await>()};
}

}  // namespace MONARCH_INSIDE
}  // namespace monarch
