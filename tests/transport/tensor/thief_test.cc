// Who tells a registrar what a gang publishes: its ranks, each for itself, and nobody who has what readers have, or
// what another rank has.

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "tests/transport/base/patience.h"
#include "tests/transport/tensor/tensor_gang.h"
#include "transport/base/machine.h"
#include "transport/base/sha256.h"
#include "transport/tensor/link_socket.h"
#include "transport/tensor/registrar.h"

namespace monarch::tensor {
namespace {

constexpr const char* kRefused = "it has no card of this rank";

// Somebody who says at a registrar that he is that rank and publishes, and proves it by a secret of his. Whether it is
// the registrar that answers is nothing to him.
class Claimant {
 public:
  Claimant(const Card& card, const std::string& secret, LinkRank claims) {
    link_ = StreamLink::make(connect_on_machine(card.path).value()).value();
    HelloAsk ask;
    ask.reader = std::move(claims);
    ask.owner = {"trainer", 0, 1};
    ask.purpose = LinkPurpose::kPublishes;
    ask.publication = "weights";
    ask.nonce.data = random_bytes(kNonceBytes);
    say(FrameKind::kHello, 0, codec::encode(ask));
    const auto heard = hear();
    HelloAnswer answer;
    codec::DecodeError error;
    if (heard && heard->frame.kind == FrameKind::kUnfit) why_ = heard->behind;
    if (!why_.empty() || !heard || !codec::decode(heard->behind, answer, error)) return;
    const HelloAnswer as_it_should = answer_hello(ask, ask.owner, secret, answer.nonce.data).value();
    say(FrameKind::kHello, 0, codec::encode(prove_hello(ask, as_it_should, secret).value()));
  }

  void publishes(const Card& card) { say(FrameKind::kIndex, 0, codec::encode(PublishedWord{{}, {card_text(card)}})); }
  void say(FrameKind kind, std::uint64_t number = 0, std::string behind = {}) {
    (void)link_->send({.kind = kind, .version = {1, number}}, std::move(behind));
    (void)link_->flush();
  }
  // The next of these words. Nothing: the link has ended.
  std::optional<StreamLink::Received> hear() {
    for (;;) {
      auto received = link_->receive(kHelloBytes);
      if (!received.ok()) return std::nullopt;
      if (*received) return std::move(*received);
      pollfd waiting{link_->descriptor(), POLLIN, 0};
      const auto limit = static_cast<int>(test_patience(Duration::seconds(10)).count_milliseconds());
      if (::poll(&waiting, 1, limit) != 1) return std::nullopt;
    }
  }
  // Why the registrar ends the link.
  std::string why() {
    while (why_.empty()) {
      const auto heard = hear();
      if (!heard) return "it does not say";
      if (heard->frame.kind == FrameKind::kUnfit) why_ = heard->behind;
    }
    return why_;
  }

 private:
  std::unique_ptr<StreamLink> link_;
  std::string why_;
};

std::string text_of(const Card& card) {
  return {reinterpret_cast<const char*>(card.secret.data()), card.secret.size()};
}

// Three ranks, of which the second has published nothing: nothing is whole until it has.
class Claimants : public testing::Test {
 protected:
  void SetUp() override {
    for (const std::uint32_t rank : {0U, 2U}) ASSERT_TRUE(gang_.publish(rank, matrix_, 1).ok());
  }

  void expect_refused(const std::string& secret, const LinkRank& claims, const std::string& why) {
    Claimant claimant(gang_.card(), secret, claims);
    claimant.publishes(gang_.card());
    claimant.say(FrameKind::kHolds, 1);
    claimant.say(FrameKind::kEnds);
    EXPECT_EQ(claimant.why(), why);
    // Not even a part of it counts.
    ColumnReader early(matrix_, 0, 8, {});
    early.finds(gang_);
    EXPECT_EQ(failure(early.run({}, Duration::milliseconds(100))).how, PullEnd::kTimeout);
    ASSERT_TRUE(gang_.publish(1, matrix_, 1).ok());
    ColumnReader reader(matrix_, 0, 8, {});
    reader.finds(gang_);
    (void)pulled(reader.run());
    EXPECT_TRUE(reader.is_whole(1));
  }

  const Matrix matrix_{9, 8};
  TensorGang gang_{3, 1};
  const LinkRank second_{"trainer", 1, 1};
};

TEST_F(Claimants, WithTheCardOfReadersAreRefused) { expect_refused(text_of(gang_.card()), second_, kRefused); }

TEST_F(Claimants, WithTheSecretOfAnotherRankAreRefused) {
  expect_refused(text_of(gang_.registrar_of(2)), second_, kRefused);
}

TEST_F(Claimants, OfAnEarlierStartAreRefused) {
  const LinkRank earlier{"trainer", 1, 0};
  expect_refused(personal_secret(gang_.owner(0).key(), earlier.mesh, earlier.rank, earlier.generation), earlier,
                 "it is of another gang");
}

// A link that was cut says nothing of its end.
TEST_F(Claimants, ThatProveARankLaterHaveItsPlace) {
  const std::string secret = text_of(gang_.registrar_of(1));
  Claimant first(gang_.card(), secret, second_);
  first.publishes(gang_.card());
  Claimant second(gang_.card(), secret, second_);
  second.publishes(gang_.card());
  EXPECT_EQ(first.why(), "another link of its rank has its place");
  second.say(FrameKind::kHolds, 1);
  const auto heard = second.hear();
  ASSERT_TRUE(heard.has_value());
  EXPECT_EQ(heard->frame.kind, FrameKind::kAllHold);
}

}  // namespace
}  // namespace monarch::tensor
