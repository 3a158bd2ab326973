// Actors as a plugin describes them, called through the C interface; the host is the test.

#include <monarch/actor.hpp>

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace monarch {
namespace {

struct Sample {
  double x = 0;
  std::vector<Sample> children;
};
MONARCH_FIELDS(Sample, x, children)

enum class Colour : std::uint8_t { kRed, kBlue };

class Greeter : public monarch::Actor {
 public:
  explicit Greeter(const monarch::Args& args) : greeting_(args.get<std::string>("greeting", "hello")) {
    if (args.get<bool>("bad", false)) throw std::runtime_error("this is a bad day");
  }
  void restore(const monarch::Context& context) { restored_ = context.why_restarted; }

  std::string say_hello(const std::string& text) const {
    return greeting_ + " " + text + " from " + to_string(context().coordinates());
  }
  void say_bye() { throw std::runtime_error("saying bye is hard"); }
  void throw_a_number(int number) { throw number; }
  void throw_words(int how) {
    struct Wordless : std::exception {
      const char* what() const noexcept override { return nullptr; }
    };
    if (how == 0) throw std::string("disk full");
    if (how == 1) throw "link is down";
    if (how == 2) throw Wordless();
    try {
      try {
        throw std::out_of_range("row 7");
      } catch (...) {
        std::throw_with_nested(std::runtime_error("checksum mismatch"));
      }
    } catch (...) {
      std::throw_with_nested(std::runtime_error("loading shard 3"));
    }
  }
  std::string restored() { return restored_; }
  std::int64_t sum(const std::vector<std::int64_t>& numbers, std::optional<std::int64_t> more) {
    std::int64_t all = more.value_or(0);
    for (const std::int64_t number : numbers) all += number;
    return all;
  }
  void later(monarch::Reply<std::string> reply, int how) {
    if (how == 0) reply.set("at once");
    if (how == 1) kept_ = reply;
    if (how == 2) throw std::logic_error("not later either");
    if (how == 3) reply.fail("no luck");
  }
  void let_go() { kept_.reset(); }
  void done(monarch::Reply<void> reply) { reply.set(); }
  std::optional<monarch::Reply<std::string>> kept_;

 private:
  std::string greeting_;
  std::string restored_;
};

struct Base : monarch::Actor {
  int twice(int number) noexcept { return 2 * number; }
};
struct Derived : Base {};

struct Answer {
  std::string value;
  std::string type;
  std::string text;
};

// Its answers, by delivery.
std::map<const monarch_delivery_v1*, Answer> answers;

monarch_host_v1 host_of_test() {
  monarch_host_v1 host{};
  host.struct_size = sizeof host;
  host.reply = [](monarch_delivery_v1* delivery, monarch_bytes_v1 result) {
    EXPECT_FALSE(answers.contains(delivery));
    answers[delivery].value = std::string(static_cast<const char*>(result.data), result.size);
  };
  host.fail = [](monarch_delivery_v1* delivery, const char* type, const char* text, const char* /*traceback*/) {
    EXPECT_FALSE(answers.contains(delivery));
    answers[delivery] = {.value = "", .type = type, .text = text};
  };
  host.is_cancelled = [](const monarch_delivery_v1*) { return 1; };
  return host;
}

class ActorTest : public ::testing::Test {
 protected:
  ActorTest() { answers.clear(); }
  ~ActorTest() override {
    if (actor_ != nullptr) described_->destroy(actor_);
  }

  void describe(const monarch_class_v1* described) { described_ = described; }
  // Why there is none; empty: there is one.
  std::string make(const std::string& args = {}, std::uint64_t generation = 1) {
    const std::array<const char*, 2> names{"host", "gpu"};
    const std::array<std::uint32_t, 2> sizes{2, 4};
    const monarch_place_v1 place{.struct_size = sizeof place,
                                 .rank = 6,
                                 .generation = generation,
                                 .mesh = "trainer",
                                 .actor = "greeter",
                                 .host = "v1",
                                 .why_restarted = generation > 1 ? "killed by SIGKILL" : "",
                                 .dim_count = 2,
                                 .reserved = 0,
                                 .dim_names = names.data(),
                                 .dim_sizes = sizes.data(),
                                 .args = {args.data(), args.size()}};
    std::array<char, 200> why{};
    actor_ = described_->create(&host_, &place, why.data(), why.size());
    return actor_ == nullptr ? why.data() : "";
  }
  const monarch_endpoint_v1& endpoint(std::string_view name) const {
    for (std::uint32_t i = 0; i < described_->endpoint_count; ++i) {
      if (described_->endpoints[i].name == name) return described_->endpoints[i];
    }
    throw std::out_of_range(std::string(name));
  }
  std::string signature(std::string_view name) const { return endpoint(name).signature; }

  template <class... A>
  const monarch_delivery_v1* call(std::string_view name, const A&... arguments) {
    return call_with(name, monarch::codec::encode(std::tuple<A...>(arguments...)));
  }
  const monarch_delivery_v1* call_with(std::string_view name, const std::string& arguments) {
    auto* const delivery = reinterpret_cast<monarch_delivery_v1*>(++deliveries_);
    endpoint(name).invoke(actor_, {arguments.data(), arguments.size()}, &host_, delivery);
    return delivery;
  }
  template <class T>
  static T value_of(const monarch_delivery_v1* delivery) {
    T value{};
    monarch::codec::DecodeError error;
    EXPECT_TRUE(monarch::codec::decode(answers.at(delivery).value, value, error)) << error.what;
    return value;
  }
  static std::string failure_of(const monarch_delivery_v1* delivery) {
    return answers.at(delivery).type + ": " + answers.at(delivery).text;
  }

  const monarch_host_v1 host_ = host_of_test();
  const monarch_class_v1* described_ = MONARCH_ACTOR(
      Greeter, &Greeter::say_hello, &Greeter::say_bye, MONARCH_CONCURRENT(&Greeter::sum, 8), &Greeter::throw_a_number,
      &Greeter::throw_words, &Greeter::restored, &Greeter::later, &Greeter::let_go, &Greeter::done);
  void* actor_ = nullptr;
  std::uintptr_t deliveries_ = 0;
};

TEST_F(ActorTest, IsDescribedByItsNamesAndItsSignatures) {
  EXPECT_STREQ(described_->name, "Greeter");
  EXPECT_EQ(described_->endpoint_count, 9U);
  EXPECT_EQ(signature("say_hello"), "s->s");
  EXPECT_EQ(signature("say_bye"), "->v");
  EXPECT_EQ(signature("sum"), "[i]?i->i");
  EXPECT_EQ(signature("later"), "i->s");
  EXPECT_EQ(signature("done"), "->v");
  EXPECT_EQ(endpoint("sum").at_most, 8U);
  EXPECT_EQ(endpoint("say_hello").at_most, 0U);
}

TEST_F(ActorTest, IsMadeByWhatTheSpecGivesItAndKnowsWhereItIs) {
  ASSERT_EQ(make(monarch::codec::encode(std::map<std::string, std::string>{{"greeting", "good day"}})), "");
  EXPECT_EQ(value_of<std::string>(call("say_hello", std::string("world"))), "good day world from (1,2)");
}

TEST_F(ActorTest, SaysWhyItCannotBeMade) {
  EXPECT_EQ(make(monarch::codec::encode(std::map<std::string, bool>{{"bad", true}})),
            "std::runtime_error: this is a bad day");
  EXPECT_EQ(make(monarch::codec::encode(std::map<std::string, int>{{"greeting", 7}})),
            "monarch::BadArguments: args.greeting: a string expected");
  EXPECT_EQ(make("x").substr(0, 43), "monarch::BadArguments: args are no map of n");
}

TEST_F(ActorTest, IsToldThatItsRankHadAProcessBefore) {
  ASSERT_EQ(make({}, 2), "");
  EXPECT_EQ(value_of<std::string>(call("restored")), "killed by SIGKILL");
}

TEST_F(ActorTest, LetsWhatItThrowsGoToTheCallerAndLivesOn) {
  ASSERT_EQ(make(), "");
  EXPECT_EQ(failure_of(call("say_bye")), "std::runtime_error: saying bye is hard");
  EXPECT_EQ(failure_of(call("throw_a_number", 7)), "int: something that is no std::exception");
  EXPECT_EQ(value_of<std::int64_t>(call("sum", std::vector<std::int64_t>{1, 2}, std::optional<std::int64_t>(3))), 6);
}

TEST_F(ActorTest, SaysTheWordsOfWhateverIsThrown) {
  ASSERT_EQ(make(), "");
  EXPECT_EQ(failure_of(call("throw_words", 0)), "std::string: disk full");
  EXPECT_EQ(failure_of(call("throw_words", 1)), "char const*: link is down");
  EXPECT_TRUE(failure_of(call("throw_words", 2)).ends_with("Wordless: "));
  EXPECT_EQ(failure_of(call("throw_words", 3)),
            "std::runtime_error: loading shard 3; caused by std::runtime_error: checksum mismatch; caused by "
            "std::out_of_range: row 7");
}

TEST_F(ActorTest, SaysWhichArgumentIsOfAnotherShape) {
  ASSERT_EQ(make(), "");
  EXPECT_EQ(failure_of(call("say_hello", 7)), "monarch::BadArguments: argument 1: a string expected");
  EXPECT_EQ(failure_of(call("sum", std::vector<int>{1}, std::string("x"))),
            "monarch::BadArguments: argument 2: an integer expected");
  EXPECT_EQ(failure_of(call("sum")), "monarch::BadArguments: 0 arguments for 2");
  EXPECT_EQ(failure_of(call_with("say_bye", "\x90\x90")), "monarch::BadArguments: bytes follow the arguments");
  EXPECT_EQ(failure_of(call_with("say_bye", "")).substr(0, 46), "monarch::BadArguments: the arguments are no li");
  EXPECT_EQ(failure_of(call("later", std::string("x"))), "monarch::BadArguments: argument 1: an integer expected");
}

TEST_F(ActorTest, AnswersLaterOnce) {
  ASSERT_EQ(make(), "");
  EXPECT_EQ(value_of<std::string>(call("later", 0)), "at once");
  EXPECT_EQ(value_of<std::monostate>(call("done")), std::monostate());
  EXPECT_EQ(failure_of(call("later", 2)), "std::logic_error: not later either");
  EXPECT_EQ(failure_of(call("later", 3)), "monarch::Failure: no luck");
  const auto* const kept = call("later", 1);
  EXPECT_FALSE(answers.contains(kept));
  auto& reply = *static_cast<Greeter*>(actor_)->kept_;
  EXPECT_TRUE(reply.cancelled());
  EXPECT_TRUE(reply.set("late"));
  EXPECT_FALSE(reply.set("later still"));
  EXPECT_FALSE(reply.fail("or not at all"));
  EXPECT_EQ(value_of<std::string>(kept), "late");
}

TEST_F(ActorTest, FailsACallWhoseReplyIsLetGo) {
  ASSERT_EQ(make(), "");
  const auto* const dropped = call("later", 7);
  EXPECT_EQ(failure_of(dropped), "monarch::ReplyDropped: the endpoint let its Reply go without an answer");
  const auto* const kept = call("later", 1);
  (void)call("let_go");
  EXPECT_EQ(failure_of(kept), "monarch::ReplyDropped: the endpoint let its Reply go without an answer");
}

TEST_F(ActorTest, MayHaveEndpointsOfWhatItDerivesFrom) {
  describe(MONARCH_ACTOR(Derived, &Derived::twice));
  ASSERT_EQ(make(), "");
  EXPECT_EQ(signature("twice"), "i->i");
  EXPECT_EQ(value_of<int>(call("twice", 21)), 42);
}

TEST(Signature, SpellsShapesAsTheyTravel) {
  const auto spell = []<class T>(std::type_identity<T>) { return monarch::signature_of<void, std::tuple<T>>(); };
  EXPECT_EQ(spell(std::type_identity<bool>()), "b->v");
  EXPECT_EQ(spell(std::type_identity<Colour>()), "i->v");
  EXPECT_EQ(spell(std::type_identity<float>()), "f->v");
  EXPECT_EQ(spell(std::type_identity<monarch::codec::Bytes>()), "y->v");
  EXPECT_EQ(spell(std::type_identity<std::vector<std::uint8_t>>()), "y->v");
  EXPECT_EQ(spell(std::type_identity<std::map<std::string, std::vector<int>>>()), "<s[i]>->v");
  EXPECT_EQ(spell(std::type_identity<std::pair<int, std::array<bool, 2>>>()), "(i(bb))->v");
  EXPECT_EQ(spell(std::type_identity<std::variant<int, std::string>>()), "|is|->v");
  EXPECT_EQ(spell(std::type_identity<Sample>()), "{f[@2]}->v");
  EXPECT_EQ(spell(std::type_identity<monarch::Dimension>()), "{si}->v");
}

TEST(Plugin, HasWhatIsNamedInItInAnyNumber) {
  const monarch_plugin_v1* const plugin = monarch_plugin_v1_get();
  EXPECT_EQ(plugin->abi, MONARCH_ABI_V1);
  std::set<std::string> names;
  for (std::size_t i = 0; i < plugin->class_count; ++i) names.insert(plugin->classes[i]->name);
  EXPECT_TRUE(names.contains("Greeter"));
  EXPECT_TRUE(names.contains("Derived"));
}

MONARCH_PLUGIN(MONARCH_ACTOR(Greeter, &Greeter::say_hello))
MONARCH_PLUGIN(MONARCH_ACTOR(Derived, &Derived::twice))

}  // namespace
}  // namespace monarch
