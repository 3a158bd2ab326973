#include "worker/core/post/delivery_table.h"

#include <algorithm>

#include "transport/base/assert.h"
#include "transport/base/nearest.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

CallOutcome outcome_of(OutcomeKind kind, std::string text) {
  CallOutcome outcome;
  outcome.kind = kind;
  outcome.text = std::move(text);
  return outcome;
}

bool may_say(OutcomeKind kind, bool taken_back) {
  switch (kind) {
    case OutcomeKind::kValue:
    case OutcomeKind::kRemoteError:
    case OutcomeKind::kRankLost:
    case OutcomeKind::kRefused: return true;
    case OutcomeKind::kCancelled: return taken_back;
    case OutcomeKind::kDeadline:
    case OutcomeKind::kBusy:
    case OutcomeKind::kGone: return false;  // these are a post's to say
  }
  return false;
}

bool fits(const std::string& asked, const std::string& has) { return asked == has || asked == "*" || has == "*"; }

}  // namespace

std::string refusal(const std::vector<RankActor>& actors, const CallTarget& target) {
  const auto actor =
      std::find_if(actors.begin(), actors.end(), [&](const auto& one) { return one.name == target.actor; });
  std::vector<std::string> known;
  if (actor == actors.end()) {
    // One whose actors come and go answers for itself.
    if (std::any_of(actors.begin(), actors.end(), [](const auto& one) { return one.name == "*"; })) return {};
    for (const RankActor& one : actors) known.push_back(one.name);
    return text("the rank has no actor ", target.actor, nearest_or_all(target.actor, known));
  }
  const auto endpoint = std::find_if(actor->endpoints.begin(), actor->endpoints.end(),
                                     [&](const auto& one) { return one.name == target.endpoint; });
  if (endpoint == actor->endpoints.end()) {
    for (const ActorEndpoint& one : actor->endpoints) known.push_back(one.name);
    return text("actor ", actor->name, " (", actor->class_name, ") has no endpoint ", target.endpoint,
                nearest_or_all(target.endpoint, known));
  }
  if (fits(target.signature, endpoint->signature)) return {};
  return text(actor->name, '.', endpoint->name, " is ", endpoint->signature, " and was called as ", target.signature);
}

// As the keeper tells it, if it has.
std::string DeliveryTable::cause_of(const Served& served, const std::string& otherwise) {
  return served.ended && served.ended->generation == served.generation ? served.ended->cause : otherwise;
}

std::string DeliveryTable::why_down(const Served& served, const RankStanding& standing) {
  if (!standing.down.empty()) return standing.down;
  if (!served.ended || served.ended->generation < standing.generation) return {};
  return text("it is being started again: ", served.ended->cause);
}

bool DeliveryTable::came(DoorId door, const RankId& rank, std::uint64_t generation, std::vector<RankActor> actors) {
  Served& served = served_of(rank);
  if (generation < served.generation || (served.ended && generation <= served.ended->generation)) return false;
  if (served.door) {
    out_.emplace_back(post_action::CloseDoor{*served.door, "a later connection of its rank has its place"});
    doors_.erase(*served.door);
  }
  finish_lost(rank, Which::kGiven, cause_of(served, "it has come anew"));
  served.door = door;
  served.generation = generation;
  served.actors = std::move(actors);
  served.starting = false;
  served.hello_due = Instant::never();
  served.cause_due = Instant::never();
  list(rank, served);
  doors_[door] = rank;
  for (const Number number : std::set<Number>(served.deliveries)) give(number, deliveries_.at(number), served);
  return true;
}

void DeliveryTable::left(DoorId door, Instant now) {
  const auto found = doors_.find(door);
  if (found == doors_.end()) return;
  const RankId rank = found->second;
  doors_.erase(found);
  Served& served = served_of(rank);
  served.door.reset();
  const std::string cause = cause_of(served, {});
  served.cause_due = cause.empty() ? now + kCausePatience : Instant::never();
  list(rank, served);
  if (!cause.empty()) finish_lost(rank, Which::kGiven, cause);
}

void DeliveryTable::left_for_good(DoorId door, const std::string& cause) {
  const auto found = doors_.find(door);
  if (found == doors_.end()) return;
  const RankId rank = found->second;
  doors_.erase(found);
  finish_lost(rank, Which::kGiven, cause);
  ranks_.erase(rank);
}

void DeliveryTable::ended(const RankId& rank, std::uint64_t generation, const std::string& cause, Instant now) {
  Served& served = served_of(rank);
  if (generation < served.generation || (served.ended && generation <= served.ended->generation)) return;
  served.ended = Ended{generation, cause};
  if (served.door && generation > served.generation) return;  // the door's end follows, and is an earlier one's
  served.starting = false;
  served.hello_due = Instant::never();
  // What it has said last may still be on its way.
  served.cause_due = served.door ? now + kCausePatience : Instant::never();
  list(rank, served);
  if (served.door) return;
  finish_lost(rank, Which::kGiven, cause);
  finish_lost(rank, Which::kWaiting, text("it is being started again: ", cause));
}

std::string DeliveryTable::why_busy(const Served& served, const Root& root, const CallContent& content) const {
  // Those are few, and counted apart: one may be there beside as many as fill that room.
  const std::uint64_t large = bodies_.large_bytes();
  const bool is_large = content.body.bytes() > kFarBodyBytes;
  const bool has_room = !is_large || large <= limits_.held_bytes + content.body.bytes();
  const std::uint64_t held = bodies_.bytes() - large;
  if (held > limits_.held_bytes || !has_room) {
    return text("the post of its host has no room: it has ", amount_text(is_large ? bodies_.bytes() : held),
                " of calls and answers");
  }
  // What comes counts on both sides already.
  const std::uint64_t of_root = root ? bodies_.bytes_of(*root) : 0;
  if (of_root > limits_.held_bytes - held + content.body.bytes()) {
    return text("the post of its host has no more room for calls of this host: it has ", amount_text(of_root));
  }
  const std::uint64_t bytes = content.bytes();
  const auto found = served.actors_room.find(content.target.actor);
  if (found != served.actors_room.end() && !found->second.has_room(root, bytes)) {
    const RoomAmount had = found->second.of(root);
    return text("its queue is full: ", had.calls, " calls of ", amount_text(had.bytes), " of this host wait there");
  }
  if (served.room.has_room(root, bytes)) return "";
  const RoomAmount had = served.room.of(root);
  return text("the queues of its rank are full: ", had.calls, " calls of ", amount_text(had.bytes),
              " of this host wait there");
}

DeliveryTable::Number DeliveryTable::deliver(const DeliveryOrigin& origin, const RankId& to, SharedContent content,
                                             const RankStanding& standing, Instant now) {
  Served& served = served_of(to);
  const auto at_once = [&](OutcomeKind kind, std::string text) -> Number {
    CallOutcome outcome = outcome_of(kind, std::move(text));
    outcome.generation = served.door ? served.generation : 0;
    done_.push_back({origin, to, std::move(outcome), {}});
    return 0;
  };
  const Root root = origin.host();
  if (std::string why = why_busy(served, root, *content); !why.empty())
    return at_once(OutcomeKind::kBusy, std::move(why));
  if (served.door) {
    if (std::string why = refusal(served.actors, content->target); !why.empty()) {
      return at_once(OutcomeKind::kRefused, std::move(why));
    }
  } else if (std::string why = why_down(served, standing); !why.empty()) {
    return at_once(OutcomeKind::kRankLost, std::move(why));
  }
  const Number number = next_++;
  served.deliveries.insert(number);
  const SharedRoom<Root> of_an_actor({limits_.of_an_actor, limits_.actor_bytes}, limits_.share);
  served.room.add(root, content->bytes());
  served.actors_room.try_emplace(content->target.actor, of_an_actor).first->second.add(root, content->bytes());
  Delivery& delivery =
      deliveries_
          .emplace(
              number,
              Delivery{.origin = origin, .rank = to, .content = std::move(content), .given = 0, .taken_back = false})
          .first->second;
  if (served.door) {
    give(number, delivery, served);
  } else {
    await_hello(to, served, standing, now);
  }
  return number;
}

void DeliveryTable::await_hello(const RankId& rank, Served& served, const RankStanding& standing, Instant now) {
  served.starting = standing.starting;
  if (standing.starting) {
    served.hello_due = Instant::never();
  } else if (served.hello_due == Instant::never()) {
    served.hello_due = now + kHelloPatience;
  }
  list(rank, served);
}

void DeliveryTable::give(Number number, Delivery& delivery, Served& served) {
  if (std::string why = refusal(served.actors, delivery.content->target); !why.empty()) {
    return finish(number, outcome_of(OutcomeKind::kRefused, std::move(why)));
  }
  delivery.given = served.generation;
  out_.emplace_back(post_action::ToDoor{*served.door, PostDeliver{.delivery = number,
                                                                  .target = delivery.content->target,
                                                                  .caller = delivery.content->caller,
                                                                  .body = delivery.content->body.body(),
                                                                  .here = !delivery.origin.host().has_value()}});
}

bool DeliveryTable::reply(DoorId door, PostReply reply) {
  const auto rank = doors_.find(door);
  if (rank == doors_.end()) return false;
  const auto found = deliveries_.find(reply.delivery);
  // It has ended meanwhile, or never was one of this rank's.
  if (found == deliveries_.end() || found->second.rank != rank->second || found->second.given == 0) return true;
  if (!may_say(reply.outcome.kind, found->second.taken_back)) return false;
  HeldBody body = bodies_.hold(reply.outcome.body);
  finish(reply.delivery, std::move(reply.outcome), std::move(body));
  return true;
}

void DeliveryTable::take_back(Number number) {
  const auto found = deliveries_.find(number);
  if (found == deliveries_.end() || found->second.taken_back) return;
  found->second.taken_back = true;
  const Served& served = served_of(found->second.rank);
  if (found->second.given == 0) return finish(number, outcome_of(OutcomeKind::kCancelled, "it has not begun"));
  if (served.door && served.generation == found->second.given) {
    out_.emplace_back(post_action::ToDoor{*served.door, PostTakeBack{number}});
  }
}

std::optional<ActorOfRank> DeliveryTable::target_of(Number delivery) const {
  const auto found = deliveries_.find(delivery);
  if (found == deliveries_.end()) return std::nullopt;
  const CallTarget& target = found->second.content->target;
  for (const RankActor& actor : ranks_.at(found->second.rank).actors) {
    if (actor.name != target.actor) continue;
    for (const ActorEndpoint& endpoint : actor.endpoints) {
      if (endpoint.name != target.endpoint) continue;
      return endpoint.overlaps ? std::nullopt : std::optional(ActorOfRank{found->second.rank, actor.name});
    }
  }
  return std::nullopt;
}

void DeliveryTable::root_passed(HostId root, const PostStart& now) {
  std::vector<Number> passed;
  for (const auto& [number, delivery] : deliveries_) {
    const DeliveryOrigin& origin = delivery.origin;
    if (!origin.call && origin.root == root && origin.root_start < now) passed.push_back(number);
  }
  for (const Number number : passed) take_back(number);
}

void DeliveryTable::look_at_waiting(const std::function<RankStanding(const RankId&)>& standing_of, Instant now) {
  for (auto& [rank, served] : ranks_) {
    if (served.hello_due == Instant::never() && !served.starting) continue;
    const RankStanding standing = standing_of(rank);
    const std::string why = why_down(served, standing);
    if (why.empty()) {
      await_hello(rank, served, standing, now);
      continue;
    }
    served.starting = false;
    served.hello_due = Instant::never();
    list(rank, served);
    finish_lost(rank, Which::kWaiting, why);
  }
}

void DeliveryTable::tick(Instant now) {
  while (!dues_.empty() && dues_.begin()->first <= now) {
    const RankId rank = dues_.begin()->second;
    Served& served = served_of(rank);
    if (served.hello_due <= now) {
      served.hello_due = Instant::never();
      finish_lost(rank, Which::kWaiting, "it does not come to the post of its host");
    }
    if (served.cause_due <= now) {
      served.cause_due = Instant::never();
      if (served.door) {
        // Something that the process has started keeps its end of the door.
        out_.emplace_back(post_action::CloseDoor{*served.door, "its process has ended"});
        doors_.erase(*served.door);
        served.door.reset();
      }
      finish_lost(rank, Which::kGiven, cause_of(served, "it has closed its door"));
    }
    list(rank, served);
  }
}

void DeliveryTable::finish_lost(const RankId& rank, Which which, const std::string& cause) {
  for (const Number number : std::set<Number>(served_of(rank).deliveries)) {
    const Delivery& delivery = deliveries_.at(number);
    if ((delivery.given != 0) != (which == Which::kGiven)) continue;
    CallOutcome outcome = outcome_of(OutcomeKind::kRankLost, cause);
    outcome.generation = delivery.given;
    finish(number, std::move(outcome));
  }
}

void DeliveryTable::finish(Number number, CallOutcome outcome, HeldBody body) {
  const auto found = deliveries_.find(number);
  MONARCH_ASSERT(found != deliveries_.end());
  Delivery& delivery = found->second;
  Served& served = served_of(delivery.rank);
  served.deliveries.erase(number);
  const Root root = delivery.origin.host();
  served.room.remove(root, delivery.content->bytes());
  const auto actor = served.actors_room.find(delivery.content->target.actor);
  actor->second.remove(root, delivery.content->bytes());
  if (actor->second.is_empty()) served.actors_room.erase(actor);
  if (outcome.generation == 0) outcome.generation = delivery.given;
  done_.push_back({delivery.origin, delivery.rank, std::move(outcome), std::move(body)});
  deliveries_.erase(found);
}

void DeliveryTable::list(const RankId& rank, Served& served) {
  const Instant due = std::min(served.hello_due, served.cause_due);
  if (due == served.listed) return;
  dues_.erase({served.listed, rank});
  served.listed = due;
  if (due != Instant::never()) dues_.emplace(due, rank);
}

}  // namespace monarch
