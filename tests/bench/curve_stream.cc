// What the output of ranks is compared with: messages of one size over a CURVE link on loopback, from one thread to
// another, with nothing of ours on the way but the links. Prints `bytes seconds`.
//
// usage: curve-stream MEBIBYTES MESSAGE_KIBIBYTES

#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/zmq/client_link.h"
#include "transport/zmq/server_link.h"
#include "transport/zmq/zap.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {
namespace {

constexpr Duration kDeadline = Duration::seconds(120);

[[noreturn]] void fail(const std::string& why) {
  (void)std::fprintf(stderr, "curve-stream: %s\n", why.c_str());  // exiting either way
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result.ok()) fail(result.error().message);
  return std::move(result).value();
}

// Sends until the server has seen all; a full queue waits for room, as any streaming sender would.
void send_all(ClientLink& client, std::uint64_t messages, std::size_t size) {
  auto loop = must(EventLoop::create());
  ZmqLoop zmq_loop(*loop);
  std::uint64_t sent = 0;
  ZmqWatchId watch = 0;
  const std::function<void()> send_more = [&] {
    while (sent < messages) {
      std::vector<ZmqFrame> frames;
      frames.push_back(ZmqFrame::take(std::string(size, 'x')));
      if (!client.send(frames).ok()) return zmq_loop.when_writable(watch, send_more);
      ++sent;
    }
    loop->stop();
  };
  watch = zmq_loop.watch(client.socket(), [&] { return client.receive().has_value(); });
  const auto events = zmq_loop.watch(client.monitor_socket(), [&] {
    const auto event = client.next_event();
    if (event == ClientEvent::kConnected) send_more();
    return event.has_value();
  });
  (void)loop->at(boot_now() + kDeadline, [] { fail("not sent within the deadline"); });
  zmq_loop.run();
  zmq_loop.forget(watch);
  zmq_loop.forget(events);
}

int stream(std::uint64_t bytes, std::size_t size) {
  auto context = must(ZmqContext::create({.io_threads = 2}));
  auto zap = must(ZapHandler::start(*context));
  const auto server_keys = must(make_curve_key_pair());
  const auto client_keys = must(make_curve_key_pair());
  if (!zap->replace({.users = {{client_keys.public_key, "bench"}}, .denied = {}}).ok()) fail("publishing the key");
  LinkOptions link{.high_water_mark = limits::kBulkHighWaterMark, .message_bytes = size + 1024};
  auto server = must(ServerLink::bind(*context, {.link = link}, server_keys));
  link.io_thread = 1;
  ClientOptions options{.port = server->port(), .server_key = server_keys.public_key, .link = link};
  auto client = must(ClientLink::connect(*context, options, client_keys));

  auto loop = must(EventLoop::create());
  ZmqLoop zmq_loop(*loop);
  std::uint64_t received = 0;
  Instant first;
  server->attach(zmq_loop, [&](InboundMessage&& message) {
    if (received == 0) first = boot_now();
    received += message.frames[0].size();
    if (received >= bytes) loop->stop();
  });
  (void)loop->at(boot_now() + kDeadline, [] { fail("not received within the deadline"); });
  std::thread sender([&] { send_all(*client, bytes / size, size); });
  zmq_loop.run();
  const double seconds = (boot_now() - first).count_seconds();
  sender.join();
  std::printf("%llu %.6f\n", static_cast<unsigned long long>(received), seconds);
  client.reset();
  server.reset();
  zap.reset();
  return 0;
}

}  // namespace
}  // namespace monarch

int main(int argc, char** argv) {
  if (argc != 3) {
    (void)std::fprintf(stderr, "usage: curve-stream MEBIBYTES MESSAGE_KIBIBYTES\n");
    return 2;
  }
  const std::uint64_t bytes = std::strtoull(argv[1], nullptr, 10) << 20U;
  return monarch::stream(bytes, std::strtoull(argv[2], nullptr, 10) << 10U);
}
