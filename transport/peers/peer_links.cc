#include "transport/peers/peer_links.h"

#include <charconv>
#include <utility>

#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/wire/host_socket.h"

namespace monarch {

namespace {

constexpr Duration kPublishAgain = Duration::milliseconds(100);
constexpr Duration kDialAgain = Duration::milliseconds(250);

// The header of a message, which counts as long as libzmq has it.
class QueuedMessage {
 public:
  QueuedMessage(std::string header, std::shared_ptr<std::atomic<std::uint64_t>> queued, std::uint64_t bytes)
      : header_(std::move(header)), queued_(std::move(queued)), bytes_(bytes) {
    queued_->fetch_add(bytes_);
  }
  QueuedMessage(const QueuedMessage&) = delete;
  QueuedMessage& operator=(const QueuedMessage&) = delete;
  ~QueuedMessage() { queued_->fetch_sub(bytes_); }
  std::string_view header() const { return header_; }

 private:
  const std::string header_;
  const std::shared_ptr<std::atomic<std::uint64_t>> queued_;
  const std::uint64_t bytes_;
};

// Of a range the highest that is free: ports that a spec names are mostly its first. What an earlier process of the
// kind has just left comes last.
Result<std::unique_ptr<ServerLink>> bind(ZmqContext& context, const PeerLinks::Options& options,
                                         const CurveKeyPair& keys) {
  ServerOptions server;
  server.address = options.address;
  server.link = options.link;
  server.ports = options.ports;
  if (options.ports.first == 0) return ServerLink::bind(context, server, keys);
  for (const bool untouched : {true, false}) {
    for (std::uint32_t below = options.ports.last + 1U; below > options.ports.first; --below) {
      const auto port = static_cast<std::uint16_t>(below - 1);
      if (untouched && !is_free(port)) continue;
      server.ports = {port, port};
      auto bound = ServerLink::bind(context, server, keys);
      if (bound.ok() || bound.error().code != ErrorCode::kBusy) return bound;
    }
  }
  return Error{ErrorCode::kBusy,
               text("every port of ", options.address, ":", options.ports.first, "-", options.ports.last, " is taken")};
}

}  // namespace

Result<std::unique_ptr<PeerLinks>> PeerLinks::open(ZmqContext& context, ZmqLoop& loop, const CurveKeyPair& keys,
                                                   const Options& options, Handlers handlers) {
  std::unique_ptr<PeerLinks> links(new PeerLinks(context, loop, keys, options, std::move(handlers)));
  PeerLinks* const self = links.get();
  MONARCH_ASSIGN(links->zap_, ZapHandler::start(context));
  MONARCH_TRY(zap_self_test(context, [self](AllowTable table) { return self->zap_->replace(std::move(table)); }));
  MONARCH_TRY(links->zap_->replace({}));
  MONARCH_ASSIGN(links->server_, bind(context, options, keys));
  links->server_->attach(loop, [self](InboundMessage&& message) { self->on_inbound(std::move(message)); });
  MONARCH_TRY(links->watch_descriptors());
  return links;
}

// Of a limit that is the user's own.
Status PeerLinks::watch_descriptors() {
  MONARCH_ASSIGN(ListenerDoor door, server_->door());
  std::vector<ListenerDoor> doors;
  doors.push_back(std::move(door));
  const auto tell = [this](bool scarce, const DescriptorUse& use) {
    log_warn("the ", options_.kind, " has ", use.left(), " descriptors left of ", use.limit, " (ulimit -Hn): its port ",
             scarce ? "takes no new connection until there are more" : "takes connections again");
    if (handlers_.on_scarce) handlers_.on_scarce(scarce);
  };
  descriptors_ = std::make_unique<DescriptorWatch>(
      loop_.loop(), std::move(doors),
      DescriptorWatch::Handlers{.on_scarce = [tell](const DescriptorUse& use) { tell(true, use); },
                                .on_enough = [tell](const DescriptorUse& use) { tell(false, use); }});
  return {};
}

PeerLinks::~PeerLinks() {
  loop_.loop().cancel(publish_timer_);
  for (const auto& [host, timer] : redials_) loop_.loop().cancel(timer);
}

void PeerLinks::set_peers(const std::vector<PeerAddress>& peers) {
  peers_.clear();
  for (const PeerAddress& peer : peers) peers_[peer.host] = peer;
  std::erase_if(dialled_, [this](const auto& one) {
    const auto now = peers_.find(one.first);
    return now == peers_.end() || now->second != one.second.peer;
  });
  publish();
}

void PeerLinks::publish() {
  loop_.loop().cancel(std::exchange(publish_timer_, 0));
  AllowTable table;
  for (const auto& [host, peer] : peers_) {
    const auto key = CurvePublicKey::parse(peer.public_key);
    if (key.ok()) table.users[*key] = user_of(host);
  }
  if (zap_->replace(std::move(table)).ok()) return;
  publish_timer_ = loop_.loop().at(loop_.loop().now() + kPublishAgain, [this] {
    publish_timer_ = 0;
    publish();
  });
}

void PeerLinks::dial(HostId host) {
  const auto known = dialled_.find(host);
  if (known == dialled_.end()) {
    const Status opened = redials_.contains(host) ? Status() : open_client(host);
    if (opened.ok()) return;
    log_warn("the ", options_.kind, " of host ", host.value(), " cannot be dialled: ", opened.error().message);
    if (peers_.contains(host)) dial_again(host);
    return;
  }
  if (!known->second.client->connected()) return;
  loop_.loop().defer([this, host] { handlers_.on_up(host); });
}

void PeerLinks::dial_again(HostId host) {
  redials_[host] = loop_.loop().at(loop_.loop().now() + kDialAgain, [this, host] {
    redials_.erase(host);
    if (!peers_.contains(host) || dialled_.contains(host)) return;
    if (!open_client(host).ok()) dial_again(host);
  });
}

Status PeerLinks::open_client(HostId host) {
  const auto peer = peers_.find(host);
  if (peer == peers_.end()) return Error{ErrorCode::kNotFound, "it is in no table"};
  ClientOptions client;
  client.address = peer->second.address;
  client.port = peer->second.port;
  MONARCH_ASSIGN(client.server_key, CurvePublicKey::parse(peer->second.public_key));
  client.link = options_.link;
  ReconnectingClient::Handlers handlers;
  handlers.on_message = [this, host](std::vector<ZmqFrame>&& frames) { hear(host, PeerVia::kOurs, std::move(frames)); };
  handlers.on_connected = [this, host] { handlers_.on_up(host); };
  handlers.on_disconnected = [this, host] { handlers_.on_down(host); };
  handlers.on_refused = [](const Error&) {};  // its table comes later than ours; it is dialled again
  MONARCH_ASSIGN(auto opened, ReconnectingClient::start(context_, loop_, client, keys_, options_.seed + host.value(),
                                                        std::move(handlers)));
  dialled_[host] = {.peer = peer->second, .client = std::move(opened)};
  return {};
}

// The frame that a message begins with. kBusy: too much waits.
Result<ZmqFrame> PeerLinks::counted_header(HostId host, PeerVia via, const FrameHeader& header,
                                           const std::vector<ZmqFrame>& frames) {
  QueuedBytes& queued = queued_[{host, via}];
  if (!queued) queued = std::make_shared<std::atomic<std::uint64_t>>(0);
  const std::string encoded = encode_header(header);
  std::uint64_t bytes = encoded.size();
  for (const ZmqFrame& frame : frames) bytes += frame.size();
  const std::uint64_t waiting = queued->load();
  if (waiting > 0 && waiting + bytes > options_.queue_bytes) {
    return Error{ErrorCode::kBusy, text(waiting, " bytes wait to be sent to host ", host.value())};
  }
  const auto message = std::make_shared<const QueuedMessage>(encoded, queued, bytes);
  return ZmqFrame::hold(message->header(), message);
}

Status PeerLinks::send(HostId host, PeerVia via, FrameHeader header, std::vector<ZmqFrame> frames) {
  header.job = options_.job;
  header.seq = ++sent_;
  MONARCH_ASSIGN(ZmqFrame first, counted_header(host, via, header, frames));
  frames.insert(frames.begin(), std::move(first));
  if (via == PeerVia::kOurs) {
    const auto found = dialled_.find(host);
    if (found == dialled_.end()) return Error{ErrorCode::kGone, text("host ", host.value(), " was not dialled")};
    return found->second.client->send(frames);
  }
  const std::string user = user_of(host);
  const auto link = links_.link_of(user);
  if (!link) return Error{ErrorCode::kGone, text("host ", host.value(), " has not dialled")};
  Status sent = server_->send(*link, frames);
  if (!sent.ok() && sent.error().code == ErrorCode::kGone) links_.forget(user, *link);
  return sent;
}

// Who was let in once and is no peer any more is not heard.
void PeerLinks::on_inbound(InboundMessage&& message) {
  const std::optional<HostId> host = host_of(message.user_id);
  if (!host || !peers_.contains(*host)) return;
  if (links_.bind(message.link, message.user_id, message.user_id) == LinkTable::Bound::kStale) return;
  hear(*host, PeerVia::kTheirs, std::move(message.frames));
}

void PeerLinks::hear(HostId from, PeerVia via, std::vector<ZmqFrame>&& frames) {
  const Status passed = pass_on(from, via, std::move(frames));
  if (passed.ok() || std::exchange(told_malformed_, true)) return;
  log_warn("the ", options_.kind, " of host ", from.value(), " said something that is nothing (",
           passed.error().message, "); more of it is passed over");
}

Status PeerLinks::pass_on(HostId from, PeerVia via, std::vector<ZmqFrame>&& frames) {
  if (frames.size() < 2) return Error{ErrorCode::kInvalid, text(frames.size(), " parts")};
  MONARCH_ASSIGN(const FrameHeader header, decode_header(frames.front().bytes()));
  if (header.job != options_.job) return Error{ErrorCode::kInvalid, "of another job"};
  frames.erase(frames.begin());
  return handlers_.on_message(from, via, header, std::move(frames));
}

// The User-Id of a host's process.
std::string PeerLinks::user_of(HostId host) const { return text(options_.kind, '-', host.value()); }

std::optional<HostId> PeerLinks::host_of(std::string_view user_id) const {
  const std::string prefix = options_.kind + '-';
  if (!user_id.starts_with(prefix)) return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = user_id.data() + user_id.size();
  const auto parsed = std::from_chars(user_id.data() + prefix.size(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return HostId(number);
}

}  // namespace monarch
