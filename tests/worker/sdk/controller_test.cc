// Calls as a controller makes them; the host is the test, which answers as it likes.

#include <monarch/controller.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <deque>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace monarch {
namespace {

using namespace std::chrono_literals;

struct Policy : Actor {
  double score(const std::string& /*text*/, int /*times*/) const { return 0; }
  void set(double /*mean*/) {}
  int other() { return 0; }
  void later(Reply<std::string> /*reply*/, int /*how*/) {}
};
struct Tree {
  int value = 0;
  std::vector<Tree> below;
  static inline int copies = 0;
  Tree() = default;
  Tree(const Tree& other) : value(other.value), below(other.below) { ++copies; }
  Tree(Tree&&) = default;
  Tree& operator=(const Tree&) = delete;
  Tree& operator=(Tree&&) = default;
  MONARCH_FIELDS_INSIDE(value, below)
};
struct Gardener : Actor {
  int depth(const Tree& /*tree*/) { return 0; }
};
struct Stranger : Actor {
  int nothing() { return 0; }
};

struct Call {
  monarch_call_v1 as;
  std::string mesh, actor, endpoint, signature, arguments;
  std::vector<std::uint32_t> ranks;
};

// The host's.
std::deque<Call> calls;
std::vector<std::uint64_t> cancelled;
std::function<void()> on_call;  // once, within it
void (*failure_handler)(void*, const char*, const monarch_answer_v1*) = nullptr;
void* failure_user = nullptr;

// Of waits, by the number of the call; empty: it may wait.
std::function<std::string(std::uint64_t)> why_not_wait;
const monarch_waiting_v1 waiting{.struct_size = sizeof waiting,
                                 .reserved = 0,
                                 .begin =
                                     [](const monarch_host_v1*, std::uint64_t call, char* why, std::size_t size) {
                                       const std::string text = why_not_wait ? why_not_wait(call) : "";
                                       (void)std::snprintf(why, size, "%s", text.c_str());
                                       return text.empty() ? 0 : 1;
                                     },
                                 .end = [](const monarch_host_v1*, std::uint64_t) {}};

std::uint64_t take_call(const monarch_host_v1* /*host*/, const monarch_call_v1* call) {
  Call taken{*call, call->mesh, call->actor, call->endpoint, call->signature, {}, {}};
  taken.arguments.assign(static_cast<const char*>(call->arguments.data), call->arguments.size);
  for (std::size_t i = 0; i < call->ranks_count; ++i) {
    for (std::uint32_t k = 0; k < call->ranks[i].count; ++k) {
      taken.ranks.push_back(call->ranks[i].first + k * call->ranks[i].step);
    }
  }
  calls.push_back(std::move(taken));
  const std::uint64_t number = calls.size();
  if (const auto run = std::exchange(on_call, nullptr)) run();
  return number;
}

int find_mesh(const monarch_host_v1* /*host*/, const char* name, monarch_place_v1* place) {
  static const char* const kNames[] = {"host", "gpu"};
  static const std::uint32_t kSizes[] = {2, 3};
  if (std::string(name) != "generators") return 0;
  place->dim_count = 2;
  place->dim_names = kNames;
  place->dim_sizes = kSizes;
  return 1;
}

monarch_host_v1 host_of_test() {
  monarch_host_v1 host{};
  host.struct_size = sizeof host;
  host.call = &take_call;
  host.cancel = [](const monarch_host_v1*, std::uint64_t call) { cancelled.push_back(call); };
  host.mesh = &find_mesh;
  host.extension = [](const monarch_host_v1*, const char* name) -> const void* {
    return std::string(name) == MONARCH_WAITING_V1 ? &waiting : nullptr;
  };
  host.watch = [](const monarch_host_v1*, void (*run)(void*, const char*, const monarch_answer_v1*), void* user) {
    failure_handler = run;
    failure_user = user;
  };
  return host;
}

class ControllerTest : public ::testing::Test {
 protected:
  ControllerTest() {
    calls.clear();
    cancelled.clear();
    why_not_wait = nullptr;
    detail::known_host() = &host_;
  }

  template <class T>
  static void answer(std::size_t call, std::uint32_t rank, const T& value) {
    const std::string bytes = codec::encode(value);
    monarch_answer_v1 answer{};
    answer.struct_size = sizeof answer;
    answer.rank = rank;
    answer.generation = 2;
    answer.value = {bytes.data(), bytes.size()};
    answer.type = answer.text = answer.traceback = "";
    calls[call].as.on_answer(calls[call].as.user, &answer);
  }
  static void fail(std::size_t call, std::uint32_t rank, Kind kind, const char* type, const char* text) {
    monarch_answer_v1 answer{};
    answer.struct_size = sizeof answer;
    answer.kind = static_cast<std::uint32_t>(kind);
    answer.rank = rank;
    answer.type = type;
    answer.text = text;
    answer.traceback = "";
    calls[call].as.on_answer(calls[call].as.user, &answer);
  }
  static void over(std::size_t call) { calls[call].as.on_answer(calls[call].as.user, nullptr); }

  static monarch_place_v1 place() {
    monarch_place_v1 place{};
    place.struct_size = sizeof place;
    place.mesh = "controller";
    place.actor = place.why_restarted = "";
    place.host = "v1";
    place.generation = 1;
    return place;
  }
  template <class E>
  static std::string thrown(const auto& run) {
    try {
      (void)run();
    } catch (const E& error) {
      return error.what();
    }
    return "nothing";
  }

  const monarch_host_v1 host_ = host_of_test();
  Controller controller_{&host_, place()};
  ActorMesh<Policy> all_ = controller_.mesh("generators").actors<Policy>("policy");
};

TEST_F(ControllerTest, SendsOneMessageToTheRanksOfAView) {
  const auto future = all_.slice("gpu", 1, 3).at("host", 1).within(2s).call<&Policy::score>("x", 3);
  ASSERT_EQ(calls.size(), 1U);
  EXPECT_EQ(calls[0].mesh, "generators");
  EXPECT_EQ(calls[0].actor, "policy");
  EXPECT_EQ(calls[0].endpoint, "score");
  EXPECT_EQ(calls[0].signature, "si->f");
  EXPECT_EQ(calls[0].ranks, (std::vector<std::uint32_t>{4, 5}));
  EXPECT_EQ(calls[0].arguments, codec::encode(std::tuple<std::string, int>("x", 3)));
  EXPECT_EQ(calls[0].as.deadline_ns, 2'000'000'000);
  EXPECT_EQ(calls[0].as.flags, 0U);
  EXPECT_FALSE(future.ready());
  answer(0, 5, 0.5);
  answer(0, 4, 0.25);
  over(0);
  EXPECT_TRUE(future.ready());
  std::vector<std::pair<std::uint32_t, double>> values;
  for (const auto& [rank, value] : future.get()) values.emplace_back(rank, value);
  EXPECT_EQ(values, (std::vector<std::pair<std::uint32_t, double>>{{4, 0.25}, {5, 0.5}}));
}

TEST_F(ControllerTest, CallsAMemberByItsValueToo) {
  const auto future = all_.call(&Policy::score, "x", 3);
  const auto nothing = all_.call(&Policy::set, 1);
  EXPECT_EQ(calls[0].endpoint, "score");
  EXPECT_EQ(calls[1].endpoint, "set");
  EXPECT_EQ(calls[1].signature, "f->v");
  EXPECT_EQ(calls[1].arguments, codec::encode(std::tuple<double>(1)));
  const auto strangers = controller_.mesh("generators").actors<Stranger>("stranger");
  EXPECT_EQ(
      thrown<BadArguments>([&] { return strangers.call(&Stranger::nothing); }),
      "this plugin does not say what that endpoint is called: write call<&Class::member>(…), or have MONARCH_ACTOR "
      "of the class in it");
  for (std::size_t call = 0; call < 2; ++call) over(call);
}

TEST_F(ControllerTest, TakesAMemberByItsValueForEachVerb) {
  const auto one = all_.at("host", 0).at("gpu", 2);
  const auto future = one.call_one(&Policy::other);
  auto later = all_.choose(&Policy::later, 3);
  all_.broadcast(&Policy::set, 2);
  auto stream = one.stream(&Policy::other);
  const auto each = one.scatter(&Policy::set, std::vector<int>{1});
  (void)all_.try_call(&Policy::other);
  on_call = [] {
    answer(6, 2, 5);
    over(6);
  };
  EXPECT_EQ(one.fold(&Policy::other, 1, [](int a, int b) { return a + b; }), 6);
  ASSERT_EQ(calls.size(), 7U);
  EXPECT_EQ(calls[1].signature, "i->s") << "of a Reply what it is of";
  EXPECT_EQ(calls[2].as.flags, MONARCH_CALL_QUIET);
  EXPECT_EQ(calls[4].arguments, codec::encode(std::tuple<double>(1)));
  EXPECT_EQ(calls[5].as.flags, MONARCH_CALL_TRY);
  answer(0, 2, 4);
  for (std::size_t call = 0; call < 6; ++call) over(call);
  EXPECT_EQ(future.get(), 4);
}

TEST_F(ControllerTest, TakesTimesWithoutEndForNone) {
  const auto deadline_of = [&](Patience time) {
    (void)all_.within(time).call<&Policy::other>();
    over(calls.size() - 1);
    return calls.back().as.deadline_ns;
  };
  EXPECT_EQ(deadline_of(std::chrono::hours::max()), 0);
  EXPECT_EQ(deadline_of(std::chrono::seconds::max()), 0);
  EXPECT_EQ(deadline_of(Nanoseconds::max() - 1s), 0);
  EXPECT_EQ(deadline_of(24h * 365 * 200), 0);
  EXPECT_EQ(deadline_of(std::chrono::duration<double>(std::numeric_limits<double>::infinity())), 0);
  EXPECT_EQ(deadline_of(24h * 365), 24 * 365 * 3'600'000'000'000);
  EXPECT_EQ(deadline_of(std::chrono::duration<double>(0.5)), 500'000'000);
  EXPECT_EQ(deadline_of(0s), 1) << "at once is no 0, which is none";
  EXPECT_EQ(deadline_of(std::chrono::hours::min()), 1);
  // They wait: what nothing would end is told, and no time has passed.
  why_not_wait = [](std::uint64_t) { return "it would wait"; };
  const auto future = all_.call<&Policy::other>();
  auto stream = all_.stream<&Policy::other>();
  EXPECT_EQ(thrown<Deadlock>([&] { return future.get(std::chrono::hours::max()); }), "it would wait");
  EXPECT_EQ(thrown<Deadlock>([&] { return future.collect(std::chrono::minutes::max()); }), "it would wait");
  EXPECT_EQ(thrown<Deadlock>([&] { return stream.next(std::chrono::hours::max()); }), "it would wait");
  EXPECT_EQ(thrown<Deadlock>([&] { return all(std::vector{future}, std::chrono::hours::max()); }), "it would wait");
  EXPECT_EQ(thrown<Deadlock>([&] { return any(std::vector{future}, std::chrono::hours::max()); }), "it would wait");
  over(calls.size() - 1);
  over(calls.size() - 2);
}

TEST_F(ControllerTest, NeitherCopiesArgumentsNorPacksWhatNobodyReads) {
  const auto gardeners = controller_.mesh("generators").actors<Gardener>("gardener");
  Tree tree;
  for (int i = 1; i < 255; ++i) {
    Tree above;
    above.below.push_back(std::move(tree));
    tree = std::move(above);
  }
  Tree::copies = 0;
  (void)gardeners.call<&Gardener::depth>(tree);
  over(0);
  EXPECT_EQ(Tree::copies, 0);
  for (int i = 1; i < 1'000; ++i) {
    Tree above;
    above.below.push_back(std::move(tree));
    tree = std::move(above);
  }
  EXPECT_EQ(thrown<BadArguments>([&] { return gardeners.call<&Gardener::depth>(tree); }),
            "argument 1: nested too deeply: a value has at most 1024 containers within each other");
}

TEST_F(ControllerTest, TellsWhoWouldWaitForEver) {
  std::vector<std::uint64_t> asked;
  why_not_wait = [&](std::uint64_t call) {
    asked.push_back(call);
    return call == 0 ? "" : "it waits for itself";
  };
  const auto one = all_.at("host", 0).at("gpu", 2);
  EXPECT_EQ(thrown<Deadlock>([&] { return one.fold<&Policy::other>(0, [](int a, int b) { return a + b; }); }),
            "it waits for itself");
  EXPECT_EQ(thrown<Deadlock>([&] { return one.stream<&Policy::other>().next(); }), "it waits for itself");
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{0, 1, 0, 2})) << "call 0 asks for the thread";
  const auto waits = [&]() -> Task<int> { co_return co_await one.call_one<&Policy::other>(); };
  EXPECT_EQ(thrown<Deadlock>([&] { return waits().run(); }), "it waits for itself");
  over(2);  // then it goes on nowhere
  const auto catches = [&]() -> Task<int> {
    try {
      co_return co_await one.call_one<&Policy::other>();
    } catch (const Deadlock&) {
    }
    why_not_wait = nullptr;
    on_call = [] {
      answer(4, 2, 7);
      over(4);
    };
    co_return co_await one.call_one<&Policy::other>();
  };
  EXPECT_EQ(catches().run(), 7);
  over(3);
  // A time that it has ends it, and only the thread may forbid it.
  asked.clear();
  why_not_wait = [&](std::uint64_t call) {
    asked.push_back(call);
    return std::string();
  };
  EXPECT_EQ(thrown<NotYet>([&] { return one.call_one<&Policy::other>().get(400ms), 0; }),
            "no answer yet: 0 ranks of generators have answered");
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{0}));
  why_not_wait = [](std::uint64_t call) { return call == 0 ? "this thread brings the answers" : ""; };
  EXPECT_EQ(thrown<Deadlock>([&] { return one.call_one<&Policy::other>().get(1h), 0; }),
            "this thread brings the answers");
  for (const std::size_t call : {0U, 1U, 5U, 6U}) over(call);
}

TEST_F(ControllerTest, ThrowsTheFirstErrorByRankOrGivesAllOutcomes) {
  const auto future = all_.call<&Policy::score>("x", 3);
  fail(0, 3, Kind::kRankLost, "", "killed by SIGKILL");
  fail(0, 1, Kind::kRemoteError, "std::runtime_error", "no luck");
  answer(0, 0, 1.5);
  answer(0, 2, std::string("no number"));
  over(0);
  EXPECT_EQ(thrown<RemoteError>([&] { return future.get(); }), "generators/1: std::runtime_error: no luck");
  const auto outcomes = future.collect();
  ASSERT_EQ(outcomes.size(), 4U);
  EXPECT_EQ(*outcomes[0], 1.5);
  EXPECT_EQ(outcomes[0].generation, 2U);
  EXPECT_FALSE(outcomes[1]);
  EXPECT_EQ(outcomes[2].type, "monarch::BadResult");
  EXPECT_EQ(outcomes[2].text, "the result is of another shape: a number expected");
  EXPECT_EQ(thrown<RankLost>([&] { return outcomes[3].get(); }), "generators/3: killed by SIGKILL");
}

TEST_F(ControllerTest, HasAnExceptionForEachKind) {
  const auto thrown_for = [&](Kind kind) {
    const auto future = all_.call<&Policy::other>();
    const std::size_t call = calls.size() - 1;
    fail(call, 0, kind, "", "why");
    over(call);
    try {
      (void)future.get();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind);
      return detail::type_name(typeid(error));
    }
    return std::string();
  };
  EXPECT_EQ(thrown_for(Kind::kRemoteError), "monarch::RemoteError");
  EXPECT_EQ(thrown_for(Kind::kRankLost), "monarch::RankLost");
  EXPECT_EQ(thrown_for(Kind::kDeadlineExceeded), "monarch::DeadlineExceeded");
  EXPECT_EQ(thrown_for(Kind::kBusy), "monarch::Busy");
  EXPECT_EQ(thrown_for(Kind::kGone), "monarch::Gone");
  EXPECT_EQ(thrown_for(Kind::kCancelled), "monarch::Cancelled");
  EXPECT_EQ(thrown_for(Kind::kRefused), "monarch::Refused");
}

TEST_F(ControllerTest, GivesOutcomesAsTheyCome) {
  auto stream = all_.stream<&Policy::other>();
  answer(0, 4, 40);
  EXPECT_EQ(**stream.next(), 40);
  EXPECT_EQ(thrown<NotYet>([&] { return stream.next(1ms); }), "no answer yet: 1 ranks of generators have answered");
  answer(0, 1, 10);
  fail(0, 0, Kind::kBusy, "", "its queue is full");
  over(0);
  std::vector<std::uint32_t> ranks;
  for (auto&& outcome : stream) ranks.push_back(outcome.rank);
  EXPECT_EQ(ranks, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_FALSE(stream.next().has_value());
}

TEST_F(ControllerTest, FoldsAndBroadcasts) {
  all_.broadcast<&Policy::set>(2.5);
  EXPECT_EQ(calls[0].as.flags, MONARCH_CALL_QUIET);
  over(0);
  on_call = [] {
    answer(1, 1, 2);
    answer(1, 0, 1);
    over(1);
  };
  EXPECT_EQ(all_.fold<&Policy::other>(100, [](int a, int b) { return a * 10 + b; }), 10'021);
}

TEST_F(ControllerTest, ScattersAnArgumentToEachRank) {
  const auto pair = all_.at("gpu", 1);
  EXPECT_EQ(thrown<BadArguments>([&] { return pair.scatter<&Policy::set>(std::vector<double>{1}); }),
            "scatter: 1 arguments for 2 ranks");
  const auto future = pair.scatter<&Policy::set>(std::vector<double>{1.5, 2.5});
  ASSERT_EQ(calls.size(), 2U);
  EXPECT_EQ(calls[0].ranks, (std::vector<std::uint32_t>{1}));
  EXPECT_EQ(calls[1].ranks, (std::vector<std::uint32_t>{4}));
  EXPECT_EQ(calls[1].arguments, codec::encode(std::tuple<double>(2.5)));
  answer(1, 4, std::monostate());
  over(1);
  EXPECT_FALSE(future.ready());
  answer(0, 1, std::monostate());
  over(0);
  EXPECT_EQ(future.get().size(), 2U);
}

TEST_F(ControllerTest, CallsOneAndChoosesTheOneWithLeastToDo) {
  EXPECT_EQ(thrown<BadArguments>([&] { return all_.call_one<&Policy::other>(); }), "call_one: 6 ranks instead of one");
  const auto three = all_.at("host", 0);
  auto first = three.choose<&Policy::later>(1);
  auto second = three.choose<&Policy::later>(1);
  EXPECT_EQ(calls[0].ranks, (std::vector<std::uint32_t>{0}));
  EXPECT_EQ(calls[0].signature, "i->s");
  EXPECT_EQ(calls[1].ranks, (std::vector<std::uint32_t>{1}));
  answer(1, 1, std::string("done"));
  over(1);
  EXPECT_EQ(second.get(), "done");
  (void)three.choose<&Policy::later>(1);
  (void)three.choose<&Policy::later>(1);
  EXPECT_EQ(calls[2].ranks, (std::vector<std::uint32_t>{2}));
  EXPECT_EQ(calls[3].ranks, (std::vector<std::uint32_t>{1})) << "0 and 2 have one under way";
  first.cancel();
  EXPECT_EQ(cancelled, (std::vector<std::uint64_t>{1}));
  for (const std::size_t call : {0U, 2U, 3U}) over(call);
  EXPECT_FALSE(first.collect());
}

TEST_F(ControllerTest, GoesOnOnceACallIsOver) {
  int heard = 0;
  const auto future = all_.call<&Policy::other>();
  future.then([&](const Future<int>& ended) { heard = ended.get().at(2); });
  answer(0, 2, 7);
  EXPECT_EQ(heard, 0);
  over(0);
  EXPECT_EQ(heard, 7);
  future.then([&](const Future<int>& ended) { heard = ended.get().at(2) + 1; });
  EXPECT_EQ(heard, 8);
}

TEST_F(ControllerTest, GivesHandlesAway) {
  const auto some = all_.at("gpu", 1).within(3s);
  ActorMesh<Policy> read;
  codec::DecodeError error;
  ASSERT_TRUE(codec::decode(codec::encode(some), read, error)) << error.what;
  EXPECT_EQ(read, some);
  (void)read.call<&Policy::other>();
  EXPECT_EQ(calls[0].ranks, (std::vector<std::uint32_t>{1, 4}));
  EXPECT_EQ(calls[0].as.deadline_ns, 3'000'000'000);
  over(0);
}

TEST_F(ControllerTest, HearsOfFailures) {
  std::vector<std::string> heard;
  controller_.on_failure([&](const Failure& failure) {
    heard.push_back(failure.mesh + "/" + std::to_string(failure.rank) + ": " + failure.cause);
  });
  monarch_answer_v1 lost{};
  lost.rank = 3;
  lost.text = "killed by SIGKILL";
  failure_handler(failure_user, "generators", &lost);
  EXPECT_EQ(heard, (std::vector<std::string>{"generators/3: killed by SIGKILL"}));
  EXPECT_EQ(thrown<BadArguments>([&] { return controller_.on_failure({}), 0; }), "on_failure was set before");
}

TEST_F(ControllerTest, SaysThatThereIsNoSuchMesh) {
  EXPECT_EQ(thrown<BadArguments>([&] { return controller_.mesh("nobody"); }), "the job has no mesh nobody");
}

int drive(Controller& controller) { return controller.args().get<int>("code", 3); }
int throws(Controller& /*controller*/) { throw std::runtime_error("no way"); }

TEST_F(ControllerTest, RunsItsEntry) {
  const monarch_plugin_v1* const plugin = monarch_plugin_v1_get();
  std::optional<int> code;
  std::optional<int> after_an_error;
  monarch_place_v1 here = place();
  const std::string args = codec::encode(std::map<std::string, int>{{"code", 7}});
  here.args = {args.data(), args.size()};
  for (std::size_t i = 0; i < plugin->controller_count; ++i) {
    const monarch_controller_v1& one = *plugin->controllers[i];
    if (std::string(one.name) == "drive") code = one.run(&host_, &here);
    if (std::string(one.name) == "throws") after_an_error = one.run(&host_, &here);
  }
  EXPECT_EQ(code, 7);
  EXPECT_EQ(after_an_error, 1);
}

MONARCH_PLUGIN(MONARCH_ACTOR(Policy, &Policy::score, &Policy::set, &Policy::other, &Policy::later))
MONARCH_CONTROLLER(drive)
MONARCH_CONTROLLER(throws)

}  // namespace
}  // namespace monarch
