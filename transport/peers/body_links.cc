#include "transport/peers/body_links.h"

#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "transport/base/log.h"
#include "transport/base/machine.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kNameBytes = 16;
constexpr std::uint64_t kAtOnce = 2U << 20U;  // bytes of one, before others have their turn

std::uint64_t number_of_name(const std::string& name) {
  std::uint64_t id = 0;
  std::memcpy(&id, name.data(), sizeof id);
  return id;
}

}  // namespace

BodyLinks::BodyLinks(EventLoop& loop, MemoryPool& pool, Options options, Handlers handlers)
    : loop_(loop), pool_(pool), options_(std::move(options)), handlers_(std::move(handlers)) {}

BodyLinks::~BodyLinks() {
  for (auto& [way, link] : links_) {
    if (link.watch != 0) loop_.forget(link.watch);
    loop_.cancel(link.patience);
  }
  for (auto& [name, offered] : offers_) loop_.cancel(offered.patience);
  for (auto& [number, stranger] : strangers_) {
    loop_.forget(stranger.watch);
    loop_.cancel(stranger.patience);
  }
  if (listener_watch_ != 0) loop_.forget(listener_watch_);
  loop_.cancel(accept_timer_);
}

// ---- What goes.

std::optional<std::uint64_t> BodyLinks::link_to(HostId host, PeerVia via) {
  const auto found = links_.find({host, via});
  if (found == links_.end()) {
    want({host, via});
    return std::nullopt;
  }
  const Link& link = found->second;
  if (link.phase != Phase::kUp || link.stream->waiting() > kQueueBytes) return std::nullopt;
  return link.id;
}

void BodyLinks::send(HostId host, PeerVia via, std::string_view bytes, std::shared_ptr<const void> memory) {
  Link& link = links_.at({host, via});
  link.stream->send(next_body_++, bytes, std::move(memory));
  look_at_interest(link);
}

void BodyLinks::send(HostId host, PeerVia via, std::uint64_t number, std::shared_ptr<const MappedMemory> body) {
  Link& link = links_.at({host, via});
  link.stream->send(number, std::move(body));
  look_at_interest(link);
}

bool BodyLinks::comes_by(HostId host, PeerVia via, std::uint64_t link) const {
  const auto found = links_.find({host, via});
  return found != links_.end() && found->second.id == link;
}

// ---- How one comes about: whoever dialled asks, the other offers, and who was offered connects.

void BodyLinks::want(const Way& way) {
  Instant& again = again_[way];
  if (loop_.now() < again) return;
  again = loop_.now() + kAgain;
  if (way.second == PeerVia::kTheirs) return offer(way.first, options_.with_aes);
  handlers_.say(way.first, way.second, {.kind = BodyLinkKind::kAsk, .with_aes = options_.with_aes});
}

void BodyLinks::heard(HostId from, PeerVia via, const BodyLinkWord& word) {
  switch (word.kind) {
    case BodyLinkKind::kAsk:
      if (via == PeerVia::kTheirs) offer(from, word.with_aes && options_.with_aes);
      return;
    case BodyLinkKind::kOffer:
      if (via == PeerVia::kOurs) dial(from, word);
      return;
    case BodyLinkKind::kOver:
      if (comes_by(from, via, word.link)) drop(from, via);
      return;
  }
}

bool BodyLinks::listen() {
  if (listener_.socket.valid()) return true;
  if (refused_) return false;
  auto listener = listen_for_hosts(options_.address, options_.first_port, options_.last_port, options_.carries);
  refused_ = !listener.ok();
  if (refused_) {
    log_warn(options_.carries, " go the slower way: ", listener.error().message);
    return false;
  }
  listener_ = std::move(*listener);
  const auto watch = loop_.watch(listener_.socket.get(), Interest::kRead, [this](Readiness) { accept(); });
  if (!watch.ok()) {
    listener_ = {};
    return false;
  }
  listener_watch_ = *watch;
  return true;
}

void BodyLinks::offer(HostId host, bool with_aes) {
  if (rests_ || !listen()) return;
  std::erase_if(offers_, [&](const auto& one) {
    if (one.second.host == host) loop_.cancel(one.second.patience);
    return one.second.host == host;
  });
  const std::string name = random_bytes(kNameBytes);
  Offer& made = offers_[name];
  made = {.host = host, .id = number_of_name(name), .secret = random_bytes(kBodySecretBytes), .with_aes = with_aes};
  made.patience = loop_.at(loop_.now() + kPatience, [this, name] { offers_.erase(name); });
  BodyLinkWord word{.kind = BodyLinkKind::kOffer, .with_aes = with_aes, .link = made.id, .port = listener_.port};
  word.name.data = name;
  word.secret.data = made.secret;
  handlers_.say(host, PeerVia::kTheirs, word);
}

void BodyLinks::look_at_listener() {
  if (listener_watch_ == 0) return;
  loop_.change(listener_watch_, rests_ || accept_timer_ != 0 ? Interest::kNone : Interest::kRead);
}

void BodyLinks::rest(bool rests) {
  rests_ = rests;
  look_at_listener();
}

void BodyLinks::accept() {
  auto socket = accept_host(listener_.socket);
  if (!socket.ok() && socket.error().errno_value != EAGAIN) {
    // Descriptors are short, and who waits there would wake the loop at once again, and again.
    accept_timer_ = loop_.at(loop_.now() + kAgain, [this] {
      accept_timer_ = 0;
      look_at_listener();
    });
    look_at_listener();
  }
  if (!socket.ok()) return;
  if (strangers_.size() >= kStrangers) drop_stranger(strangers_.begin()->first);
  const std::uint64_t number = next_stranger_++;
  const auto watch = loop_.watch(socket->get(), Interest::kRead, [this, number](Readiness) { hear_stranger(number); });
  if (!watch.ok()) return;
  Stranger& stranger = strangers_[number];
  stranger.socket = std::move(*socket);
  stranger.watch = *watch;
  stranger.patience = loop_.at(loop_.now() + kPatience, [this, number] {
    strangers_.at(number).patience = 0;
    drop_stranger(number);
  });
}

void BodyLinks::drop_stranger(std::uint64_t number) {
  const auto found = strangers_.find(number);
  loop_.forget(found->second.watch);
  loop_.cancel(found->second.patience);
  strangers_.erase(found);
}

// An offer is taken once.
void BodyLinks::hear_stranger(std::uint64_t number) {
  Stranger& stranger = strangers_.at(number);
  std::array<char, kNameBytes> read{};
  const ssize_t got = ::recv(stranger.socket.get(), read.data(), kNameBytes - stranger.name.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop_stranger(number);
  stranger.name.append(read.data(), static_cast<std::size_t>(got));
  if (stranger.name.size() < kNameBytes) return;
  const auto offered = offers_.find(stranger.name);
  UniqueFd socket = std::move(stranger.socket);
  loop_.forget(stranger.watch);
  loop_.cancel(stranger.patience);
  strangers_.erase(number);
  if (offered == offers_.end()) return;
  const Offer taken = offered->second;
  loop_.cancel(taken.patience);
  offers_.erase(offered);
  const Way way{taken.host, PeerVia::kTheirs};
  if (links_.contains(way)) lose(way, "another takes its place");
  Link& link = links_[way];
  link.id = taken.id;
  link.secret = taken.secret;
  link.with_aes = taken.with_aes;
  link.socket = std::move(socket);
  begin(way, link, false);
}

void BodyLinks::dial(HostId host, const BodyLinkWord& offered) {
  const Way way{host, PeerVia::kOurs};
  const std::string address = handlers_.address_of(host);
  const bool is_offer = offered.name.data.size() == kNameBytes && offered.secret.data.size() == kBodySecretBytes;
  if (address.empty() || !is_offer) return;
  if (offered.with_aes && !options_.with_aes) {  // it was not asked for
    return handlers_.say(host, PeerVia::kOurs, {.kind = BodyLinkKind::kAsk, .with_aes = false});
  }
  if (links_.contains(way)) lose(way, "another takes its place");
  auto socket = connect_to_host(address, offered.port);
  if (!socket.ok()) return;  // it goes the slower way; it is asked for again
  Link& link = links_[way];
  link.id = offered.link;
  link.name = offered.name.data;
  link.secret = offered.secret.data;
  link.with_aes = offered.with_aes;
  link.socket = std::move(*socket);
  const std::uint64_t id = link.id;
  const auto watch = loop_.watch(link.socket.get(), Interest::kWrite,
                                 [this, way, id](Readiness readiness) { ready(way, id, readiness); });
  if (!watch.ok()) {
    links_.erase(way);
    return;
  }
  link.watch = *watch;
  link.interest = Interest::kWrite;
  link.patience = loop_.at(loop_.now() + kPatience, [this, way] {
    links_.at(way).patience = 0;
    lose(way, text("it was not there within ", to_text(kPatience)));
  });
}

Status BodyLinks::connect(const Way& way, Link& link) {
  MONARCH_ASSIGN(const bool is_connected, connected(link.socket));
  if (!is_connected) return {};
  // So few bytes go at once on a connection that is new.
  const ssize_t sent = ::send(link.socket.get(), link.name.data(), link.name.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(link.name.size())) return Error{ErrorCode::kGone, "its other side has ended"};
  begin(way, link, true);
  return {};
}

void BodyLinks::begin(const Way& way, Link& link, bool dials) {
  link.phase = Phase::kProving;
  const int fd = link.socket.get();
  BodyStream::Options options{
      .secret = link.secret, .dials = dials, .with_aes = link.with_aes, .most = options_.most, .on_part = {}};
  if (handlers_.on_part) {
    options.on_part = [this, way](const BodyStream::Part& part) { handlers_.on_part(way.first, way.second, part); };
  }
  link.stream = std::make_unique<BodyStream>(std::move(link.socket), pool_, options);
  if (link.watch == 0) {
    const std::uint64_t id = link.id;
    const auto watch =
        loop_.watch(fd, Interest::kReadWrite, [this, way, id](Readiness readiness) { ready(way, id, readiness); });
    if (!watch.ok()) {
      links_.erase(way);
      return;
    }
    link.watch = *watch;
    link.interest = Interest::kReadWrite;
    link.patience = loop_.at(loop_.now() + kPatience, [this, way] {
      links_.at(way).patience = 0;
      lose(way, text("no hello within ", to_text(kPatience)));
    });
  }
  look_at_interest(link);
}

// ---- A connection.

BodyLinks::Link* BodyLinks::find(const Way& way, std::uint64_t id) {
  const auto found = links_.find(way);
  return found == links_.end() || found->second.id != id ? nullptr : &found->second;
}

void BodyLinks::ready(const Way& way, std::uint64_t id, Readiness readiness) {
  Link* const link = find(way, id);
  if (link == nullptr) return;
  if (link->phase == Phase::kConnecting) {
    const Status done = connect(way, *link);
    if (!done.ok()) lose(way, done.error().message);
    return;
  }
  if (readiness.writable) {
    const Status sent = link->stream->flush(kAtOnce);
    if (!sent.ok()) return lose(way, sent.error().message);
  }
  if (readiness.readable || readiness.hangup) {
    auto arrived = link->stream->receive(kAtOnce);
    if (!arrived.ok()) return lose(way, arrived.error().message);
    if (link->phase == Phase::kProving && link->stream->is_proven()) {
      link->phase = Phase::kUp;
      loop_.cancel(std::exchange(link->patience, 0));
    }
    for (BodyStream::Arrived& one : *arrived) handlers_.on_body(way.first, way.second, std::move(one));
  }
  if (Link* const still = find(way, id)) look_at_interest(*still);
}

void BodyLinks::look_at_interest(Link& link) {
  const Interest wanted = link.stream->wants_to_write() ? Interest::kReadWrite : Interest::kRead;
  if (std::exchange(link.interest, wanted) != wanted) loop_.change(link.watch, wanted);
}

void BodyLinks::lose(const Way& way, const std::string& why) {
  const auto found = links_.find(way);
  const std::uint64_t id = found->second.id;
  const bool was_up = found->second.phase == Phase::kUp;
  if (was_up) log_info("the connection for bodies with host ", way.first.value(), " has ended: ", why);
  drop(way.first, way.second);
  // It may have ended at this end alone.
  if (was_up) handlers_.say(way.first, way.second, {.kind = BodyLinkKind::kOver, .link = id});
}

void BodyLinks::drop(HostId host, PeerVia via) {
  const auto found = links_.find({host, via});
  if (found == links_.end()) return;
  if (found->second.watch != 0) loop_.forget(found->second.watch);
  loop_.cancel(found->second.patience);
  links_.erase(found);
  again_[{host, via}] = loop_.now() + kAgain;
  handlers_.on_lost(host, via);
}

}  // namespace monarch
