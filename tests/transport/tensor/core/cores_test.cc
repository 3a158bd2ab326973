// Owner, registrar and pull, a step at a time: what they say and whom they wait for. What they hold through faults is
// tests/sim/tensors'.

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "transport/tensor/core/owner_core.h"
#include "transport/tensor/core/pull_core.h"
#include "transport/tensor/core/registrar_core.h"
#include "transport/tensor/core/slot_word.h"

namespace monarch::tensor {
namespace {

const Instant kBegin = Instant::since_boot(Duration::seconds(100));

template <class Kind, class Action>
std::vector<Kind> of_kind(const std::vector<Action>& actions) {
  std::vector<Kind> all;
  for (const Action& action : actions) {
    if (const auto* one = std::get_if<Kind>(&action)) all.push_back(*one);
  }
  return all;
}

class OwnerTest : public ::testing::Test {
 protected:
  // The slot that is written; nothing: not yet.
  std::optional<std::size_t> written(const OwnerActions& actions) {
    const auto all = of_kind<owner_action::Write>(actions);
    return all.empty() ? std::nullopt : std::optional(all.front().slot);
  }
  std::string refused(const OwnerActions& actions) {
    const auto all = of_kind<owner_action::Refuse>(actions);
    return all.empty() ? std::string() : all.front().text;
  }
  OwnerActions feed(const OwnerEvent& event) { return core_.step(event, now_); }
  void publish(std::uint64_t number) {
    ASSERT_TRUE(written(feed(owner_event::Begin{number})));
    ASSERT_EQ(of_kind<owner_action::Offer>(feed(owner_event::Commit{})).size(), 1U);
    feed(owner_event::AllHold{number});
  }

  OwnerCore core_{OwnerOptions{}};
  Instant now_ = kBegin;
};

TEST_F(OwnerTest, WritesSlotsByTurns) {
  EXPECT_EQ(written(feed(owner_event::Begin{3})), 0U);
  EXPECT_EQ(refused(feed(owner_event::Begin{4})), "version 3 is being written");
  feed(owner_event::Commit{});
  EXPECT_EQ(core_.slot_of(3), 0U);
  EXPECT_EQ(refused(feed(owner_event::Begin{3})), "version 3 after version 3: they rise within a generation");
  EXPECT_EQ(written(feed(owner_event::Begin{9})), 1U);
  EXPECT_EQ(core_.slot_of(3), 0U) << "it is held meanwhile";
  feed(owner_event::Abandon{});
  EXPECT_EQ(core_.slot_of(9), std::nullopt);
  EXPECT_EQ(written(feed(owner_event::Begin{4})), 1U) << "the one that holds nothing";
}

TEST_F(OwnerTest, WaitsForReadersAsLongAsItsPatienceLasts) {
  publish(1);
  feed(owner_event::Reading{7, 1});
  publish(2);
  EXPECT_FALSE(written(feed(owner_event::Begin{3})));
  EXPECT_EQ(core_.next_due(), now_ + Duration::seconds(2));
  EXPECT_EQ(refused(feed(owner_event::Begin{3})), "version 3 waits to be written");
  EXPECT_EQ(written(feed(owner_event::Read{7, 1})), 0U);
  feed(owner_event::Commit{});
  feed(owner_event::AllHold{3});
  feed(owner_event::Reading{7, 2});
  feed(owner_event::Reading{8, 1});
  EXPECT_FALSE(written(feed(owner_event::Begin{4})));
  now_ = now_ + Duration::seconds(2);
  EXPECT_EQ(written(feed(owner_event::Tick{})), 1U);
  feed(owner_event::Commit{});
  feed(owner_event::AllHold{4});
  feed(owner_event::Reading{9, 3});
  EXPECT_FALSE(written(feed(owner_event::Begin{5})));
  EXPECT_EQ(written(feed(owner_event::LinkLeft{9})), 0U) << "who has gone reads no more";
}

TEST_F(OwnerTest, WaitsForTheOthersOfItsGangAsLongAsItsPatienceLasts) {
  for (std::uint64_t number = 1; number <= 2; ++number) {
    EXPECT_TRUE(written(feed(owner_event::Begin{number})));
    feed(owner_event::Commit{});
  }
  EXPECT_FALSE(written(feed(owner_event::Begin{3}))) << "others may hold 1, and not yet 2";
  feed(owner_event::AllHold{1});
  EXPECT_TRUE(feed(owner_event::Tick{}).empty());
  EXPECT_EQ(written(feed(owner_event::AllHold{2})), 0U);
  feed(owner_event::Commit{});
  EXPECT_FALSE(written(feed(owner_event::Begin{4})));
  now_ = now_ + Duration::seconds(2);
  EXPECT_EQ(written(feed(owner_event::Tick{})), 1U);
}

TEST_F(OwnerTest, LeavesASlotToWhoHasMappedIt) {
  for (std::uint64_t number = 1; number <= 2; ++number) {
    publish(number);
    feed(owner_event::Given{number, number});
    feed(owner_event::Mapped{number, number});
  }
  for (std::uint64_t number = 3; number <= 4; ++number) {
    const auto actions = feed(owner_event::Begin{number});
    ASSERT_EQ(of_kind<owner_action::Renew>(actions).size(), 1U);
    EXPECT_EQ(of_kind<owner_action::Renew>(actions)[0].slot, written(actions));
    feed(owner_event::Commit{});
    feed(owner_event::AllHold{number});
    feed(owner_event::Given{number, number});
    feed(owner_event::Mapped{number, number});
  }
  EXPECT_FALSE(written(feed(owner_event::Begin{5})));
  now_ = now_ + Duration::seconds(2);
  const auto actions = feed(owner_event::Tick{});
  EXPECT_TRUE(written(actions)) << "whatever readers do";
  const auto ended = of_kind<owner_action::EndLink>(actions);
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].link, 1U) << "who has the oldest";
  EXPECT_EQ(ended[0].why, "it keeps version 1 mapped, and readers may keep 2 old ones");
}

TEST_F(OwnerTest, LeavesNothingToWhoWasNotGivenIt) {
  for (std::uint64_t number = 1; number <= 8; ++number) {
    const auto actions = feed(owner_event::Begin{number});
    EXPECT_TRUE(of_kind<owner_action::Renew>(actions).empty());
    ASSERT_TRUE(written(actions));
    feed(owner_event::Commit{});
    feed(owner_event::AllHold{number});
    feed(owner_event::Mapped{7, number});
  }
}

class RegistrarTest : public ::testing::Test {
 protected:
  RegistrarActions feed(const RegistrarEvent& event) { return core_.step(event, now_); }
  static Index index_of(const Extents& shape) {
    SlotLayout slot;
    EXPECT_TRUE(slot.put({"w", *parse_dtype("float32"), shape}, whole(shape), 0).ok());
    return slot.index();
  }
  void both_publish() {
    for (std::uint32_t rank = 0; rank < 2; ++rank) {
      EXPECT_TRUE(feed(registrar_event::Publishes{rank, index_of({4})}).empty());
    }
  }
  void both_hold(std::uint64_t number) {
    for (std::uint32_t rank = 0; rank < 2; ++rank) feed(registrar_event::Holds{rank, number});
  }
  static RegistrarOptions options() {
    RegistrarOptions options;
    options.generation = 5;
    options.publishers = {0, 1};
    return options;
  }

  RegistrarCore core_{options()};
  Instant now_ = kBegin;
};

TEST_F(RegistrarTest, OffersWhatAllHold) {
  both_publish();
  EXPECT_TRUE(feed(registrar_event::Open{.reader = 1}).empty());
  feed(registrar_event::Holds{0, 1});
  feed(registrar_event::Holds{0, 2});
  const auto opened = of_kind<registrar_action::Opened>(feed(registrar_event::Holds{1, 1}));
  ASSERT_EQ(opened.size(), 1U);
  EXPECT_EQ(opened[0].number, 1U) << "rank 1 has not the other";
  EXPECT_TRUE(opened[0].with_index);
  feed(registrar_event::Holds{0, 3});
  EXPECT_EQ(core_.offered(), std::nullopt) << "rank 0 has written over it";
  feed(registrar_event::Open{.reader = 1, .newer_than = VersionId{5, 1}, .knows_index = true});
  const auto next = of_kind<registrar_action::Opened>(feed(registrar_event::Holds{1, 3}));
  ASSERT_EQ(next.size(), 1U);
  EXPECT_FALSE(next[0].with_index);
  EXPECT_EQ(of_kind<registrar_action::Opened>(feed(registrar_event::Open{.reader = 2, .newer_than = VersionId{4, 99}}))
                .size(),
            1U)
      << "of a later generation";
}

TEST_F(RegistrarTest, SaysWhoDoesNotFit) {
  feed(registrar_event::Publishes{0, index_of({4})});
  const auto unfit = of_kind<registrar_action::Unfit>(feed(registrar_event::Publishes{1, index_of({5})}));
  ASSERT_EQ(unfit.size(), 1U);
  EXPECT_EQ(unfit[0].text, "tensor w is float32 4 at rank 0 and float32 5 at rank 1");
  EXPECT_EQ(of_kind<registrar_action::Unfit>(feed(registrar_event::Publishes{2, {}}))[0].text,
            "it is none of the publishers");
  Index wild = index_of({4});
  wild.parts[0].tensor = 9;
  EXPECT_EQ(of_kind<registrar_action::Unfit>(feed(registrar_event::Publishes{1, wild}))[0].text,
            "a part of tensor 9, which is none");
  both_hold(1);
  EXPECT_EQ(core_.offered(), std::nullopt) << "rank 1 publishes nothing that fits";
}

TEST_F(RegistrarTest, SaysForWhomAReaderWaits) {
  const auto told = [this](const RegistrarEvent& event) {
    std::vector<std::string> words;
    for (const auto& one : of_kind<registrar_action::Waits>(feed(event))) words.push_back(one.text);
    return words;
  };
  const auto later = [&] {
    now_ = core_.next_due();
    return told(registrar_event::Tick{});
  };
  using Words = std::vector<std::string>;
  EXPECT_EQ(told(registrar_event::Open{.reader = 1}), Words{"ranks 0, 1 of its gang have not published it yet"});
  EXPECT_EQ(later(), Words{}) << "it is known";
  EXPECT_EQ(told(registrar_event::Publishes{0, index_of({4})}), Words{}) << "not with each step";
  EXPECT_EQ(later(), Words{"rank 1 of its gang has not published it yet"});
  feed(registrar_event::Holds{0, 7});
  feed(registrar_event::Publishes{1, index_of({4})});
  EXPECT_EQ(later(), Words{"version 7 is not there yet at rank 1"});
  EXPECT_EQ(of_kind<registrar_action::Opened>(feed(registrar_event::Holds{1, 7})).size(), 1U);
  EXPECT_EQ(core_.next_due(), Instant::never()) << "nobody waits";
  EXPECT_EQ(told(registrar_event::Open{.reader = 1, .newer_than = VersionId{5, 7}}), Words{}) << "nobody is late";
  feed(registrar_event::Holds{1, 8});
  EXPECT_EQ(later(), Words{"version 8 is not there yet at rank 0"});
  feed(registrar_event::ReaderLeft{1});
  EXPECT_EQ(core_.next_due(), Instant::never());
}

TEST_F(RegistrarTest, NamesTheFirstOfManyThatAreLate) {
  RegistrarOptions many;
  for (std::uint32_t rank = 0; rank < 1'000; ++rank) many.publishers.insert(rank);
  RegistrarCore core(many);
  EXPECT_EQ(of_kind<registrar_action::Waits>(core.step(registrar_event::Open{.reader = 1}, now_)).at(0).text,
            "ranks 0, 1, 2, 3, 4, 5, 6, 7 and 992 more of its gang have not published it yet");
}

TEST_F(RegistrarTest, LingersUntilItsReadersHaveTheLastOne) {
  both_publish();
  both_hold(1);
  feed(registrar_event::Open{.reader = 1});
  feed(registrar_event::Open{.reader = 2});
  feed(registrar_event::Ends{0});
  EXPECT_TRUE(feed(registrar_event::Ends{1}).empty());
  EXPECT_EQ(core_.next_due(), now_ + Duration::seconds(30));
  feed(registrar_event::Read{1, 1});
  EXPECT_EQ(of_kind<registrar_action::Over>(feed(registrar_event::Open{1, VersionId{5, 1}})).size(), 1U);
  EXPECT_EQ(of_kind<registrar_action::Release>(feed(registrar_event::ReaderLeft{2})).size(), 1U);
  EXPECT_EQ(core_.next_due(), Instant::never());
}

TEST_F(RegistrarTest, LingersForAReaderThatComesLate) {
  both_publish();
  both_hold(1);
  feed(registrar_event::Open{.reader = 1});
  feed(registrar_event::ReaderLeft{1});
  feed(registrar_event::Ends{0});
  EXPECT_TRUE(feed(registrar_event::Ends{1}).empty()) << "who only asked what there is has not had it";
  EXPECT_EQ(core_.next_due(), now_ + Duration::seconds(30));
  EXPECT_EQ(of_kind<registrar_action::Opened>(feed(registrar_event::Open{.reader = 2})).size(), 1U);
  EXPECT_EQ(of_kind<registrar_action::Release>(feed(registrar_event::Read{2, 1})).size(), 1U);
}

TEST_F(RegistrarTest, WaitsForNobodyWhereItHasNothingWhole) {
  both_publish();
  feed(registrar_event::Ends{0});
  EXPECT_EQ(of_kind<registrar_action::Release>(feed(registrar_event::Ends{1})).size(), 1U);
}

TEST_F(RegistrarTest, LingersNoLongerThanItMay) {
  both_publish();
  both_hold(1);
  feed(registrar_event::Open{.reader = 1});
  feed(registrar_event::Ends{0});
  feed(registrar_event::Ends{1});
  now_ = now_ + Duration::seconds(30);
  EXPECT_EQ(of_kind<registrar_action::Release>(feed(registrar_event::Tick{})).size(), 1U);
}

TEST_F(RegistrarTest, OffersNothingOfWhoHasLeftUntilHeIsBack) {
  both_publish();
  both_hold(1);
  feed(registrar_event::PublisherLeft{1});
  EXPECT_EQ(of_kind<registrar_action::Waits>(feed(registrar_event::Open{.reader = 1})).at(0).text,
            "version 1 is not there yet at rank 1");
  feed(registrar_event::Publishes{1, index_of({4})});
  EXPECT_EQ(of_kind<registrar_action::Opened>(feed(registrar_event::Holds{1, 1})).size(), 1U);
}

class PullTest : public ::testing::Test {
 protected:
  PullOptions options() {
    PullOptions options{.publication = "weights of trainer", .newer_than = VersionId{1, 7}};
    options.deadline = now_ + Duration::seconds(60);
    return options;
  }
  PullActions feed(const PullEvent& event) { return core_->step(event, now_); }
  // As far as rows are fetched, of version 8.
  void fetch(PullOptions wanted) {
    core_.emplace(std::move(wanted));
    ASSERT_EQ(of_kind<pull_action::AskCard>(core_->begin(now_)).size(), 1U);
    feed(pull_event::CardCame{1});
    const auto open = of_kind<pull_action::Open>(feed(pull_event::Linked{}));
    ASSERT_EQ(open.size(), 1U);
    EXPECT_EQ(open[0].newer_than, (VersionId{1, 7}));
    EXPECT_EQ(of_kind<pull_action::Fetch>(feed(pull_event::Opened{8, {0, 3}})).size(), 2U);
  }
  pull_action::End end() {
    const auto ends = of_kind<pull_action::End>(feed(pull_event::Stopped{}));
    EXPECT_EQ(ends.size(), 1U);
    return ends.empty() ? pull_action::End{} : ends.front();
  }

  std::optional<PullCore> core_;
  Instant now_ = kBegin;
};

TEST_F(PullTest, EndsWithOneVersionOnceEachWordSaysSo) {
  fetch(options());
  EXPECT_TRUE(of_kind<pull_action::LookAtWord>(feed(pull_event::Word{0, word_of(8)})).empty()) << "before its rows";
  EXPECT_EQ(of_kind<pull_action::LookAtWord>(feed(pull_event::Fetched{0})).size(), 1U);
  EXPECT_TRUE(feed(pull_event::Word{0, word_of(8)}).empty());
  feed(pull_event::Fetched{3});
  const auto last = feed(pull_event::Word{3, word_of(8)});
  ASSERT_EQ(of_kind<pull_action::SayRead>(last).size(), 1U);
  EXPECT_TRUE(of_kind<pull_action::SayRead>(last)[0].whole);
  const auto ended = end();
  EXPECT_EQ(ended.how, PullEnd::kOk);
  EXPECT_EQ(ended.version, (VersionId{1, 8}));
  EXPECT_TRUE(core_->has_ended());
  EXPECT_TRUE(feed(pull_event::Cancel{}).empty());
}

TEST_F(PullTest, BeginsAgainWhereAVersionWasWrittenOver) {
  fetch(options());
  feed(pull_event::Fetched{0});
  EXPECT_EQ(of_kind<pull_action::Stop>(feed(pull_event::Word{0, 0})).size(), 1U);
  const auto open = of_kind<pull_action::Open>(feed(pull_event::Stopped{}));
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].newer_than, (VersionId{1, 8}));
  now_ = now_ + Duration::seconds(60);
  feed(pull_event::Tick{});
  EXPECT_EQ(end().text,
            "weights of trainer: nothing whole within 1m; there is no newer version; versions that were written over "
            "while they "
            "were read: 1");
}

TEST_F(PullTest, SaysWhatItWaitedFor) {
  core_.emplace(options());
  (void)core_->begin(now_);
  now_ = now_ + Duration::seconds(60);
  feed(pull_event::Tick{});
  const auto nobody = end();
  EXPECT_EQ(nobody.how, PullEnd::kTimeout);
  EXPECT_EQ(nobody.text, "weights of trainer: nothing whole within 1m; nobody publishes it");
  now_ = kBegin;
  core_.emplace(options());
  (void)core_->begin(now_);
  feed(pull_event::CardCame{1});
  feed(pull_event::Linked{});
  feed(pull_event::Waits{"rank 2 of its gang has not published it yet"});
  now_ = now_ + Duration::seconds(60);
  feed(pull_event::Tick{});
  EXPECT_EQ(end().text, "weights of trainer: nothing whole within 1m; rank 2 of its gang has not published it yet");
  now_ = kBegin;
  fetch(options());
  feed(pull_event::Fetched{0});
  feed(pull_event::Word{0, word_of(8)});
  now_ = now_ + Duration::seconds(60);
  feed(pull_event::Tick{});
  EXPECT_EQ(end().text, "weights of trainer: nothing whole within 1m; version 8 is not here from rank 3");
}

TEST_F(PullTest, GoesOnWithTheNextGenerationWhereItIsToldTo) {
  PullOptions patient = options();
  patient.next_generation = true;
  fetch(patient);
  feed(pull_event::OwnerGone{"rank 3 has ended"});
  const auto card = of_kind<pull_action::AskCard>(feed(pull_event::Stopped{}));
  ASSERT_EQ(card.size(), 1U);
  EXPECT_EQ(card[0].since, 1U);
  EXPECT_TRUE(feed(pull_event::CardCame{1}).empty());
  EXPECT_EQ(of_kind<pull_action::Link>(feed(pull_event::CardCame{2})).size(), 1U);
  fetch(options());
  feed(pull_event::GenerationOver{1, "its gang has failed"});
  const auto gone = end();
  EXPECT_EQ(gone.how, PullEnd::kPeerGone);
  EXPECT_EQ(gone.text, "its gang has failed");
}

// The end of a connection says no more than that.
TEST_F(PullTest, AsksHowWhoHasEndedDidSo) {
  const auto ask = [&] {
    fetch(options());
    feed(pull_event::OwnerGone{"rank 3: connection refused"});
    const auto card = of_kind<pull_action::AskCard>(feed(pull_event::Stopped{}));
    ASSERT_EQ(card.size(), 1U);
    EXPECT_EQ(card[0].since, 1U);
  };
  ask();
  feed(pull_event::CardLost{"it has ended", true});
  const auto ended = end();
  EXPECT_EQ(ended.how, PullEnd::kEnded);
  EXPECT_EQ(ended.text, "weights of trainer is published no more: it has ended");
  ask();
  feed(pull_event::CardLost{"it is given up", false});
  EXPECT_EQ(end().how, PullEnd::kPeerGone);
  ask();
  feed(pull_event::GenerationOver{1, "its gang has failed"});
  EXPECT_EQ(end().text, "its gang has failed");
  ask();
  feed(pull_event::CardCame{2});
  const auto again = end();
  EXPECT_EQ(again.how, PullEnd::kPeerGone);
  EXPECT_EQ(again.text, "rank 3: connection refused");
  ask();
  feed(pull_event::Cancel{});
  EXPECT_EQ(end().how, PullEnd::kCancelled);
  ask();
  EXPECT_EQ(core_->next_due(), now_ + Duration::seconds(1));
  now_ = core_->next_due();
  feed(pull_event::Tick{});
  EXPECT_EQ(end().how, PullEnd::kPeerGone) << "supervision says nothing";
}

// Who has ended is known to have, also where there is no time left to ask how.
TEST_F(PullTest, TellsThatAnOwnerIsGoneWhereItsTimeIsUpBeforeItsLanesHaveStopped) {
  fetch(options());
  feed(pull_event::OwnerGone{"rank 3: connection refused"});
  now_ = core_->next_due();
  feed(pull_event::Tick{});
  EXPECT_EQ(end().how, PullEnd::kPeerGone);
}

TEST_F(PullTest, LinksAgainWhereALinkWasLetGo) {
  fetch(options());
  feed(pull_event::LinkEnded{"rank 3 has let it go"});
  EXPECT_EQ(of_kind<pull_action::Link>(feed(pull_event::Stopped{})).size(), 1U);
  EXPECT_EQ(of_kind<pull_action::Open>(feed(pull_event::Linked{})).size(), 1U);
  fetch(options());
  feed(pull_event::Fetched{0});
  feed(pull_event::Word{0, 0});
  feed(pull_event::LinkEnded{"rank 0 has let it go"});
  EXPECT_EQ(of_kind<pull_action::Link>(feed(pull_event::Stopped{})).size(), 1U) << "also while its lanes stop";
  for (int i = 0; i < 15; ++i) {
    feed(pull_event::LinkEnded{"rank 0 has let it go"});
    feed(pull_event::Stopped{});
  }
  feed(pull_event::LinkEnded{"rank 0 has let it go"});
  EXPECT_EQ(end().how, PullEnd::kPeerGone) << "not for ever";
}

TEST_F(PullTest, ComesAgainWhereThereWasNoPlaceForALink) {
  fetch(options());
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(
        of_kind<pull_action::Stop>(feed(pull_event::Full{"rank 3 has no place", Duration::milliseconds(300)})).size(),
        1U);
    EXPECT_TRUE(feed(pull_event::Stopped{}).empty());
    EXPECT_EQ(core_->waits_for(), "rank 3 has no place");
    EXPECT_EQ(core_->next_due(), now_ + Duration::milliseconds(300));
    now_ = now_ + Duration::milliseconds(299);
    EXPECT_TRUE(feed(pull_event::Tick{}).empty());
    now_ = core_->next_due();
    EXPECT_EQ(of_kind<pull_action::Link>(feed(pull_event::Tick{})).size(), 1U);
  }
  EXPECT_EQ(of_kind<pull_action::Open>(feed(pull_event::Linked{})).size(), 1U);
  feed(pull_event::Full{"rank 0 has no place", Duration::seconds(1)});
  feed(pull_event::Stopped{});
  feed(pull_event::GenerationOver{1, "its gang has failed"});
  EXPECT_EQ(end().text, "its gang has failed") << "while it waits for a place, too";
  fetch(options());
  feed(pull_event::Full{"rank 3 has no place", Duration::seconds(3'600)});
  feed(pull_event::Stopped{});
  now_ = core_->next_due();
  feed(pull_event::Tick{});
  const auto late = end();
  EXPECT_EQ(late.how, PullEnd::kTimeout);
  EXPECT_EQ(late.text, "weights of trainer: nothing whole within 1m; rank 3 has no place");
}

TEST_F(PullTest, EndsWithEachErrorOnceItsLanesHaveStopped) {
  fetch(options());
  feed(pull_event::Unreached{"no way to rank 3"});
  feed(pull_event::Cancel{});
  EXPECT_EQ(end().how, PullEnd::kUnreachable) << "the first cause";
  core_.emplace(options());
  (void)core_->begin(now_);
  feed(pull_event::CardLost{"it is given up"});
  EXPECT_EQ(end().text, "it is given up");
  core_.emplace(options());
  (void)core_->begin(now_);
  feed(pull_event::CardLost{"it has ended", true});
  EXPECT_EQ(end().how, PullEnd::kEnded);
  core_.emplace(options());
  (void)core_->begin(now_);
  feed(pull_event::CardCame{1});
  feed(pull_event::Linked{});
  feed(pull_event::Over{});
  const auto over = end();
  EXPECT_EQ(over.how, PullEnd::kEnded);
  EXPECT_EQ(over.text, "weights of trainer is published no more");
}

}  // namespace
}  // namespace monarch::tensor
