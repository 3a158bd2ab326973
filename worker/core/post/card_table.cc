#include "worker/core/post/card_table.h"

#include "transport/base/sha256.h"
#include "transport/base/text.h"

namespace monarch {

std::string CardTable::put(DoorId door, const CallerName& who, const std::string& name, HeldBody text,
                           std::string key) {
  if (who.mesh.empty()) return "only a rank of the job has cards";
  if (name.empty() || name.size() > kCardNameBytes) {
    return monarch::text("a card's name has 1 to ", kCardNameBytes, " bytes, and not ", name.size());
  }
  if (!key.empty() && key.size() != kPersonalSecretBytes) {
    return monarch::text("a card's key has ", kPersonalSecretBytes, " bytes, and not ", key.size());
  }
  Owner& owner = owners_[who.rank];
  const auto known = owner.cards.find(name);
  if (known != owner.cards.end()) {
    const Card& card = known->second;
    if (card.generation > who.generation) return "a later start of its rank has put that card";
    if (card.generation == who.generation && card.door != door)
      return "another connection of its rank has put that card";
    owner.cards.erase(known);
  }
  if (text.bytes() == 0) return {};
  std::size_t count = 0;
  std::uint64_t bytes = text.bytes();
  for (const auto& [other, card] : owner.cards) {
    if (card.generation != who.generation) continue;
    ++count;
    bytes += card.text.bytes();
  }
  if (count >= limits_.cards) return monarch::text("a rank has ", limits_.cards, " cards at most");
  if (bytes > limits_.card_bytes)
    return monarch::text("the cards of a rank have ", limits_.card_bytes, " bytes at most");
  const Card& card =
      owner.cards.emplace(name, Card{door, who.generation, std::move(text), std::move(key)}).first->second;
  for (const DeliveryTable::Number number : std::set<DeliveryTable::Number>(owner.asks)) {
    const Ask& ask = asks_.at(number);
    if (ask.name == name && ask.since < card.generation) answer_with(number, card);
  }
  return {};
}

void CardTable::left(DoorId door) {
  erase_cards([door](const RankId&, const Card& card) { return card.door == door; });
}

void CardTable::erase_cards(const std::function<bool(const RankId&, const Card&)>& which) {
  for (auto owner = owners_.begin(); owner != owners_.end();) {
    std::erase_if(owner->second.cards, [&](const auto& one) { return which(owner->first, one.second); });
    owner = owner->second.cards.empty() && owner->second.asks.empty() ? owners_.erase(owner) : std::next(owner);
  }
}

DeliveryTable::Number CardTable::ask(const DeliveryOrigin& origin, const CallerName& who, const RankId& rank,
                                     const std::string& name, std::uint64_t since) {
  Ask ask{origin, who, rank, name, since};
  const std::uint64_t bytes = ask.bytes();
  const bool has_room = room_.has_room(origin.host(), bytes);
  const std::size_t waiting = room_.of(origin.host()).calls;
  Owner& owner = owners_[rank];
  const DeliveryTable::Number number = next_++;
  asks_.emplace(number, std::move(ask));
  owner.asks.insert(number);
  room_.add(origin.host(), bytes);
  const auto known = owner.cards.find(name);
  if (known != owner.cards.end() && known->second.generation > since) {
    answer_with(number, known->second);
  } else if (!has_room) {
    CallOutcome busy;
    busy.kind = OutcomeKind::kBusy;
    busy.text = monarch::text(waiting, " calls of this host wait for cards there");
    answer(number, std::move(busy), {});
  }
  return asks_.contains(number) ? number : 0;
}

void CardTable::answer_with(DeliveryTable::Number number, const Card& card) {
  CallOutcome outcome;
  outcome.generation = card.generation;
  if (!card.key.empty()) {
    const CallerName& who = asks_.at(number).who;
    outcome.personal.data = personal_secret(card.key, who.mesh, who.rank.rank.value(), who.generation);
  }
  answer(number, std::move(outcome), card.text);
}

void CardTable::answer(DeliveryTable::Number number, CallOutcome outcome, HeldBody text) {
  const auto ask = asks_.find(number);
  if (ask == asks_.end()) return;
  done_.push_back({ask->second.origin, ask->second.rank, std::move(outcome), std::move(text)});
  erase_ask(ask);
}

void CardTable::erase_ask(std::map<DeliveryTable::Number, Ask>::iterator ask) {
  const auto owner = owners_.find(ask->second.rank);
  owner->second.asks.erase(ask->first);
  if (owner->second.asks.empty() && owner->second.cards.empty()) owners_.erase(owner);
  room_.remove(ask->second.origin.host(), ask->second.bytes());
  asks_.erase(ask);
}

void CardTable::take_back(DeliveryTable::Number number) {
  const auto ask = asks_.find(number);
  if (ask == asks_.end()) return;
  if (ask->second.origin.call) return erase_ask(ask);
  CallOutcome cancelled;
  cancelled.kind = OutcomeKind::kCancelled;
  answer(number, std::move(cancelled), {});
}

void CardTable::root_passed(HostId root, const PostStart& now) {
  std::vector<DeliveryTable::Number> passed;
  for (const auto& [number, ask] : asks_) {
    if (!ask.origin.call && ask.origin.root == root && ask.origin.root_start < now) passed.push_back(number);
  }
  for (const DeliveryTable::Number number : passed) take_back(number);
}

void CardTable::drop_passed(const std::function<bool(const CallerName&)>& passed) {
  erase_cards([&](const RankId& rank, const Card& card) {
    return passed(CallerName{.mesh = "of the job", .rank = rank, .generation = card.generation});
  });
}

}  // namespace monarch
