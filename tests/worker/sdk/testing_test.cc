// Actors as a test of a user's has them: in its process, without a cluster.

#include <monarch/testing.hpp>

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

namespace monarch {
namespace {

struct Counted : Actor {
  explicit Counted(const Args& args) : count(args.get<int>("start")) {
    if (count < 0) throw std::invalid_argument("less than nothing");
  }
  int add(int more) { return count += more; }
  void fail() { throw std::runtime_error("no luck"); }
  void later(Reply<int> reply) { waiting.push_back(reply); }
  int ask(const ActorMesh<Counted>& other) { return other.call_one(&Counted::add, 0).get(); }
  std::string where() { return to_string(context().coordinates()) + " " + context().mesh; }
  int count;
  std::vector<Reply<int>> waiting;
};

int adds_up(Controller& controller) {
  const auto all = controller.mesh("work").actors<Counted>("counted");
  controller.on_failure(
      [all](const Failure& failure) { (void)all.call(&Counted::add, static_cast<int>(failure.rank)); });
  const auto mine = controller.named<Counted>("mine", Args().set("start", 5));
  return all.fold(
             &Counted::add, 0, [](int sum, int value) { return sum + value; }, 1) +
         mine.call_one(&Counted::add, 0).get();
}

class TestingJob : public ::testing::Test {
 protected:
  TestingJob() { job_.mesh("work", {{"host", 2}, {"gpu", 2}}); }
  testing::Job job_;
};

TEST_F(TestingJob, HasActorsThatAreCalledAsInAJob) {
  const auto all = job_.actors<Counted>("work", "counted", Args().set("start", 10));
  EXPECT_EQ(all.call(&Counted::add, 2).get().at(3), 12);
  EXPECT_EQ(job_.actor<Counted>("work", "counted", 3).count, 12);
  EXPECT_EQ(all.at("host", 1).at("gpu", 0).call_one(&Counted::where).get(), "(1,0) work");
  const auto one = all.at("host", 0).at("gpu", 1);
  EXPECT_EQ(one.call_one(&Counted::fail).collect().text, "no luck");
  EXPECT_EQ(one.call_one(&Counted::ask, all.at("host", 1).at("gpu", 1)).get(), 12) << "also by an actor";
  const auto later = one.call_one(&Counted::later);
  EXPECT_FALSE(later.ready());
  job_.actor<Counted>("work", "counted", 1).waiting[0].set(7);
  EXPECT_EQ(later.get(), 7);
  all.broadcast(&Counted::add, 1);
  EXPECT_EQ(job_.actor<Counted>("work", "counted", 0).count, 13);
  all.ready(std::chrono::seconds(0));
}

TEST_F(TestingJob, SaysWhatIsNotThere) {
  const auto all = job_.actors<Counted>("work", "counted", Args().set("start", 10));
  EXPECT_THROW((void)job_.actors<Counted>("other", "counted"), BadArguments);
  EXPECT_THROW((void)job_.actors<Counted>("work", "bad", Args().set("start", -1)), BadArguments);
  const auto nobody = ActorMesh<Counted>("countd", all.view()).at("host", 0).at("gpu", 0);
  EXPECT_EQ(nobody.call_one(&Counted::fail).collect().kind, Kind::kRefused);
}

TEST_F(TestingJob, RunsAControllerAndLosesRanks) {
  (void)job_.actors<Counted>("work", "counted", Args().set("start", 1));
  Controller controller = job_.controller();
  EXPECT_EQ(adds_up(controller), 4 * 2 + 5);
  job_.lose("work", 2);
  EXPECT_EQ(job_.actor<Counted>("work", "counted", 0).count, 4) << "on_failure has told the others";
  const auto outcome =
      controller.mesh("work").actors<Counted>("counted").at("host", 1).at("gpu", 0).call_one(&Counted::fail).collect();
  EXPECT_EQ(outcome.kind, Kind::kRankLost);
  EXPECT_EQ(outcome.text, "killed by SIGKILL");
}

MONARCH_PLUGIN(MONARCH_ACTOR(Counted, &Counted::add, &Counted::fail, &Counted::later, &Counted::ask, &Counted::where))

}  // namespace
}  // namespace monarch
