#include "tests/transport/zmq/zmq_lab.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "transport/base/clock.h"

namespace monarch {

namespace {

constexpr Duration kDeadline = Duration::seconds(10);
// Some of libzmq's changes raise no event (a ROUTER does not report a peer's death): the condition is looked at again.
constexpr Duration kLookAgain = Duration::milliseconds(2);

template <class T>
T expect(Result<T> result) {
  EXPECT_TRUE(result.ok()) << (result.ok() ? "" : result.error().message);
  return std::move(result).value();
}

}  // namespace

CurveKeyPair key_pair() { return expect(make_curve_key_pair()); }

std::vector<ZmqFrame> one_frame(std::string_view bytes) {
  std::vector<ZmqFrame> frames;
  frames.push_back(ZmqFrame::copy(bytes));
  return frames;
}

bool closed_by_peer(int fd) {
  std::array<char, 256> buffer{};
  for (;;) {
    const ssize_t count = ::recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count == 0) return true;
    if (count < 0) return errno == ECONNRESET;
  }
}

RecordedClient::RecordedClient(ZmqContext& context, ZmqLoop& loop, const ClientOptions& options,
                               const CurveKeyPair& keys)
    : link(expect(ClientLink::connect(context, options, keys))), loop_(loop) {
  monitor_watch_ = loop.watch(link->monitor_socket(), [this] {
    const auto event = link->next_event();
    if (event) events.push_back(*event);
    return event.has_value();
  });
  message_watch_ = loop.watch(link->socket(), [this] {
    const auto frames = link->receive();
    if (!frames) return false;
    for (const ZmqFrame& frame : *frames) messages.emplace_back(frame.bytes());
    return true;
  });
}

RecordedClient::~RecordedClient() {
  loop_.forget(monitor_watch_);
  loop_.forget(message_watch_);
}

bool RecordedClient::saw(ClientEvent event) const {
  return std::find(events.begin(), events.end(), event) != events.end();
}

Status RecordedClient::send(std::string_view bytes) {
  auto frames = one_frame(bytes);
  return link->send(frames);
}

ZmqLab::ZmqLab(const Options& wanted)
    : options(wanted),
      server_keys(key_pair()),
      context(expect(ZmqContext::create({.io_threads = 2}))),
      events(expect(EventLoop::create())),
      loop(std::make_unique<ZmqLoop>(*events)) {
  if (options.with_handler) {
    zap = expect(ZapHandler::start(*context, {.unknown_key_wait = options.unknown_key_wait}));
  }
}

bool ZmqLab::until(const std::function<bool()>& condition) {
  const Instant deadline = boot_now() + kDeadline;
  while (!condition()) {
    if (boot_now() >= deadline) return false;
    loop->turn(boot_now() + kLookAgain);
  }
  return true;
}

void ZmqLab::bind(std::uint16_t port) {
  server = expect(
      ServerLink::bind(*context, {.ports = {port, port}, .link = options.server, .peer = options.peer}, server_keys));
  server->attach(*loop, [this](InboundMessage&& message) { inbound.push_back(std::move(message)); });
}

bool ZmqLab::bind_again(std::uint16_t port) {
  return until([&] {
    auto again = ServerLink::bind(*context, {.ports = {port, port}}, server_keys);
    if (!again.ok()) return false;
    server = std::move(again).value();
    server->attach(*loop, [this](InboundMessage&& message) { inbound.push_back(std::move(message)); });
    return true;
  });
}

void ZmqLab::allow(std::vector<std::pair<CurvePublicKey, std::string>> users) {
  AllowTable table;
  for (auto& [key, user_id] : users) table.users.emplace(key, std::move(user_id));
  ASSERT_TRUE(zap->replace(std::move(table)).ok());
}

ClientOptions ZmqLab::client_options() const {
  ClientOptions client;
  client.port = server->port();
  client.server_key = server_keys.public_key;
  return client;
}

std::unique_ptr<RecordedClient> ZmqLab::client(const CurveKeyPair& keys) {
  return std::make_unique<RecordedClient>(*context, *loop, client_options(), keys);
}

UniqueFd ZmqLab::raw_connection() const {
  UniqueFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(server->port());
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  return fd;
}

const InboundMessage* ZmqLab::from(std::string_view user_id) const {
  const auto found = std::find_if(inbound.begin(), inbound.end(), [&](const auto& m) { return m.user_id == user_id; });
  return found == inbound.end() ? nullptr : &*found;
}

// ---- A way that breaks.

BrokenWay::BrokenWay(ZmqLab& lab, std::uint64_t most)
    : lab_(lab), most_(most), listener_(::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const raw = reinterpret_cast<sockaddr*>(&address);  // as bind(2) has it
  EXPECT_EQ(::bind(listener_.get(), raw, size), 0);
  EXPECT_EQ(::listen(listener_.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener_.get(), raw, &size), 0);
  port_ = ntohs(address.sin_port);
  server_ = lab.raw_connection();
  pass();
}

BrokenWay::~BrokenWay() { lab_.events->cancel(timer_); }

void BrokenWay::pass() {
  if (!client_.valid()) client_ = UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  std::array<char, 65'536> piece{};
  while (client_.valid() && gone_ < most_) {
    const std::size_t room = std::min<std::uint64_t>(piece.size(), most_ - gone_);
    const ssize_t got = ::recv(client_.get(), piece.data(), room, MSG_DONTWAIT);
    if (got <= 0) break;
    const ssize_t sent = ::send(server_.get(), piece.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
    gone_ += sent > 0 ? static_cast<std::uint64_t>(sent) : 0;
    if (sent != got) break;
  }
  for (ssize_t got = 1; client_.valid() && got > 0;) {
    got = ::recv(server_.get(), piece.data(), piece.size(), MSG_DONTWAIT);
    if (got > 0) (void)!::send(client_.get(), piece.data(), static_cast<std::size_t>(got), MSG_NOSIGNAL);
    if (got == 0) ::shutdown(client_.get(), SHUT_RDWR);
  }
  timer_ = lab_.events->at(boot_now() + Duration::milliseconds(1), [this] { pass(); });
}

}  // namespace monarch
