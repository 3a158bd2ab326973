#include "transport/zmq/reconnecting_client.h"

#include <utility>

#include "transport/base/text.h"

namespace monarch {

Result<std::unique_ptr<ReconnectingClient>> ReconnectingClient::start(ZmqContext& context, ZmqLoop& loop,
                                                                      const ClientOptions& options,
                                                                      const CurveKeyPair& keys, std::uint64_t seed,
                                                                      Handlers handlers) {
  std::unique_ptr<ReconnectingClient> client(
      new ReconnectingClient(context, loop, options, keys, seed, std::move(handlers)));
  MONARCH_TRY(client->open());
  return client;
}

ReconnectingClient::ReconnectingClient(ZmqContext& context, ZmqLoop& loop, const ClientOptions& options,
                                       const CurveKeyPair& keys, std::uint64_t seed, Handlers handlers)
    : context_(context), loop_(loop), options_(options), keys_(keys), handlers_(std::move(handlers)), backoff_(seed) {}

ReconnectingClient::~ReconnectingClient() {
  loop_.loop().cancel(retry_timer_);
  close();
}

Status ReconnectingClient::open() {
  MONARCH_ASSIGN(link_, ClientLink::connect(context_, options_, keys_));
  link_->watch_unread(loop_.unread());
  // Events first: the connection is announced before its first message. Until there is one, its owner waits for them.
  monitor_watch_ = loop_.watch(link_->monitor_socket(), [this] { return take_event(); });
  message_watch_ = loop_.watch(link_->socket(), [this] { return take_message(); });
  return {};
}

void ReconnectingClient::close() {
  if (link_ == nullptr) return;
  loop_.forget(monitor_watch_);
  loop_.forget(message_watch_);
  link_.reset();
}

void ReconnectingClient::retry() {
  close();
  retry_timer_ = loop_.loop().at(loop_.loop().now() + backoff_.next(), [this] {
    if (const Status opened = open(); !opened) refused(opened.error());
  });
}

void ReconnectingClient::refused(const Error& why) {
  retry();
  handlers_.on_refused(why);
}

bool ReconnectingClient::take_message() {
  // The event is older than the message, but its socket may have been asked before it came.
  while (link_ != nullptr && !link_->connected() && take_event()) {
  }
  if (link_ == nullptr) return false;
  auto frames = link_->receive();
  if (!frames) return false;
  handlers_.on_message(std::move(*frames));
  return true;
}

bool ReconnectingClient::take_event() {
  const auto event = link_->next_event();
  if (!event) return false;
  switch (*event) {
    case ClientEvent::kConnected:
      backoff_.reset();
      loop_.set_pace(monitor_watch_, ZmqLoop::Pace::kSeldom);
      handlers_.on_connected();
      return true;
    case ClientEvent::kDisconnected:
      while (auto frames = link_->receive()) handlers_.on_message(std::move(*frames));
      retry();
      handlers_.on_disconnected();
      return false;
    case ClientEvent::kUnreachable: retry(); return false;
    case ClientEvent::kRefused:
      refused(Error{ErrorCode::kGone, text(options_.address, ":", options_.port, " does not know our key")});
      return false;
    case ClientEvent::kHandshakeFailed:
      refused(
          Error{ErrorCode::kTimeout, text(options_.address, ":", options_.port,
                                          " did not complete the handshake: it is stuck, or not the server whose key "
                                          "we have")});
      return false;
  }
  return false;
}

Status ReconnectingClient::send(std::vector<ZmqFrame>& frames) {
  if (link_ == nullptr) return Error{ErrorCode::kGone, "sending: not connected"};
  return link_->send(frames);
}

void ReconnectingClient::when_writable(std::function<void()> handler) {
  if (link_ != nullptr) loop_.when_writable(message_watch_, std::move(handler));
}

}  // namespace monarch
