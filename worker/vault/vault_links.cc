#include "worker/vault/vault_links.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <charconv>
#include <optional>
#include <utility>

#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/messages/vault.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"
#include "transport/wire/from_host.h"
#include "transport/wire/messages.h"
#include "transport/zmq/link_message.h"

namespace monarch::vault {

namespace {

constexpr Duration kPublishAgain = Duration::milliseconds(100);
constexpr std::size_t kOverhead = 64U << 10U;  // of a message beside a piece's bytes

LinkOptions bulk_options() {
  LinkOptions link;
  link.high_water_mark = limits::kBulkHighWaterMark;
  link.message_bytes = kVaultPieceBytes + kOverhead;
  return link;
}

// The User-Id of a host's vault.
std::string user_of(HostId host) { return text("vault-", host.value()); }

std::optional<HostId> host_of(std::string_view user_id) {
  constexpr std::string_view kPrefix = "vault-";
  if (!user_id.starts_with(kPrefix)) return std::nullopt;
  std::uint32_t number = 0;
  const char* const end = user_id.data() + user_id.size();
  const auto parsed = std::from_chars(user_id.data() + kPrefix.size(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end) return std::nullopt;
  return HostId(number);
}

Result<vault_event::Message> read_message(const FrameHeader& header, std::string_view payload) {
  vault_event::Message read;
  const auto take = [&](auto&& message) { read = std::forward<decltype(message)>(message); };
  MONARCH_TRY(route(header, payload, when<VaultOffer, decode_from_host<VaultOffer>>(take),
                    when<VaultKept, decode_from_host<VaultKept>>(take),
                    when<VaultAsk, decode_from_host<VaultAsk>>(take),
                    when<VaultPiece, decode_from_host<VaultPiece>>(take)));
  return read;
}

// WARNING: a port that a keeper reserves for a rank is bound and not listened at, and ZeroMQ, which sets SO_REUSEADDR,
// would be given it as well (socket(7)). Without that option a bind fails there; also where connections of an earlier
// listener have just ended.
bool nobody_has(std::uint16_t port) {
  const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in everywhere{};
  everywhere.sin_family = AF_INET;
  everywhere.sin_port = htons(port);
  everywhere.sin_addr.s_addr = htonl(INADDR_ANY);
  return socket.valid() && ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&everywhere), sizeof everywhere) == 0;
}

// Of a range the highest that is free: ports that a spec names are mostly its first. What an earlier vault has just
// left comes last.
Result<std::unique_ptr<ServerLink>> bind(ZmqContext& context, const VaultLinks::Options& options,
                                         const CurveKeyPair& keys) {
  ServerOptions server;
  server.address = options.address;
  server.link = bulk_options();
  server.ports = options.ports;
  if (options.ports.first == 0) return ServerLink::bind(context, server, keys);
  for (const bool untouched : {true, false}) {
    for (std::uint32_t below = options.ports.last + 1U; below > options.ports.first; --below) {
      const auto port = static_cast<std::uint16_t>(below - 1);
      if (untouched && !nobody_has(port)) continue;
      server.ports = {port, port};
      auto bound = ServerLink::bind(context, server, keys);
      if (bound.ok() || bound.error().code != ErrorCode::kBusy) return bound;
    }
  }
  return Error{ErrorCode::kBusy,
               text("every port of ", options.address, ":", options.ports.first, "-", options.ports.last, " is taken")};
}

}  // namespace

Result<std::unique_ptr<VaultLinks>> VaultLinks::open(ZmqContext& context, ZmqLoop& loop, const CurveKeyPair& keys,
                                                     const Options& options, Handlers handlers) {
  std::unique_ptr<VaultLinks> links(new VaultLinks(context, loop, keys, options, std::move(handlers)));
  VaultLinks* const self = links.get();
  MONARCH_ASSIGN(links->zap_, ZapHandler::start(context));
  MONARCH_TRY(zap_self_test(context, [self](AllowTable table) { return self->zap_->replace(std::move(table)); }));
  MONARCH_TRY(links->zap_->replace({}));
  MONARCH_ASSIGN(links->server_, bind(context, options, keys));
  links->server_->attach(loop, [self](InboundMessage&& message) { self->on_inbound(std::move(message)); });
  return links;
}

VaultLinks::~VaultLinks() { loop_.loop().cancel(publish_timer_); }

void VaultLinks::set_peers(const std::vector<VaultPeer>& peers) {
  peers_.clear();
  for (const VaultPeer& peer : peers) peers_[peer.host] = peer;
  std::erase_if(dialled_, [this](const auto& one) {
    const auto now = peers_.find(one.first);
    return now == peers_.end() || now->second != one.second.peer;
  });
  publish();
}

void VaultLinks::publish() {
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

void VaultLinks::dial(HostId host) {
  const auto known = dialled_.find(host);
  if (known == dialled_.end()) {
    if (const Status opened = open_client(host); !opened.ok()) {
      log_warn("the vault of host ", host.value(), " cannot be dialled: ", opened.error().message);
    }
    return;
  }
  if (!known->second.client->connected()) return;
  loop_.loop().defer([this, host] { handlers_.on_up(host); });
}

Status VaultLinks::open_client(HostId host) {
  const auto peer = peers_.find(host);
  if (peer == peers_.end()) return Error{ErrorCode::kNotFound, "it is in no table"};
  ClientOptions client;
  client.address = peer->second.address;
  client.port = peer->second.port;
  MONARCH_ASSIGN(client.server_key, CurvePublicKey::parse(peer->second.public_key));
  client.link = bulk_options();
  ReconnectingClient::Handlers handlers;
  handlers.on_message = [this, host](std::vector<ZmqFrame>&& frames) { hear(host, VaultVia::kOurs, frames); };
  handlers.on_connected = [this, host] { handlers_.on_up(host); };
  handlers.on_disconnected = [] {};
  handlers.on_refused = [](const Error&) {};  // its table comes later than ours; it is dialled again
  MONARCH_ASSIGN(auto opened, ReconnectingClient::start(context_, loop_, client, keys_, options_.seed + host.value(),
                                                        std::move(handlers)));
  dialled_[host] = {.peer = peer->second, .client = std::move(opened)};
  return {};
}

bool VaultLinks::send(HostId host, VaultVia via, const vault_event::Message& message, std::string bytes) {
  FrameHeader header;
  header.job = options_.job;
  header.seq = ++sent_;
  std::string payload;
  std::visit(
      [&](const auto& one) {
        header.type = number_of<std::decay_t<decltype(one)>>();
        payload = encode_payload(one);
      },
      message);
  std::vector<ZmqFrame> frames = link_message(header, std::move(payload));
  if (!bytes.empty()) frames.push_back(ZmqFrame::take(std::move(bytes)));
  if (via == VaultVia::kOurs) {
    const auto found = dialled_.find(host);
    return found != dialled_.end() && found->second.client->send(frames).ok();
  }
  const std::string user = user_of(host);
  const auto link = links_.link_of(user);
  if (!link) return false;
  const Status sent = server_->send(*link, frames);
  if (!sent.ok() && sent.error().code == ErrorCode::kGone) links_.forget(user, *link);
  return sent.ok();
}

// Who was let in once and is no peer any more is not heard.
void VaultLinks::on_inbound(InboundMessage&& message) {
  const std::optional<HostId> host = host_of(message.user_id);
  if (!host || !peers_.contains(*host)) return;
  if (links_.bind(message.link, message.user_id, message.user_id) == LinkTable::Bound::kStale) return;
  hear(*host, VaultVia::kTheirs, message.frames);
}

void VaultLinks::hear(HostId from, VaultVia via, const std::vector<ZmqFrame>& frames) {
  const auto malformed = [&](std::string_view why) {
    if (std::exchange(told_malformed_, true)) return;
    log_warn("the vault of host ", from.value(), " said something that is nothing (", why,
             "); more of it is passed over");
  };
  if (frames.size() != 2 && frames.size() != 3) return malformed(text(frames.size(), " parts"));
  const auto header = decode_header(frames[0].bytes());
  if (!header.ok()) return malformed(header.error().message);
  if (header->job != options_.job) return malformed("of another job");
  auto message = read_message(*header, frames[1].bytes());
  if (!message.ok()) return malformed(message.error().message);
  const std::string_view bytes = frames.size() == 3 ? frames[2].bytes() : std::string_view();
  const auto* piece = std::get_if<VaultPiece>(&*message);
  const std::size_t said = piece != nullptr && piece->refused.empty() ? piece->length : 0;
  if (bytes.size() != said) return malformed(text(bytes.size(), " bytes instead of ", said));
  handlers_.on_message(from, via, std::move(*message), bytes);
}

}  // namespace monarch::vault
