#include "worker/core/post/post_core.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "transport/base/text.h"
#include "worker/core/post/call_check.h"
#include "worker/core/post/long_waits.h"

namespace monarch {

namespace {

// Whether a rank of which the roster says this may be up some time.
bool may_come(const RosterRun* run) {
  return run == nullptr || (run->state != RosterState::kGivenUp && run->state != RosterState::kEnded);
}

void say_here(PostDeliver& message) { message.here = true; }
void say_here(PostAnswer& message) { message.here = true; }
void say_here(PostAnswers& message) {
  for (SaidAnswer& one : message.answers) one.here = true;
}
template <class Message>
void say_here(Message& /*that is of no other host*/) {}

}  // namespace

PostCore::PostCore(PostOptions options)
    : options_(std::move(options)),
      lendings_(out_),
      answers_(options_.limits, out_),
      calls_(options_.limits, out_, answers_),
      windows_(options_.limits),
      deliveries_(options_.limits, bodies_, out_),
      lines_(options_.host, options_.start, bodies_, out_, options_.limits),
      gate_(roster_),
      cards_(options_.limits),
      guests_(options_.start) {}

PostActions PostCore::step(const PostEvent& event, Instant now) {
  now_ = now;
  lines_.at(now);
  out_.clear();
  std::visit([this](const auto& one) { on(one); }, event);
  settle();
  return finish();
}

PostActions PostCore::end_turn() {
  out_.clear();
  answers_.flush();
  lines_.flush();
  return finish();
}

PostActions PostCore::finish() {
  for (PostAction& action : out_) {
    auto* const to = std::get_if<post_action::ToDoor>(&action);
    if (to == nullptr) continue;
    if (auto* const deliver = std::get_if<PostDeliver>(&to->message)) {
      lend_on(*to, deliver->body, {.delivery = deliver->delivery});
    } else if (auto* const answer = std::get_if<PostAnswer>(&to->message)) {
      lend_on(*to, answer->outcome.body, {.id = answer->id, .rank = answer->rank});
    }
    if (options_.one_machine) std::visit([](auto& message) { say_here(message); }, to->message);
  }
  for (const BodyId body : bodies_.take_free()) {
    out_.emplace_back(post_action::FreeBody{.body = body, .tells = lendings_.has(body)});
  }
  return std::exchange(out_, {});
}

void PostCore::lend_on(const post_action::ToDoor& to, CallBody& body, const Lendings::Reading& reading) {
  if (body.block != 0 && !lendings_.give(body.at, to.door, reading)) body.block = 0;
}

Instant PostCore::next_due() const {
  return std::min({calls_.next_due(), deliveries_.next_due(), lines_.next_due(), gate_.next_due()});
}

std::vector<PeerAddress> PostCore::peers() const { return peers_; }

void PostCore::turn_away(DoorId door, std::string why) {
  answers_.flush(door);
  out_.emplace_back(post_action::CloseDoor{door, std::move(why)});
}

void PostCore::on(const post_event::DoorSaid& event) {
  std::visit(
      [&](const auto& message) {
        if (const CallBody* const body = body_of(message); body != nullptr) lendings_.begin(*body, event.door);
        said(event.door, message);
      },
      event.message);
}

void PostCore::on(const post_event::DoorLeft& event) {
  early_.erase(event.door);
  watching_.erase(event.door);
  answers_.left(event.door);
  lendings_.left(event.door);
  wishes_.left(event.door);
  if (callers_.erase(event.door) > 0) {
    rings_.left(event.door);
    cards_.left(event.door);
    routes_.left(event.door);
    windows_.left(event.door);
    take_back(calls_.left(event.door));
  }
  if (serving_.erase(event.door) == 0) return;
  if (guests_.left(event.door)) return deliveries_.left_for_good(event.door, Guests::kHasLeft);
  deliveries_.left(event.door, now_);
}

void PostCore::on(const post_event::PeerSaid& event) {
  std::visit(
      [&](const auto& message) {
        if (const CallBody* const body = body_of(message); body != nullptr) lendings_.begin(*body, {});
      },
      event.message);
  lines_.hear(event.from, event.message);
}

void PostCore::on(const post_event::RankEnded& event) {
  deliveries_.ended(event.process.rank, event.process.generation.counter, event.cause, now_);
  rings_.ended(event.process.rank, event.process.generation.counter);
}

void PostCore::on(const post_event::Tick& /*event*/) {
  take_back(calls_.expire(now_));
  deliveries_.tick(now_);
  lines_.tick();
  gate_.look(now_);
  tell_waits();
}

// ---- The door.

void PostCore::said(DoorId door, const PostHello& hello) {
  if (early_.contains(door) || callers_.contains(door) || serving_.contains(door)) {
    return turn_away(door, "it says hello twice");
  }
  if (hello.version < kOldestPostDoorVersion) {
    return turn_away(
        door, text("it speaks version ", hello.version, " of the door, and this post ", kOldestPostDoorVersion, " on"));
  }
  if (!roster_.known()) {
    early_[door] = hello;
    return;
  }
  welcome(door, hello);
}

std::string PostCore::why_unwelcome(const PostHello& hello, CallerName& name) const {
  if (hello.mesh.empty()) {
    const bool may = !hello.serves || hello.version >= kGuestsDoorVersion;
    return may ? "" : text("only a rank of the job serves before version ", kGuestsDoorVersion, " of the door");
  }
  const auto mesh = roster_.mesh_named(hello.mesh);
  if (!mesh) return unknown_mesh(hello.mesh, roster_.roster());
  name.rank = {*mesh, Rank(hello.rank)};
  if (hello.rank >= roster_.ranks_of(*mesh)) return text("there is no rank ", roster_.rank_name(name.rank));
  if (std::string passed = roster_.passed(name); !passed.empty()) return passed;
  if (roster_.place_of(name, options_.host) != RosterView::Place::kElsewhere) return {};
  return text(roster_.rank_name(name.rank), " is not on this host");
}

void PostCore::welcome(DoorId door, const PostHello& hello) {
  CallerName name{.mesh = hello.mesh, .rank = {}, .generation = hello.generation};
  if (std::string why = why_unwelcome(hello, name); !why.empty()) return turn_away(door, std::move(why));
  const bool is_guest = hello.serves && hello.mesh.empty();
  if (is_guest) name.rank = guests_.came(door);
  const PostLimits& limits = options_.limits;
  const std::uint32_t version = std::min(hello.version, kPostDoorVersion);
  if (version >= kCountedDoorVersion) {
    answers_.came(door);
    lendings_.came(door);
  }
  out_.emplace_back(post_action::ToDoor{door, PostWelcome{.version = version,
                                                          .host = options_.host_name,
                                                          .meshes = roster_.roster().meshes,
                                                          .calls = limits.calls,
                                                          .call_bytes = limits.call_bytes,
                                                          .body_bytes = limits.body_bytes,
                                                          .address = options_.address,
                                                          .first_port = options_.first_port,
                                                          .last_port = options_.last_port,
                                                          .guest = is_guest ? name.rank.rank.value() : 0,
                                                          .far_bytes = limits.far_bytes}});
  if (hello.watches) watching_.insert(door);
  wishes_.came(door, hello.owner);
  if (!hello.serves) {
    callers_[door] = std::move(name);
    return;
  }
  if (!deliveries_.came(door, name.rank, is_guest ? Guests::kGeneration : hello.generation, hello.actors)) {
    return turn_away(door, text("a later start of ", roster_.rank_name(name.rank), " has its place"));
  }
  serving_.insert(door);
}

void PostCore::said(DoorId door, const PostCancel& cancel) {
  if (!callers_.contains(door)) return turn_away(door, "it has not come as a caller");
  take_back(calls_.cancel({door, cancel.id}));
}

void PostCore::said(DoorId door, const PostReply& reply) {
  const HeldBody body = bodies_.hold(reply.outcome.body);  // also of one that nobody waits for
  if (!reply.keeps) lendings_.let_go(door, {.delivery = reply.delivery});
  if (!serving_.contains(door)) return turn_away(door, "it has not come to serve");
  if (!deliveries_.reply(door, reply)) turn_away(door, text("its answer to delivery ", reply.delivery, " is none"));
}

void PostCore::said(DoorId door, const PostWait& wait) {
  const auto caller = callers_.find(door);
  if (caller == callers_.end()) return turn_away(door, "it has not come as a caller");
  if (caller->second.mesh.empty()) return turn_away(door, "only a rank of the job has actors that wait");
  if (wait.actor.size() > kActorNameBytes) return turn_away(door, "no actor has so long a name");
  const CallKey call{door, wait.id};
  if (wait.actor.empty()) return rings_.end(call);
  PostRing said{.id = wait.id, .ring = {}};
  // A deadline ends a wait, whatever waits for what.
  if (calls_.lasts(call)) {
    said.ring = ring_of(call, {{caller->second.rank, wait.actor}, caller->second.generation, wait.delivery});
  }
  out_.emplace_back(post_action::ToDoor{door, std::move(said)});
}

void PostCore::said(DoorId door, const PostCard& card) {
  HeldBody text = bodies_.hold(card.text);
  const auto caller = callers_.find(door);
  if (caller == callers_.end()) return turn_away(door, "it has not come as a caller");
  std::string why = roster_.passed(caller->second);
  if (why.empty()) why = cards_.put(door, caller->second, card.name, std::move(text), card.key.data);
  if (!why.empty()) turn_away(door, std::move(why));
}

void PostCore::said(DoorId door, const PostLetGo& said) {
  const bool is_answer = said.delivery == 0;
  lendings_.let_go(door, is_answer ? Lendings::Reading{.delivery = 0, .id = said.id, .rank = said.rank}
                                   : Lendings::Reading{.delivery = said.delivery});
}

void PostCore::said(DoorId door, const PostWish& wish) {
  if (!callers_.contains(door)) return turn_away(door, "it has not come as a caller");
  wishes_.said(door, wish);
}

std::string PostCore::ring_of(const CallKey& call, const WaitRings::Waiter& waiter) {
  const auto deliveries_of = [this](const CallKey& of) {
    std::vector<DeliveryTable::Number> numbers;
    for (const CallPlace& place : calls_.places_of(of)) {
      if (!place.host) numbers.push_back(place.number);
    }
    return numbers;
  };
  const auto target_of = [this](DeliveryTable::Number delivery) { return deliveries_.target_of(delivery); };
  const auto ring = rings_.begin(call, waiter, deliveries_of, target_of);
  if (ring.empty()) return {};
  const auto name_of = [this](const ActorOfRank& one) { return text(one.actor, " of ", roster_.rank_name(one.rank)); };
  std::string words = text("actor ", name_of(waiter.who), " would wait for ever: it waits for ");
  for (std::size_t i = 1; i < ring.size(); ++i) words += text(name_of(ring[i]), ", which waits for ");
  return text(words, ring.size() == 1 ? "itself, and has one call at a time" : "it");
}

void PostCore::said(DoorId door, const PostCall& call) {
  const HeldBody body = bodies_.hold(call.body);
  const auto caller = callers_.find(door);
  if (caller == callers_.end()) return turn_away(door, "it has not come as a caller");
  const CallKey key{door, call.id};
  if (calls_.knows(key)) return turn_away(door, text("call ", call.id, " is under way already"));
  const auto entered = entered_of(call, caller->second, roster_, options_.limits, options_.host);
  if (!entered.ok()) {
    return answers_.over(door, call.id, entered.error().message);
  }
  calls_.enter(key, *entered, now_);
  distribute(key, entered->ranks,
             std::make_shared<const CallContent>(
                 CallContent{entered->mesh, call.target, caller->second, body, entered->host}));
}

// ---- Where a call goes.

void PostCore::end(const CallKey& key, Rank rank, OutcomeKind kind, std::string text) {
  CallOutcome outcome;
  outcome.kind = kind;
  outcome.text = std::move(text);
  calls_.end(key, rank, std::move(outcome));
}

void PostCore::distribute(const CallKey& key, const std::vector<Rank>& ranks, const SharedContent& content) {
  if (content->target.actor == kCardsActor) {
    for (const Rank rank : ranks) route({key, rank}, content);
    return;
  }
  std::vector<Rank> now;
  for (const Rank rank : ranks) {
    if (windows_.enter({key, rank, content})) now.push_back(rank);
  }
  send(key, now, content);
}

void PostCore::send(const CallKey& key, const std::vector<Rank>& ranks, const SharedContent& content) {
  std::map<HostId, std::vector<Rank>> others;
  for (const Rank rank : ranks) {
    const RankId id{content->mesh, rank};
    const RosterRun* const run = roster_.find(id);
    const std::optional<HostId> where = run != nullptr ? std::optional(run->host) : content->host;
    if (where == options_.host) {
      const auto number = deliver_here({.call = key, .root = {}, .root_start = {}, .number = 0}, id, content);
      if (number != 0) calls_.asked(key, rank, {.host = {}, .number = number});
      continue;
    }
    const RosterHost* const host = where ? roster_.host(*where) : nullptr;
    const bool is_up = run == nullptr || run->state == RosterState::kUp || run->state == RosterState::kStarting;
    if (host == nullptr || !is_up) {
      end(key, rank, OutcomeKind::kRankLost, roster_.why_lost(id));
    } else if (!host->without_post.empty()) {
      end(key, rank, OutcomeKind::kGone, text("no post on ", host->peer.name, ": ", host->without_post));
    } else if (content->body.bytes() > options_.limits.far_bytes) {
      end(key, rank, OutcomeKind::kRefused, too_large("its arguments are", content->body.bytes(), options_.limits));
    } else {
      others[*where].push_back(rank);
    }
  }
  for (const auto& [host, there] : others) {
    AskNumber number = lines_.ask(host, key, there, content);
    for (const Rank rank : there) calls_.asked(key, rank, {.host = host, .number = number++});
  }
}

DeliveryTable::Number PostCore::deliver_here(const DeliveryOrigin& origin, const RankId& rank, SharedContent content) {
  const CallTarget& target = content->target;
  if (rank.mesh == kGuestsMeshId) return deliver_to_guest(origin, rank, std::move(content));
  if (target.actor != kCardsActor) return deliveries_.deliver(origin, rank, content, standing_of(rank), now_);
  return cards_.ask(origin, content->caller, rank, target.endpoint, known_generation(target).value_or(0));
}

// Who is not here was here, or never is.
DeliveryTable::Number PostCore::deliver_to_guest(const DeliveryOrigin& origin, const RankId& guest,
                                                 SharedContent content) {
  const bool wants_card = content->target.actor == kCardsActor;
  if (guests_.has(guest.rank) && !wants_card) {
    return deliveries_.deliver(origin, guest, std::move(content), {}, now_);
  }
  CallOutcome outcome;
  outcome.kind = wants_card ? OutcomeKind::kRefused : OutcomeKind::kRankLost;
  outcome.text = wants_card ? Guests::kNoCards : guests_.why_lost(guest.rank);
  end(DeliveryTable::Done{origin, guest, std::move(outcome), {}});
  return 0;
}

void PostCore::route(const CardRoutes::Key& key, SharedContent content) {
  const auto& [call, rank] = key;
  const RankId id{content->mesh, rank};
  const RosterRun* const run = roster_.find(id);
  const RosterHost* const host = run == nullptr ? nullptr : roster_.host(run->host);
  routes_.erase(key);
  if (!may_come(run)) {
    // Who has done what he was for has no card any more, and nothing is wrong with that.
    const bool ended = run->state == RosterState::kEnded;
    return end(call, rank, ended ? OutcomeKind::kRefused : OutcomeKind::kRankLost, roster_.why_lost(id));
  }
  if (host != nullptr && !host->without_post.empty()) {
    return end(call, rank, OutcomeKind::kGone, text("no post on ", host->peer.name, ": ", host->without_post));
  }
  CardRoutes::Route route{.content = content, .host = {}, .place = {}};
  if (host != nullptr) {
    route.host = run->host;
    if (run->host == options_.host) {
      route.place.number = deliver_here({.call = call, .root = {}, .root_start = {}, .number = 0}, id, content);
      if (route.place.number == 0) return;  // it was answered at once
    } else {
      route.place = {.host = run->host, .number = lines_.ask(run->host, call, {rank}, content)};
    }
  }
  calls_.asked(call, rank, route.place);
  routes_.set(key, std::move(route));
}

// A host that is lost, and a post that was started again, are no end of it.
bool PostCore::is_routed_again(const CardRoutes::Key& key, OutcomeKind how) {
  const CardRoutes::Route* const route = routes_.find(key);
  if (route == nullptr || (how != OutcomeKind::kRankLost && how != OutcomeKind::kGone)) return false;
  this->route(key, SharedContent(route->content));
  return true;
}

void PostCore::look_at_routes() {
  for (const CardRoutes::Key& key : routes_.keys()) {
    const CardRoutes::Route* const route = routes_.find(key);
    if (route == nullptr) continue;
    const RosterRun* const run = roster_.find({route->content->mesh, key.second});
    const bool is_there = run != nullptr && route->host == run->host && roster_.host(run->host) != nullptr;
    if (may_come(run) && is_there) continue;
    if (route->host) take_back({route->place});
    this->route(key, SharedContent(route->content));
  }
}

// A rank that is elsewhere by the roster may be about to come here: it is waited for, unless it was here and has left.
RankStanding PostCore::standing_of(const RankId& rank) const {
  const RosterRun* const run = roster_.find(rank);
  if (run == nullptr || run->host != options_.host) return {};
  RankStanding standing{.down = {}, .generation = run->generation.counter};
  standing.starting = run->state == RosterState::kStarting;
  if (run->state != RosterState::kUp && !standing.starting) standing.down = roster_.why_lost(rank);
  return standing;
}

void PostCore::refuse(const DeliveryOrigin& origin, OutcomeKind kind, std::string why) {
  CallOutcome outcome;
  outcome.kind = kind;
  outcome.text = std::move(why);
  lines_.answer(origin, std::move(outcome), {});
}

void PostCore::deliver(PeerLines::Ordered&& ordered) {
  if (roster_.known() && ordered.rank.rank.value() >= roster_.ranks_of(ordered.rank.mesh)) {
    return refuse(ordered.origin, OutcomeKind::kRefused, text("there is no rank ", roster_.rank_name(ordered.rank)));
  }
  const DeliveryTable::Number number = deliver_here(ordered.origin, ordered.rank, std::move(ordered.content));
  if (number != 0) lines_.running(ordered.origin, number);
}

void PostCore::take_back(const std::vector<CallPlace>& places) {
  for (const CallPlace& place : places) {
    if (place.host) {
      lines_.take_back(*place.host, place.number);
    } else {
      take_back_here(place.number);
    }
  }
}

void PostCore::take_back_here(DeliveryTable::Number number) {
  if (CardTable::is_one(number)) return cards_.take_back(number);
  deliveries_.take_back(number);
}

void PostCore::end(DeliveryTable::Done&& done) {
  const PostLimits& limits = options_.limits;
  if (done.body.bytes() > (done.origin.call ? limits.body_bytes : limits.far_bytes)) {
    done.outcome.kind = OutcomeKind::kRefused;
    done.outcome.text = too_large("it has run, and its result is", done.body.bytes(), limits);
    done.body = {};
  }
  if (!done.origin.call) return lines_.answer(done.origin, std::move(done.outcome), std::move(done.body));
  routes_.erase({*done.origin.call, done.rank.rank});
  calls_.end(*done.origin.call, done.rank.rank, std::move(done.outcome), std::move(done.body));
}

// What the parts have for each other, until nothing is left.
void PostCore::settle() {
  for (bool more = true; more;) {
    more = false;
    for (auto& [host, start] : lines_.take_passed()) {
      deliveries_.root_passed(host, start);
      cards_.root_passed(host, start);
      gate_.root_passed(host, start);
    }
    for (PeerLines::Ordered& ordered : lines_.take_ordered()) {
      more = true;
      gate_.ask(std::move(ordered), now_);
    }
    for (const auto& [root, number] : lines_.take_taken_back_early()) gate_.take_back(root, number);
    for (CallerGate::Refused& refused : gate_.take_refused()) {
      refuse(refused.ordered.origin, refused.kind, std::move(refused.why));
    }
    for (PeerLines::Ordered& ordered : gate_.take_believed()) {
      more = true;
      deliver(std::move(ordered));
    }
    for (const DeliveryTable::Number number : lines_.take_taken_back()) take_back_here(number);
    for (DeliveryTable::Done& done : deliveries_.take_done()) {
      more = true;
      end(std::move(done));
    }
    for (DeliveryTable::Done& done : cards_.take_done()) {
      more = true;
      end(std::move(done));
    }
    for (PeerLines::Ended& ended : lines_.take_ended()) {
      more = true;
      if (is_routed_again({ended.call, ended.rank}, ended.outcome.kind)) continue;
      routes_.erase({ended.call, ended.rank});
      calls_.end(ended.call, ended.rank, std::move(ended.outcome), std::move(ended.body), ended.whence);
    }
    for (const auto& [call, rank] : calls_.take_ended()) windows_.ended(call, rank);
    for (const CallWindows::Part& part : windows_.take_ready()) {
      more = true;
      send(part.call, {part.rank}, part.content);
    }
  }
  for (auto& [door, granted] : wishes_.take_answers()) {
    out_.emplace_back(post_action::ToDoor{door, std::move(granted)});
  }
  for (const CallKey& call : calls_.take_over()) {
    rings_.end(call);
    routes_.over(call);
  }
}

// ---- The roster.

void PostCore::on(const post_event::RosterCame& event) {
  if (!roster_.take(event.roster)) return;
  look_at_hosts();
  gate_.look(now_);
  deliveries_.look_at_waiting([this](const RankId& rank) { return standing_of(rank); }, now_);
  cards_.drop_passed([this](const CallerName& who) { return !roster_.passed(who).empty(); });
  look_at_routes();
  tell_failures();
  for (auto& [door, hello] : std::exchange(early_, {})) welcome(door, hello);
}

void PostCore::look_at_hosts() {
  std::vector<PeerAddress> peers;
  for (const RosterHost& host : roster_.roster().hosts) {
    if (host.peer.host != options_.host && host.peer.port != 0) peers.push_back(host.peer);
  }
  if (peers != peers_) {
    const std::vector<PeerAddress> before = std::exchange(peers_, std::move(peers));
    out_.emplace_back(post_action::PeersChanged{});
    const auto missing_in = [](const std::vector<PeerAddress>& list, const PeerAddress& one) {
      return std::find(list.begin(), list.end(), one) == list.end();
    };
    const auto named_in = [](const std::vector<PeerAddress>& list, HostId host) {
      return std::any_of(list.begin(), list.end(), [host](const PeerAddress& one) { return one.host == host; });
    };
    for (const PeerAddress& one : before) {
      if (!named_in(peers_, one.host)) lines_.moved(one.host, false);
    }
    for (const PeerAddress& one : peers_) {
      if (missing_in(before, one)) lines_.moved(one.host, true);
    }
  }
  for (const HostId host : lines_.hosts()) {
    const RosterHost* const known = roster_.host(host);
    if (known != nullptr && known->without_post.empty()) continue;
    lines_.give_up(host, [&](const RankId& rank) {
      CallOutcome outcome;
      outcome.kind = known == nullptr ? OutcomeKind::kRankLost : OutcomeKind::kGone;
      outcome.text =
          known == nullptr ? roster_.why_lost(rank) : text("no post on ", known->peer.name, ": ", known->without_post);
      return outcome;
    });
  }
}

// Those of before its first roster are history.
void PostCore::tell_failures() {
  std::uint64_t newest = failures_told_.value_or(0);
  for (const RosterFailure& failure : roster_.roster().failures) {
    newest = std::max(newest, failure.number);
    if (!failures_told_ || failure.number <= *failures_told_) continue;
    for (const DoorId door : watching_) out_.emplace_back(post_action::ToDoor{door, PostFailure{failure}});
  }
  failures_told_ = newest;
}

void PostCore::tell_waits() {
  const auto who_of = [this](const CallKey& call) {
    const auto caller = callers_.find(call.door);
    const WaitRings::Waiter* const waiter = rings_.find(call);
    const bool is_rank = caller != callers_.end() && !caller->second.mesh.empty();
    return text(waiter == nullptr ? "" : text("actor ", waiter->who.actor, " of "),
                is_rank ? roster_.rank_name(caller->second.rank) : "a caller");
  };
  if (const auto waits = calls_.take_long_waits(now_); !waits.empty()) {
    out_.emplace_back(post_action::Tell{PostWordKind::kWaiting, words_of(waits, who_of, roster_)});
  }
  for (const HostId host : lines_.take_unreached()) {
    out_.emplace_back(
        post_action::Tell{PostWordKind::kUnreached,
                          text(options_.host_name, " and ", roster_.host_name(host), " do not reach each other")});
  }
}

}  // namespace monarch
