// What calls can do, tried by one controller: it prints a line for each case, "ok NAME" or "not ok NAME: why".

#include <monarch/controller.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <iostream>
#include <mutex>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

using namespace std::chrono_literals;

// Made while the job runs.
struct Score : monarch::Actor {
  explicit Score(const monarch::Args& args) : score(args.get<int>("start")) {}
  int add(int more) { return score += more; }
  int score;
};

// As many things as an actor may hold and take.
struct Other;
class Counter : public monarch::Actor {
 public:
  explicit Counter(const monarch::Args& args)
      : count_(args.get<int>("start")), names_(args.get<std::vector<std::string>>("names")) {}

  int add(int more) { return count_ += more; }
  int get() const { return count_; }
  std::string where() const {
    return context().host + " " + context().mesh + " " + to_string(context().coordinates()) + " " + context().actor;
  }
  std::vector<std::string> names() const { return names_; }
  void fail(const std::string& text) { throw std::out_of_range(text); }
  void slow(int milliseconds) {
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    ++slept_;
  }
  int slept() const { return slept_; }
  monarch::codec::Bytes echo(const monarch::codec::Bytes& bytes) { return bytes; }
  void note(int number) { notes_.push_back(number); }
  std::vector<int> notes() { return std::exchange(notes_, {}); }
  void later(const monarch::Reply<int>& reply, int value) { waiting_.emplace_back(reply, value); }
  int answer_all() {
    for (const auto& [reply, value] : waiting_) reply.set(value);
    return static_cast<int>(std::exchange(waiting_, {}).size());
  }
  void forget(const monarch::Reply<int>& /*reply*/) {}
  int overlap(int milliseconds) {
    const int now = ++overlapping_;
    std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
    --overlapping_;
    return now;
  }
  int score(int more) { return monarch::named<Score>("score").call_one<&Score::add>(more).get(); }
  // Waits for another actor of its rank, which waits for this one.
  int ring(const monarch::ActorMesh<Other>& other, const monarch::ActorMesh<Counter>& self);
  int ask(const monarch::ActorMesh<Counter>& whom) { return whom.call_one<&Counter::get>().get(); }
  int ask_by_fold(const monarch::ActorMesh<Counter>& whom) {
    return whom.fold<&Counter::get>(0, [](int sum, int value) { return sum + value; });
  }
  int ask_back(const monarch::ActorMesh<Counter>& whom, const monarch::ActorMesh<Counter>& self) {
    return whom.call_one<&Counter::ask>(self).get();
  }
  int ask_overlap(const monarch::ActorMesh<Counter>& self) { return self.call_one<&Counter::overlap>(1).get(); }
  // By coroutine: both are under way at once.
  monarch::Task<int> ask_both(monarch::ActorMesh<Counter> one, monarch::ActorMesh<Counter> other) {
    const auto first = one.call_one<&Counter::get>();
    const auto second = other.call_one<&Counter::get>();
    co_return co_await first + co_await half(second);
  }

 private:
  static monarch::Task<int> half(monarch::FutureOne<int> future) { co_return co_await future; }

  int count_;
  std::vector<std::string> names_;
  int slept_ = 0;
  std::vector<int> notes_;
  std::vector<std::pair<monarch::Reply<int>, int>> waiting_;
  std::atomic<int> overlapping_{0};
};

// Asks the counter of its rank, which asks it.
struct Other : monarch::Actor {
  int get() const { return 1; }
  int back(const monarch::ActorMesh<Counter>& counter) { return counter.call_one<&Counter::get>().get(); }
  int ask(const monarch::ActorMesh<Other>& back, const monarch::ActorMesh<Counter>& counter) {
    return back.size() == 0 ? 0 : counter.call_one<&Counter::ask>(counter).get();
  }
};

int Counter::ring(const monarch::ActorMesh<Other>& other, const monarch::ActorMesh<Counter>& self) {
  return other.call_one<&Other::back>(self).get();
}

// Called as a Counter is, and has not what that has.
struct Stranger : monarch::Actor {
  int add(const std::string& /*more*/) { return 0; }
  int gett() { return 0; }
};

namespace {

using Counters = monarch::ActorMesh<Counter>;

void expect(bool right, const std::string& what) {
  if (!right) throw std::runtime_error(what);
}
template <class A, class B>
void expect_equal(const A& has, const B& wanted, const std::string& what) {
  if (has == wanted) return;
  std::string words = what;
  if constexpr (requires { std::to_string(has); }) words += ": " + std::to_string(has);
  if constexpr (std::is_same_v<A, std::string>) words += ": " + has;
  throw std::runtime_error(words);
}
template <class E, class Run>
std::string thrown(const Run& run, const std::string& what) {
  try {
    run();
  } catch (const E& error) {
    return error.what();
  }
  throw std::runtime_error("nothing was thrown: " + what);
}

void gathers(const Counters& all) {
  const auto values = all.call<&Counter::add>(1).get();
  expect_equal(values.size(), 4U, "ranks");
  for (const auto& [rank, value] : values) expect_equal(value, 6, "value of rank " + std::to_string(rank));
  const auto row = all.at("host", 1).call(&Counter::add, 10).get();
  expect(row.size() == 2 && row.at(2) == 16 && row.at(3) == 16, "the ranks of host 1");
  const auto column = all.slice("gpu", 1, 2).call<&Counter::get>().get();
  expect(column.size() == 2 && column.at(1) == 6 && column.at(3) == 16, "the second of each host");
}

void knows_its_place(const Counters& all) {
  const auto places = all.call<&Counter::where>().get();
  expect_equal(places.at(0), std::string("v1 t (0,0) counter"), "rank 0");
  expect_equal(places.at(3), std::string("v2 t (1,1) counter"), "rank 3");
  expect(all.call<&Counter::names>().get().at(2) == std::vector<std::string>({"a", "b"}), "args");
}

void tells_errors(const Counters& all) {
  const auto outcomes = all.call<&Counter::fail>("no such thing").collect();
  expect_equal(outcomes.size(), 4U, "outcomes");
  for (const auto& outcome : outcomes) {
    expect(!outcome && outcome.kind == monarch::Kind::kRemoteError, "a remote error");
    expect_equal(outcome.type, std::string("std::out_of_range"), "type");
    expect_equal(outcome.text, std::string("no such thing"), "text");
  }
  const std::string words =
      thrown<monarch::RemoteError>([&] { (void)all.call<&Counter::fail>("x").get(); }, "by get()");
  expect_equal(words, std::string("t/0: std::out_of_range: x"), "words");
  expect_equal(all.call<&Counter::get>().get().size(), 4U, "they live");
}

void calls_one(const Counters& all) {
  expect_equal(all.at("host", 0).at("gpu", 0).call_one<&Counter::add>(0).get(), 6, "value");
  thrown<monarch::BadArguments>([&] { (void)all.call_one<&Counter::get>(); }, "four ranks");
  std::set<std::uint32_t> chosen;
  for (int i = 0; i < 8; ++i) chosen.insert(all.choose<&Counter::get>().collect().rank);
  expect_equal(chosen.size(), 4U, "choose takes turns");
}

void streams_and_folds(const Counters& all) {
  std::set<std::uint32_t> ranks;
  for (auto&& outcome : all.stream<&Counter::get>()) {
    expect(static_cast<bool>(outcome), "a value");
    ranks.insert(outcome.rank);
  }
  expect_equal(ranks.size(), 4U, "each once");
  expect_equal(all.fold<&Counter::get>(0, [](int sum, int value) { return sum + value; }), 6 + 6 + 16 + 16, "sum");
}

void scatters(const Counters& all) {
  const auto values = all.scatter<&Counter::add>(std::vector<int>{1, 2, 3, 4}).get();
  expect(values.at(0) == 7 && values.at(1) == 8 && values.at(2) == 19 && values.at(3) == 20, "each its own");
  (void)all.scatter<&Counter::add>(std::vector<int>{-1, -2, -3, -4}).get();
  thrown<monarch::BadArguments>([&] { (void)all.scatter<&Counter::add>(std::vector<int>{1}); }, "one for four");
}

void keeps_the_order(const Counters& all) {
  constexpr int kNotes = 600;
  std::vector<monarch::Future<void>> calls;
  for (int i = 0; i < kNotes; ++i) {
    if (i % 2 == 0) {
      all.broadcast<&Counter::note>(i);
    } else {
      calls.push_back(all.call<&Counter::note>(i));
    }
  }
  for (const auto& [rank, notes] : all.call<&Counter::notes>().get()) {
    expect_equal(notes.size(), std::size_t{kNotes}, "notes");
    expect(std::is_sorted(notes.begin(), notes.end()), "in order");
  }
}

void answers_later(const Counters& all) {
  const auto one = all.at("host", 1).at("gpu", 0);
  const auto first = one.call_one<&Counter::later>(7);
  const auto second = one.call_one<&Counter::later>(8);
  expect(!first.ready(), "not yet");
  expect_equal(one.call_one<&Counter::answer_all>().get(), 2, "waited");
  expect(first.get() == 7 && second.get() == 8, "values");
  const auto dropped = one.call_one<&Counter::forget>().collect();
  expect_equal(dropped.type, std::string("monarch::ReplyDropped"), "a dropped one");
}

void has_deadlines(const Counters& all) {
  const auto one = all.at("host", 0).at("gpu", 1);
  const int before = one.call_one<&Counter::slept>().get();
  const auto busy = one.call_one<&Counter::slow>(600);
  const auto late = one.within(50ms).call_one<&Counter::slow>(1).collect();
  expect(late.kind == monarch::Kind::kDeadlineExceeded, "kind");
  expect(!busy.ready(), "in time");
  auto cancelled = one.call_one<&Counter::slow>(1);
  cancelled.cancel();
  expect(cancelled.collect().kind == monarch::Kind::kCancelled, "cancelled");
  busy.get();
  expect_equal(one.call_one<&Counter::slept>().get(), before + 1, "what was taken back has not run");
  thrown<monarch::NotYet>([&] { one.call_one<&Counter::slow>(100).get(10ms); }, "a get() with a time");
}

void carries_bodies(const Counters& all) {
  const auto far = all.at("host", 1).at("gpu", 1);
  const auto near = all.at("host", 0).at("gpu", 0);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{48} << 10U, (std::size_t{48} << 10U) + 1,
                                 std::size_t{1} << 20U, std::size_t{8} << 20U}) {
    monarch::codec::Bytes bytes;
    bytes.data.resize(size);
    for (std::size_t i = 0; i < size; ++i) bytes.data[i] = static_cast<char>(i * 31 + size);
    for (const auto& one : {near, far}) {
      expect(one.call_one<&Counter::echo>(bytes).get().data == bytes.data, std::to_string(size) + " bytes");
    }
  }
  monarch::codec::Bytes much;
  much.data.resize((std::size_t{64} << 20U) + 1);
  expect(near.call_one<&Counter::echo>(much).get().data == much.data, "more on one host");
  const auto refused = far.call_one<&Counter::echo>(much).collect();
  expect(refused.kind == monarch::Kind::kRefused, "too much is refused");
  expect(refused.text.find("a call carries 1GiB at most, 64MiB to another host") != std::string::npos, refused.text);
}

// More than a process may have files open: the test lowers the limit.
void carries_many_bodies(const Counters& all) {
  for (const auto& one : {all.at("host", 0).at("gpu", 0), all.at("host", 1).at("gpu", 1)}) {
    std::vector<decltype(one.call_one<&Counter::echo>(monarch::codec::Bytes()))> answers;
    for (int call = 0; call < 1'024; ++call) {
      monarch::codec::Bytes bytes;
      bytes.data = std::to_string(call) + std::string(60'000, 'x');
      answers.push_back(one.call_one<&Counter::echo>(bytes));
    }
    for (int call = 0; call < 1'024; ++call) {
      const std::string came = answers[static_cast<std::size_t>(call)].get().data;
      expect(came == std::to_string(call) + std::string(60'000, 'x'), "call " + std::to_string(call));
    }
  }
}

void refuses(monarch::Controller& controller, const Counters& all) {
  const std::string mesh = thrown<monarch::BadArguments>([&] { (void)controller.mesh("tt"); }, "no such mesh");
  expect(mesh.find("tt") != std::string::npos, mesh);
  thrown<monarch::BadArguments>([&] { (void)all.slice("gpu", 1, 3); }, "a slice out of range");
  const std::string dim = thrown<monarch::BadArguments>([&] { (void)all.at("gpus", 0); }, "no such dimension");
  expect(dim.find("host, gpu") != std::string::npos, dim);
  const auto one = [](const auto& actors) { return actors.at("host", 1).at("gpu", 0); };
  const auto no_actor =
      one(controller.mesh("t").actors<Counter>("countr")).template call_one<&Counter::get>().collect();
  expect(no_actor.kind == monarch::Kind::kRefused, "no such actor");
  expect(no_actor.text.find("did you mean counter?") != std::string::npos, no_actor.text);
  const auto strangers = one(controller.mesh("t").actors<Stranger>("counter"));
  const auto no_endpoint = strangers.call_one<&Stranger::gett>().collect();
  expect(no_endpoint.kind == monarch::Kind::kRefused, "no such endpoint");
  expect(no_endpoint.text.find("did you mean get?") != std::string::npos, no_endpoint.text);
  const auto signature = strangers.call_one<&Stranger::add>("1").collect();
  expect(signature.kind == monarch::Kind::kRefused, "another signature");
  expect(signature.text.find("i->i") != std::string::npos, signature.text);
}

void takes_handles(const Counters& all) {
  const auto asks = all.at("host", 0).at("gpu", 0);
  const auto asked = all.at("host", 1).at("gpu", 0);
  expect_equal(asks.call_one<&Counter::ask>(asked).get(), 16, "by a handle that was sent");
  expect_equal(asks.call_one<&Counter::ask_both>(asked, all.at("host", 0).at("gpu", 1)).get(), 16 + 6, "by coroutine");
}

void overlaps(const Counters& all) {
  const auto one = all.at("host", 0).at("gpu", 0);
  std::vector<monarch::FutureOne<int>> calls;
  for (int i = 0; i < 6; ++i) calls.push_back(one.call_one<&Counter::overlap>(50));
  expect_equal(one.call_one<&Counter::get>().get(), 6, "another endpoint goes on beside it");
  const std::vector<int> most = monarch::all(calls, 5s);
  expect_equal(*std::max_element(most.begin(), most.end()), 3, "as many as it says");
  expect(monarch::any(calls) < calls.size(), "any");
}

void tells_deadlocks(monarch::Controller& controller, const Counters& all) {
  const auto one = all.at("host", 1).at("gpu", 0);
  const auto itself = one.within(5s).call_one<&Counter::ask>(one).collect();
  expect_equal(itself.type, std::string("monarch::Deadlock"), "itself");
  expect_equal(itself.text,
               std::string("actor counter of t/2 would wait for ever: it waits for itself, and has one call at a time"),
               "itself");
  const auto other = controller.mesh("t").actors<Other>("other").at("host", 1).at("gpu", 0);
  expect_equal(other.call_one<&Other::get>().get(), 1, "it is there");
  // Whoever of two begins to wait last is told.
  const auto tells = [](const auto& outcome, const std::string& one_name, const std::string& other_name) {
    const auto closes = [&](const std::string& who, const std::string& whom) {
      return outcome.text.find("actor " + who + " would wait for ever: it waits for " + whom +
                               ", which waits for it") != std::string::npos;
    };
    expect(!outcome && (closes(one_name, other_name) || closes(other_name, one_name)), outcome.text);
  };
  tells(one.within(10s).call_one<&Counter::ring>(other, one).collect(), "counter of t/2", "other of t/2");
  const auto nested = other.within(5s).call_one<&Other::ask>(other, one).collect();
  expect(!nested && nested.text.find("it waits for itself") != std::string::npos, nested.text);
  const auto next = all.at("host", 1).at("gpu", 1);
  const auto coroutine = one.within(20s).call_one<&Counter::ask_both>(next, one).collect();
  expect_equal(coroutine.type, std::string("monarch::Deadlock"), "by co_await");
  const auto folds = one.within(20s).call_one<&Counter::ask_by_fold>(one).collect();
  expect_equal(folds.type, std::string("monarch::Deadlock"), "by fold");
  std::promise<std::string> within_then;
  one.call_one<&Counter::get>().then([&](const auto& /*ended*/) {
    try {
      within_then.set_value(std::to_string(one.call_one<&Counter::get>().get(20s)));
    } catch (const monarch::Deadlock& error) {
      within_then.set_value(error.what());
    }
  });
  // It may be over before then() is called: this thread runs it then, and waits as it may.
  const std::string told = within_then.get_future().get();
  expect(told == "16" || told.find("on the thread that brings the answers") != std::string::npos, told);
  tells(one.within(5s).call_one<&Counter::ask_back>(next, one).collect(), "counter of t/2", "counter of t/3");
  expect_equal(one.within(5s).call_one<&Counter::ask_overlap>(one).get(), 1, "what overlaps runs beside who asks");
}

void counts_failed_broadcasts(monarch::Controller& controller, const Counters& all) {
  std::mutex mutex;
  std::vector<std::string> told;
  controller.on_failure([&](const monarch::Failure& failure) {
    const std::lock_guard lock(mutex);
    told.push_back(failure.mesh + "/" + std::to_string(failure.rank) + ": " + failure.cause);
  });
  all.broadcast<&Counter::fail>("lost in the noise");
  const auto until = std::chrono::steady_clock::now() + 5s;
  while (controller.broadcast_failures() < 4 && std::chrono::steady_clock::now() < until) std::this_thread::yield();
  expect_equal(controller.broadcast_failures(), 4U, "failures");
  all.ready(5s);
  const std::lock_guard lock(mutex);
  expect_equal(told.size(), 4U, "told");
  expect(told.front().find("broadcast of counter.fail: std::out_of_range: lost in the noise") != std::string::npos,
         told.front());
}

void has_named_actors(monarch::Controller& controller, const Counters& all) {
  const auto score = controller.named<Score>("score", monarch::Args().set("start", 40));
  expect_equal(score.call_one<&Score::add>(1).get(), 41, "made");
  const auto added = all.call<&Counter::score>(10).get();
  expect_equal(added.size(), 4U, "from all ranks");
  expect_equal(controller.named<Score>("score").call_one<&Score::add>(0).get(), 81, "there is one");
  score.ready(5s);
  const std::string other =
      thrown<monarch::RemoteError>([&] { (void)controller.named<Other>("score"); }, "another class");
  expect(other.find("actor score is a Score, no Other") != std::string::npos, other);
  const std::string none = thrown<monarch::RemoteError>([&] { (void)controller.named<Score>("second"); }, "no start");
  expect(none.find("args.start is missing") != std::string::npos, none);
  const auto nobody = monarch::ActorMesh<Score>("third", score.view()).call_one<&Score::add>(1).collect();
  expect(nobody.text.find("this process has no third.add") != std::string::npos, nobody.text);
}

void pipelines(const Counters& all) {
  const auto one = all.at("host", 1).at("gpu", 1);
  const int before = one.call_one<&Counter::get>().get();
  std::vector<monarch::FutureOne<int>> calls;
  for (int i = 0; i < 3000; ++i) calls.push_back(one.call_one<&Counter::add>(1));
  expect_equal(monarch::all(calls).back(), before + 3000, "the last");
  (void)one.call_one<&Counter::add>(-3000).get();
}

}  // namespace

int cases(monarch::Controller& controller) {
  const auto all = controller.mesh("t").actors<Counter>("counter");
  const std::pair<const char*, std::function<void()>> tried[] = {
      {"gathers", [&] { gathers(all); }},
      {"knows its place", [&] { knows_its_place(all); }},
      {"tells errors", [&] { tells_errors(all); }},
      {"calls one", [&] { calls_one(all); }},
      {"streams and folds", [&] { streams_and_folds(all); }},
      {"scatters", [&] { scatters(all); }},
      {"keeps the order", [&] { keeps_the_order(all); }},
      {"answers later", [&] { answers_later(all); }},
      {"has deadlines", [&] { has_deadlines(all); }},
      {"carries bodies", [&] { carries_bodies(all); }},
      {"carries many bodies", [&] { carries_many_bodies(all); }},
      {"refuses", [&] { refuses(controller, all); }},
      {"takes handles", [&] { takes_handles(all); }},
      {"overlaps", [&] { overlaps(all); }},
      {"tells deadlocks", [&] { tells_deadlocks(controller, all); }},
      {"counts failed broadcasts", [&] { counts_failed_broadcasts(controller, all); }},
      {"has named actors", [&] { has_named_actors(controller, all); }},
      {"pipelines", [&] { pipelines(all); }},
  };
  for (const auto& [name, run] : tried) {
    try {
      run();
      std::cout << "ok " << name << "\n";
    } catch (const std::exception& error) {
      std::cout << "not ok " << name << ": " << error.what() << "\n";
    }
  }
  return 0;
}

MONARCH_PLUGIN(MONARCH_ACTOR(Counter, &Counter::add, &Counter::get, &Counter::where, &Counter::names, &Counter::fail,
                             &Counter::slow, &Counter::slept, &Counter::echo, &Counter::note, &Counter::notes,
                             &Counter::later, &Counter::answer_all, &Counter::forget,
                             MONARCH_CONCURRENT(&Counter::overlap, 3), &Counter::ask, &Counter::ask_back,
                             &Counter::ask_by_fold, &Counter::ask_overlap, &Counter::ask_both, &Counter::score,
                             &Counter::ring),
               MONARCH_ACTOR(Other, &Other::get, &Other::back, &Other::ask), MONARCH_ACTOR(Score, &Score::add))
MONARCH_CONTROLLER(cases)
