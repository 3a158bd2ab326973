#include "worker/core/vault/vault_core.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/worker/core/vault/vault_world.h"

namespace monarch {
namespace {

constexpr HostId kOwn{0};
constexpr HostId kOther{1};
constexpr HostId kThird{2};

VaultGang gang(std::uint64_t generation, std::optional<std::uint64_t> committed, std::vector<HostId> targets) {
  return {.mesh = MeshId(0),
          .gang = GangId(0),
          .generation = generation,
          .committed = committed,
          .resumed = {},
          .targets = std::move(targets),
          .passed = {},
          .sources = {{kOwn, Rank(0), 2}}};
}

// A second one, whose ranks are on the third host.
VaultGang gang_of_third() {
  VaultGang second = gang(1, {}, {kOther});
  second.gang = GangId(1);
  second.sources = {{kThird, Rank(2), 2}};
  return second;
}

VaultEvent offered(HostId from, std::uint32_t rank, std::uint64_t generation, std::uint64_t step, std::uint64_t bytes,
                   std::string digest = "x") {
  return vault_event::PeerSpoke{from, PeerVia::kTheirs,
                                VaultOffer{{{MeshId(0), Rank(rank)}, generation, step}, bytes, std::move(digest)}};
}

class VaultCoreTest : public ::testing::Test {
 protected:
  void table(std::uint64_t generation, std::optional<std::uint64_t> committed,
             const std::vector<HostId>& targets = {kOther}) {
    ++version_;
    for (std::uint32_t host = 0; host < 3; ++host) {
      world_.tell(HostId(host),
                  VaultWorld::table_of(version_, {gang(generation, committed, targets), gang_of_third()}, 2));
    }
  }
  std::size_t held(std::uint32_t host) { return world_.at(host).blobs.size(); }

  VaultWorld world_{3, 100};
  std::uint64_t version_ = 0;
};

using Vault = VaultCoreTest;

TEST_F(Vault, AnswersASaveOnceEachTargetHasIt) {
  table(1, {}, {kOther, kThird});
  const VaultClient client = world_.save(kOwn, 1, 1, 10, "some checkpoint");
  EXPECT_EQ(world_.answer(0, client), "");
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1,2]})");
  EXPECT_EQ(world_.at(1).blobs.begin()->second, "some checkpoint");
  EXPECT_TRUE(world_.at(2).sealed.begin()->second);
}

TEST_F(Vault, WaitsForATableThatKnowsTheGeneration) {
  const VaultClient early = world_.save(kOwn, 1, 2, 10, "a");
  EXPECT_EQ(world_.answer(0, early), "");
  table(1, {});
  EXPECT_EQ(world_.answer(0, early), "");
  table(2, {});
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, early), R"({"v":1,"ok":true,"hosts":[0,1]})");
}

TEST_F(Vault, RefusesARankWhoseGangHasBeenStartedAgain) {
  table(3, 10);
  const VaultClient client = world_.save(kOwn, 1, 2, 20, "late");
  EXPECT_EQ(world_.answer(0, client),
            R"({"v":1,"ok":false,"refused":"generation 3 of its gang has taken the place of 2"})");
  EXPECT_EQ(held(0), 0U);
}

TEST_F(Vault, RefusesWhatDoesNotFitAndNamesTheKeyTheHostAndTheSizes) {
  table(1, {});
  (void)world_.save(kOwn, 1, 1, 10, std::string(60, 'a'));
  world_.deliver_all();
  const VaultClient client = world_.save(kOwn, 0, 1, 10, std::string(41, 'b'));
  EXPECT_EQ(world_.answer(0, client), "") << "the next table may make room";
  world_.tick(VaultCore::kFullPatience);
  EXPECT_EQ(
      world_.answer(0, client),
      R"({"v":1,"ok":false,"full":"checkpoints.memory of host h0 is 100B: 60B are taken, and m/0 has 41B of step 10"})");
}

TEST_F(Vault, WaitsForRoomThatTheNextTableMakes) {
  table(1, {});
  for (const std::uint64_t step : {10U, 20U, 30U}) {
    (void)world_.save(kOwn, 1, 1, step, std::string(30, 'a'));
    world_.deliver_all();
  }
  const VaultClient client = world_.save(kOwn, 1, 1, 40, std::string(30, 'b'));
  EXPECT_EQ(world_.answer(0, client), "");
  table(1, 30);
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1]})");
}

TEST_F(Vault, SaysAtOnceThatOneIsLargerThanAllTheMemory) {
  table(1, {});
  const VaultClient client = world_.save(kOwn, 0, 1, 10, std::string(101, 'b'));
  EXPECT_NE(world_.answer(0, client).find("\"full\":"), std::string::npos);
}

TEST_F(Vault, SaysFullWhereNoTargetHasRoomAndGivesItsOwnUp) {
  table(1, {});
  world_.feed(kOther, offered(kThird, 2, 1, 10, 80));
  const VaultClient client = world_.save(kOwn, 1, 1, 10, std::string(60, 'a'));
  for (int second = 0; second < 6; ++second) {
    std::erase_if(world_.flights, [](const auto& one) { return one.from == kThird || one.to == kThird; });
    world_.deliver_all();
    if (second < 3) {
      EXPECT_EQ(world_.answer(0, client), "") << second;
    }
    world_.tick(Duration::seconds(1));
  }
  EXPECT_NE(world_.answer(0, client).find("\"full\":\"h1 has no room: checkpoints.memory of host h1 is 100B"),
            std::string::npos)
      << world_.answer(0, client);
  EXPECT_EQ(held(0), 0U);
}

TEST_F(Vault, TellsWhoSavesThatThereAreFewerCopies) {
  table(1, {}, {});
  const VaultClient client = world_.save(kOwn, 1, 1, 10, "alone");
  EXPECT_EQ(world_.answer(0, client),
            R"({"v":1,"ok":true,"hosts":[0],"short":"no other host is connected that holds no rank of the gang"})");
}

TEST_F(Vault, GoesOnWithoutATargetThatHasLeft) {
  table(1, {}, {kOther, kThird});
  const VaultClient client = world_.save(kOwn, 1, 1, 10, "some checkpoint");
  world_.kill(kThird);
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, client), "");
  table(1, {}, {kOther});
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1],"short":"host 2 is not connected any more"})");
}

TEST_F(Vault, GivesATargetUpThatIsSilent) {
  table(1, {}, {kOther, kThird});
  const VaultClient client = world_.save(kOwn, 1, 1, 10, "some checkpoint");
  for (int second = 0; second < 25; ++second) {
    std::erase_if(world_.flights, [](const auto& one) { return one.from == kThird || one.to == kThird; });
    world_.deliver_all();
    world_.tick(Duration::seconds(1));
  }
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1],"short":"h2 did not answer for 20s"})");
  // No later one waits for it, until it says something.
  const VaultClient next = world_.save(kOwn, 1, 1, 20, "another");
  for (int hop = 0; hop < 10; ++hop) {
    std::erase_if(world_.flights, [](const auto& one) { return one.from == kThird || one.to == kThird; });
    world_.deliver_all();
  }
  EXPECT_EQ(world_.answer(0, next), R"({"v":1,"ok":true,"hosts":[0,1],"short":"h2 has not answered since step 10"})");
  (void)world_.save(kOwn, 1, 1, 30, "a third");
  world_.deliver_all();
  const VaultClient last = world_.save(kOwn, 1, 1, 40, "a fourth");
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, last), R"({"v":1,"ok":true,"hosts":[0,1,2]})");
}

TEST_F(Vault, AsksAgainForAPieceThatIsLost) {
  table(1, {});
  const VaultClient client = world_.save(kOwn, 1, 1, 10, "0123456789abcdefghij");
  bool lost = false;
  for (int i = 0; i < 1'000 && world_.answer(0, client).empty(); ++i) {
    if (world_.flights.empty()) {
      world_.tick(Duration::milliseconds(500));
      continue;
    }
    const auto& next = world_.flights.front();
    if (!lost && next.message && std::holds_alternative<VaultPiece>(*next.message)) {
      lost = true;
      world_.flights.pop_front();
      continue;
    }
    world_.deliver(0);
  }
  EXPECT_TRUE(lost);
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1]})");
  EXPECT_EQ(world_.at(1).blobs.begin()->second, "0123456789abcdefghij");
}

TEST_F(Vault, TakesPiecesThatComeAsBodies) {
  world_.by_bodies = true;
  table(1, {});
  const VaultClient client = world_.save(kOwn, 1, 1, 10, "0123456789abcdefghij");
  std::size_t bodies = 0;
  while (!world_.flights.empty()) {
    if (world_.flights.front().number != 0) ++bodies;
    world_.deliver(0);
  }
  EXPECT_EQ(bodies, 5U) << "no message beside one";
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1]})");
  EXPECT_EQ(world_.at(1).blobs.begin()->second, "0123456789abcdefghij");
}

TEST_F(Vault, AsksAgainAtOnceForWhatWasLostWithItsConnection) {
  world_.by_bodies = true;
  table(1, {});
  const VaultClient client = world_.save(kOwn, 1, 1, 10, "0123456789abcdefghij");
  const auto deliver_up_to_a_body = [&] {
    while (!world_.flights.empty() && world_.flights.front().number == 0) world_.deliver(0);
    return !world_.flights.empty();
  };
  ASSERT_TRUE(deliver_up_to_a_body());
  world_.deliver(0);
  ASSERT_TRUE(deliver_up_to_a_body());
  world_.lose(0);
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1]})") << "no time has passed";
  EXPECT_EQ(world_.at(1).blobs.begin()->second, "0123456789abcdefghij");
}

TEST_F(Vault, BelievesNoOtherHostThatAPieceHasCome) {
  world_.by_bodies = true;
  table(1, {});
  const VaultClient client = world_.save(kOwn, 1, 1, 10, "0123456789abcdefghij");
  while (!world_.flights.empty() && world_.flights.front().number == 0) world_.deliver(0);
  ASSERT_FALSE(world_.flights.empty());
  for (std::uint64_t number = 0; number < 10; ++number) {
    world_.feed(kOther, vault_event::PieceCame{kThird, PeerVia::kTheirs, number});
    world_.feed(kOther, vault_event::PieceCame{kOwn, PeerVia::kOurs, number});
    world_.feed(kOther, vault_event::PieceCame{kOwn, PeerVia::kTheirs, number + 100});
  }
  EXPECT_EQ(world_.answer(0, client), "");
  world_.deliver_all();
  EXPECT_EQ(world_.at(1).blobs.begin()->second, "0123456789abcdefghij");
}

TEST_F(Vault, LoadsFromThisHostAndElseFromThoseThatHaveIt) {
  table(1, {});
  (void)world_.save(kOwn, 1, 1, 10, "some checkpoint");
  world_.deliver_all();
  const VaultClient here = world_.load(kOwn, 1, 1, 10, "some checkpoint", {kOwn, kOther});
  EXPECT_EQ(world_.answer(0, here), R"({"v":1,"ok":true,"host":0,"bytes":15})");
  EXPECT_EQ(world_.at(0).given.at(here), "some checkpoint");
  world_.kill(kOwn);
  table(2, 10);
  const VaultClient there = world_.load(kThird, 1, 1, 10, "some checkpoint", {kOwn, kOther});
  world_.deliver_all();
  EXPECT_EQ(world_.answer(2, there), R"({"v":1,"ok":true,"host":1,"bytes":15})");
  EXPECT_EQ(world_.at(2).given.at(there), "some checkpoint");
}

TEST_F(Vault, LoadsAnEmptyCheckpointFromAnotherHost) {
  table(1, {});
  (void)world_.save(kOwn, 1, 1, 10, "");
  world_.deliver_all();
  const VaultClient there = world_.load(kThird, 1, 1, 10, "", {kOther});
  world_.deliver_all();
  EXPECT_EQ(world_.answer(2, there), R"({"v":1,"ok":true,"host":1,"bytes":0})");
}

TEST_F(Vault, AsksTheNextWhereOneDoesNotHaveItAndSaysWhyWhereNobodyDoes) {
  table(1, {});
  (void)world_.save(kOwn, 1, 1, 10, "some checkpoint");
  world_.deliver_all();
  const VaultClient found = world_.load(kThird, 1, 1, 10, "some checkpoint", {kThird, kOther});
  world_.deliver_all();
  EXPECT_EQ(world_.answer(2, found), R"({"v":1,"ok":true,"host":1,"bytes":15})");
  const VaultClient missing = world_.load(kThird, 1, 1, 20, "other", {kOwn, kOther, HostId(7)});
  world_.deliver_all();
  EXPECT_EQ(world_.answer(2, missing),
            R"({"v":1,"ok":false,"missing":"host 7 is not connected; h0 does not have it; h1 does not have it"})");
}

TEST_F(Vault, FetchesAnotherCopyWhereItsOwnIsDamaged) {
  table(1, {});
  (void)world_.save(kOwn, 1, 1, 10, "some checkpoint");
  world_.deliver_all();
  const VaultClient again = world_.load(kOwn, 1, 1, 10, "some checkpoint", {kOwn, kOther}, {kOwn});
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, again), R"({"v":1,"ok":true,"host":1,"bytes":15})");
}

TEST_F(Vault, GivesUpWhatTwoCommittedStepsHaveReplacedEverywhere) {
  for (std::uint64_t step = 10; step <= 60; step += 10) {
    table(1, step == 10 ? std::nullopt : std::optional(step - 10));
    const VaultClient client = world_.save(kOwn, 1, 1, step, std::string(30, 'c'));
    world_.deliver_all();
    EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1]})") << step;
  }
  table(1, 60);
  EXPECT_EQ(held(0), 2U);
  EXPECT_EQ(held(1), 2U);
}

TEST_F(Vault, GivesUpWhatNobodyWaitsForAnyMore) {
  table(1, {});
  const VaultClient client = world_.save(kOwn, 1, 1, 10, "some checkpoint");
  world_.feed(kOwn, vault_event::ClientLeft{client});
  world_.deliver_all();
  EXPECT_EQ(held(0), 0U);
  EXPECT_EQ(held(1), 0U);
}

TEST_F(Vault, KeepsWhatWasCommittedWhenTheStepIsSavedAgainWithOtherBytes) {
  table(1, {});
  (void)world_.save(kOwn, 1, 1, 10, "one");
  world_.deliver_all();
  const VaultClient again = world_.save(kOwn, 1, 1, 10, "two");
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, again), R"({"v":1,"ok":true,"hosts":[0,1]})");
  table(2, 10);
  for (const HostId host : {kOwn, kOther}) {
    const VaultClient client = world_.load(host, 1, 1, 10, "one", {kOwn, kOther});
    EXPECT_EQ(world_.at(host.value()).given[client], "one") << host.value();
  }
}

TEST_F(Vault, KeepsWhatWasCommittedWhenWhoSavesItAgainLeaves) {
  table(1, {});
  (void)world_.save(kOwn, 1, 1, 10, "one");
  world_.deliver_all();
  table(1, 10);
  const VaultClient again = world_.save(kOwn, 1, 1, 10, "one");
  world_.feed(kOwn, vault_event::ClientLeft{again});
  world_.deliver_all();
  EXPECT_EQ(held(0), 1U);
  EXPECT_EQ(held(1), 1U);
}

TEST_F(Vault, GivesTheOneBeforeUpForOneThatIsSavedOnAFullHost) {
  for (const std::uint64_t step : {10U, 20U, 30U}) {
    (void)world_.save(kOwn, 1, 1, step, std::string(30, 'a'));
    table(1, step);
    world_.deliver_all();
  }
  table(1, 20);  // of which this one's 30 is not committed: another rank failed to save it
  const VaultClient client = world_.save(kOwn, 1, 1, 40, std::string(35, 'b'));
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1]})");
}

// Another rank failed to save 20 and 30, each time.
TEST_F(Vault, HasRoomAgainOnceTheGangHasPassedWhatItNeverCommitted) {
  const std::string bytes(30, 'a');
  for (const std::uint64_t step : {10U, 20U, 30U}) {
    (void)world_.save(kOwn, 1, 1, step, bytes);
    world_.deliver_all();
    table(1, 10);
  }
  const VaultClient full = world_.save(kOwn, 1, 1, 40, bytes);
  world_.tick(VaultCore::kFullPatience);
  EXPECT_NE(world_.answer(0, full).find(R"("full")"), std::string::npos) << world_.answer(0, full);
  VaultGang passed = gang(1, 10, {kOther});
  passed.passed = 30;  // this rank's last, and the other one has committed 40
  ++version_;
  for (std::uint32_t host = 0; host < 3; ++host) {
    world_.tell(HostId(host), VaultWorld::table_of(version_, {passed}, 2));
  }
  const VaultClient client = world_.save(kOwn, 1, 1, 50, bytes);
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1]})");
}

TEST_F(Vault, LoadsAlsoWhereOthersCopiesHaveTakenAllTheMemory) {
  table(1, {});
  (void)world_.save(kOwn, 1, 1, 10, std::string(40, 'a'));
  world_.deliver_all();
  table(1, 10);
  (void)world_.save(kThird, 0, 1, 10, std::string(90, 'c'));
  world_.deliver_all();
  world_.may_exceed = true;
  const VaultClient client = world_.load(kThird, 1, 1, 10, std::string(40, 'a'), {kOwn, kOther});
  world_.deliver_all();
  EXPECT_EQ(world_.answer(2, client), R"({"v":1,"ok":true,"host":0,"bytes":40})");
}

TEST_F(Vault, FindsWhatAHostHasThatOnlyLoadedIt) {
  table(1, {});
  (void)world_.save(kOwn, 1, 1, 10, "some checkpoint");
  world_.deliver_all();
  table(1, 10);
  (void)world_.load(kThird, 1, 1, 10, "some checkpoint", {kOwn, kOther});
  world_.deliver_all();
  world_.kill(kOwn);
  world_.kill(kOther);
  world_.start(kOwn);
  table(2, 10);
  const VaultClient client = world_.load(kOwn, 1, 1, 10, "some checkpoint", {kOwn, kOther});
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"host":2,"bytes":15})");
}

TEST_F(Vault, DialsATargetAgainWhoseVaultIsAnotherNow) {
  table(1, {});
  const VaultClient client = world_.save(kOwn, 1, 1, 10, "some checkpoint");
  world_.kill(kOther);
  world_.start(kOther);
  world_.new_port(kOther);
  table(1, {});
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1]})");
}

TEST_F(Vault, TakesNoCopyOfAStepThatTheGangHasGoneOnWithout) {
  table(1, {}, {kOther});
  const VaultClient client = world_.save(kOwn, 1, 1, 10, "some checkpoint");
  ++version_;
  world_.tell(kOther, VaultWorld::table_of(version_, {gang(2, {}, {kOther})}, 2));
  world_.deliver_all();
  EXPECT_EQ(held(1), 0U);
  EXPECT_EQ(world_.answer(0, client),
            R"({"v":1,"ok":true,"hosts":[0],"short":"h1 knows that the gang has gone on without step 10"})");
}

TEST_F(Vault, TakesNoCopyFromAHostThatDoesNotHaveTheRank) {
  table(1, {});
  for (std::uint64_t step = 1; step < 1'000; ++step) {
    world_.feed(kOther, offered(kThird, 0, 1, step, 90));   // another's
    world_.feed(kOther, offered(kThird, 2, 2, step, 90));   // of a generation that nobody has started
    world_.feed(kOther, offered(kThird, 70, 1, step, 90));  // of no gang
    world_.feed(kThird, offered(kOwn, 4, 1, step, 90));     // of one that is done
  }
  EXPECT_EQ(held(1), 0U);
  EXPECT_EQ(held(2), 0U);
  for (const auto& flight : world_.flights) {
    const auto* kept = std::get_if<VaultKept>(&*flight.message);
    const auto* asked = std::get_if<VaultAsk>(&*flight.message);
    EXPECT_TRUE(kept != nullptr ? !kept->refused.empty() : asked != nullptr && asked->length == 0) << "a sign of life";
  }
  world_.flights.clear();
  const VaultClient client = world_.save(kOwn, 1, 1, 10, std::string(60, 'a'));
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1]})");
}

TEST_F(Vault, TakesAnOfferOnceItsTableHasCome) {
  table(1, {});
  ++version_;
  world_.tell(kOwn, VaultWorld::table_of(version_, {gang(2, {}, {kOther})}, 2));
  const VaultClient client = world_.save(kOwn, 1, 2, 10, "a");
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, client), "");
  world_.tell(kOther, VaultWorld::table_of(version_, {gang(2, {}, {kOther})}, 2));
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1]})") << "without another offer";
}

TEST_F(Vault, KnowsWhoSentForAGenerationUntilTheNext) {
  table(1, {});
  VaultGang moved = gang(1, {}, {kOther});
  moved.sources = {{kThird, Rank(0), 2}};
  world_.tell(kOther, VaultWorld::table_of(++version_, {moved}, 2));
  const VaultClient client = world_.save(kOwn, 1, 1, 10, "a");
  world_.deliver_all();
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1]})");
  moved.generation = 2;
  world_.tell(kOther, VaultWorld::table_of(++version_, {moved}, 2));
  const std::uint64_t used = world_.core(1).used();
  world_.feed(kOther, offered(kOwn, 0, 2, 20, 10));
  world_.tick(VaultCore::kFullPatience);
  world_.flights.clear();
  world_.feed(kOther, offered(kOwn, 0, 2, 20, 10));
  EXPECT_EQ(world_.core(1).used(), used);
  ASSERT_EQ(world_.flights.size(), 1U);
  EXPECT_EQ(std::get<VaultKept>(*world_.flights[0].message).refused, "is not told to keep copies of it");
}

// Of a host that fills what it can, with what it has sent and with what is on its way.
TEST_F(Vault, GivesWhoHasLessThanItsPartTheRoomOfWhoHasMore) {
  table(1, {});
  const VaultClient theirs = world_.save(kThird, 2, 1, 10, std::string(80, 'x'));
  world_.deliver_all();
  EXPECT_NE(world_.answer(2, theirs), "");
  world_.feed(kOther, offered(kThird, 2, 1, 11, 20));
  EXPECT_EQ(world_.core(1).used(), 100U);
  world_.flights.clear();

  const VaultClient client = world_.save(kOwn, 1, 1, 10, std::string(50, 'a'));
  for (int second = 0; second < 6; ++second) {
    world_.deliver_all();
    if (second < 3) {
      EXPECT_EQ(world_.answer(0, client), "") << "the next table may make room: " << second;
    }
    world_.tick(Duration::seconds(1));
  }
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"ok":true,"hosts":[0,1]})");
  EXPECT_EQ(world_.core(1).used(), 50U);
  world_.feed(kOther, offered(kThird, 2, 1, 12, 60));
  EXPECT_EQ(world_.core(1).used(), 50U) << "more than a part is what is left";

  const VaultClient own = world_.save(kOther, 4, 1, 10, std::string(30, 'b'));
  EXPECT_EQ(world_.core(1).used(), 50U) << "of a gang that is done nothing is kept: " << world_.answer(1, own);
}

TEST_F(Vault, KeepsSoManyOfOneRankAndNoMoreHoweverSmall) {
  table(1, {});
  for (std::uint64_t step = 1; step < 500; ++step) world_.feed(kOther, offered(kThird, 2, 1, step, 0));
  EXPECT_EQ(held(1), VaultCore::kOfOneRank);
  for (std::uint64_t more = 1; more < 500; ++more) {
    world_.feed(kOther, offered(kThird, 2, 1, 1, 0, text("digest ", more)));
  }
  EXPECT_EQ(held(1), VaultCore::kOfOneRank);
}

TEST_F(Vault, SaysThatThereIsNoSuchMesh) {
  table(1, {});
  const VaultClient client(99);
  world_.feed(kOwn, vault_event::Asked{client, {.kind = VaultAsks::kLoad, .mesh = "x"}, 0});
  EXPECT_EQ(world_.answer(0, client), R"({"v":1,"error":"there is no mesh x"})");
}

}  // namespace
}  // namespace monarch
