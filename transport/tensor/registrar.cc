#include "transport/tensor/registrar.h"

#include <poll.h>

#include <algorithm>
#include <utility>
#include <variant>

namespace monarch::tensor {

// ---- The registrar itself.

Registrar::Registrar(EventLoop& loop, OwnerServer& server, RegistrarOptions options, Handlers handlers)
    : loop_(loop),
      server_(server),
      generation_(options.generation),
      handlers_(std::move(handlers)),
      core_(std::move(options)) {}

void Registrar::publishes(const Index& index) {
  cards_[server_.rank().rank] = {card_text(server_.card())};
  feed(registrar_event::Publishes{server_.rank().rank, index});
}

void Registrar::holds(std::uint64_t number) { feed(registrar_event::Holds{server_.rank().rank, number}); }

void Registrar::ends() { feed(registrar_event::Ends{server_.rank().rank}); }

Result<bool> Registrar::heard(LinkNumber link, const HelloAsk& peer, const StreamLink::Received& word) {
  if (peer.purpose == LinkPurpose::kPublishes) {
    MONARCH_TRY(heard_publisher(link, peer.reader.rank, word));
    return true;
  }
  const LinkFrame& frame = word.frame;
  if (frame.kind == FrameKind::kRead) {
    if ((frame.flags & kWhole) != 0 && frame.version.generation == generation_) {
      feed(registrar_event::Read{link, frame.version.number});
    }
    return true;
  }
  if (frame.kind != FrameKind::kOpen) return false;
  registrar_event::Open open{.reader = link, .newer_than = {}, .knows_index = (frame.flags & kKnowsIndex) != 0};
  if ((frame.flags & kNewerThan) != 0) open.newer_than = frame.version;
  feed(open);
  return true;
}

Status Registrar::heard_publisher(LinkNumber link, std::uint32_t rank, const StreamLink::Received& word) {
  switch (word.frame.kind) {
    case FrameKind::kIndex: {
      PublishedWord published;
      codec::DecodeError error;
      if (!codec::decode(word.behind, published, error, kIndexLimits)) {
        return Error{ErrorCode::kInvalid, unreadable(published.index, error)};
      }
      MONARCH_TRY(parse_card(published.card.data));
      take_place(link, rank);
      cards_[rank] = std::move(published.card);
      feed(registrar_event::Publishes{rank, std::move(published.index)});
      return {};
    }
    case FrameKind::kHolds:
      if (has_place(link, rank)) feed(registrar_event::Holds{rank, word.frame.version.number});
      return {};
    case FrameKind::kEnds:
      if (has_place(link, rank)) feed(registrar_event::Ends{rank});
      return {};
    default: return Error{ErrorCode::kInvalid, "it says what no publisher may say"};
  }
}

bool Registrar::has_place(LinkNumber link, std::uint32_t rank) const {
  const auto publisher = publishers_.find(rank);
  return publisher != publishers_.end() && publisher->second == link;
}

// Who has proven later that he is that rank has its place: of a link that was cut nobody hears here.
void Registrar::take_place(LinkNumber link, std::uint32_t rank) {
  const auto publisher = publishers_.find(rank);
  const LinkNumber before = publisher == publishers_.end() ? link : publisher->second;
  publishers_[rank] = link;
  if (before != link) server_.end(before, "another link of its rank has its place");
}

void Registrar::left(LinkNumber link, const HelloAsk& peer) {
  if (peer.purpose == LinkPurpose::kReads) return feed(registrar_event::ReaderLeft{link});
  if (!has_place(link, peer.reader.rank)) return;
  publishers_.erase(peer.reader.rank);
  feed(registrar_event::PublisherLeft{peer.reader.rank});
}

void Registrar::feed(const RegistrarEvent& event) {
  for (const RegistrarAction& action : core_.step(event, loop_.now())) {
    std::visit([this](const auto& one) { perform(one); }, action);
  }
  loop_.cancel(timer_);
  timer_ = 0;
  if (core_.next_due() != Instant::never()) {
    timer_ = loop_.at(core_.next_due(), [this] { feed(registrar_event::Tick{}); });
  }
}

void Registrar::perform(const registrar_action::AllHold& action) {
  handlers_.all_hold(action.number);
  for (const auto& [rank, link] : publishers_) {
    server_.send(link, {.kind = FrameKind::kAllHold, .version = {generation_, action.number}});
  }
}

void Registrar::perform(const registrar_action::Opened& action) {
  LinkFrame frame{.kind = FrameKind::kOpened, .version = {generation_, action.number}};
  if (!action.with_index) return server_.send(action.reader, frame);
  if (!opened_) {
    OpenedWord word{core_.index(), {}};
    for (const auto& [rank, card] : cards_) word.cards.list.push_back({rank, card});
    opened_ = codec::encode(word);
  }
  frame.flags = kWithIndex;
  server_.send(action.reader, frame, *opened_);
}

void Registrar::perform(const registrar_action::Waits& action) {
  server_.send(action.reader, {.kind = FrameKind::kWaits, .version = {generation_, 0}}, action.text);
}

void Registrar::perform(const registrar_action::Over& action) {
  server_.send(action.reader, {.kind = FrameKind::kOver, .version = {generation_, 0}});
}

void Registrar::perform(const registrar_action::Unfit& action) {
  if (action.rank == server_.rank().rank) return handlers_.unfit(action.text);
  const auto publisher = publishers_.find(action.rank);
  if (publisher != publishers_.end()) server_.end(publisher->second, action.text);
}

void Registrar::perform(const registrar_action::Release& /*action*/) {
  handlers_.release();
  for (const auto& [rank, link] : publishers_) server_.send(link, {.kind = FrameKind::kRelease});
}

// ---- The way there.

RegistrarLink::RegistrarLink(EventLoop& loop, const OwnerServer& server, std::string publication,
                             std::uint32_t registrar, std::size_t slots, Handlers handlers)
    : loop_(loop),
      server_(server),
      publication_(std::move(publication)),
      registrar_(registrar),
      slots_(slots),
      handlers_(std::move(handlers)) {}

RegistrarLink::~RegistrarLink() {
  loop_.forget(watch_);
  loop_.cancel(timer_);
}

LinkFrame RegistrarLink::frame_of(FrameKind kind, std::uint64_t number) const {
  return {.kind = kind, .version = {server_.rank().generation, number}};
}

void RegistrarLink::publishes(const Index& index) {
  published_ = codec::encode(PublishedWord{index, {card_text(server_.card())}});
  say({.kind = FrameKind::kIndex}, published_);
}

void RegistrarLink::holds(std::uint64_t number) {
  holds_.push_back(number);
  if (holds_.size() > slots_) holds_.pop_front();
  say(frame_of(FrameKind::kHolds, number));
}

void RegistrarLink::ends() {
  ended_ = true;
  say({.kind = FrameKind::kEnds});
}

void RegistrarLink::found(const Card& card) {
  if (card_ == card) return;
  card_ = card;
  if (!link_ && !dial_ && timer_ == 0) dial();
}

// A registrar on this machine may be in another network: then there is the other way.
void RegistrarLink::dial() {
  timer_ = 0;
  const bool here = card_->machine == server_.card().machine;
  if (!here || way_ == LinkWay::kToHost) way_ = card_->address.empty() ? LinkWay::kOnMachine : LinkWay::kToHost;
  HelloAsk ask;
  ask.reader = server_.rank();
  ask.owner = {server_.rank().mesh, registrar_, server_.rank().generation};
  ask.purpose = LinkPurpose::kPublishes;
  ask.publication = publication_;
  auto dial = LinkDial::start(*card_, way_, std::move(ask));
  if (!dial.ok()) return lost();
  dial_ = std::move(*dial);
  timer_ = loop_.at(loop_.now() + kDialPatience, [this] { lost(); });
  watch(dial_->descriptor(), true);
}

void RegistrarLink::lost() {
  loop_.forget(std::exchange(watch_, 0));
  loop_.cancel(std::exchange(timer_, 0));
  dial_.reset();
  link_.reset();
  way_ = way_ == LinkWay::kOnMachine ? LinkWay::kToHost : LinkWay::kOnMachine;
  if (unfit_) return;
  timer_ = loop_.at(loop_.now() + pause_, [this] { dial(); });
  pause_ = std::min(pause_ * 2, kLongestPause);
}

// The descriptor stays the same from the dial to the link.
void RegistrarLink::watch(int fd, bool writes) {
  const Interest wanted = writes ? Interest::kReadWrite : Interest::kRead;
  if (watch_ != 0) return loop_.change(watch_, wanted);
  const auto made = loop_.watch(fd, wanted, [this](Readiness) { dial_ ? go_on() : hear(); });
  watch_ = made.ok() ? *made : 0;
  if (watch_ == 0) lost();
}

void RegistrarLink::go_on() {
  auto link = dial_->go_on();
  if (!link.ok()) return lost();
  if (*link == nullptr) return watch(dial_->descriptor(), (dial_->events() & POLLOUT) != 0);
  dial_.reset();
  link_ = std::move(*link);
  linked();
}

void RegistrarLink::linked() {
  loop_.cancel(std::exchange(timer_, 0));
  pause_ = kFirstPause;
  if (!published_.empty()) say({.kind = FrameKind::kIndex}, published_);
  for (std::size_t i = 0; link_ && i < holds_.size(); ++i) say(frame_of(FrameKind::kHolds, holds_[i]));
  if (link_ && ended_) say({.kind = FrameKind::kEnds});
  if (link_) flush();
}

void RegistrarLink::say(const LinkFrame& frame, std::string behind) {
  if (!link_) return;
  if (!link_->send(frame, std::move(behind)).ok()) return lost();
  flush();
}

void RegistrarLink::flush() {
  if (!link_->flush().ok()) return lost();
  watch(link_->descriptor(), link_->wants_to_write());
}

void RegistrarLink::hear() {
  flush();
  while (link_) {
    auto received = link_->receive(kHelloBytes);
    if (!received.ok()) return lost();
    if (!*received) return;
    const StreamLink::Received& word = **received;
    if (word.frame.kind == FrameKind::kAllHold) handlers_.all_hold(word.frame.version.number);
    if (word.frame.kind == FrameKind::kRelease) handlers_.release();
    if (word.frame.kind != FrameKind::kUnfit) continue;
    unfit_ = true;
    handlers_.unfit(word.behind);
    return lost();
  }
}

}  // namespace monarch::tensor
