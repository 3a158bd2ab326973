// What a fully static worker needs of libzmq: a port with CURVE that fails closed, and a message there and back. Also
// that the executable is one static file and stays small, so that a host has nothing to provide.

#include <elf.h>
#include <link.h>
#include <sys/auxv.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/zmq/client_link.h"
#include "transport/zmq/server_link.h"
#include "transport/zmq/zap.h"
#include "transport/zmq/zmq_loop.h"

namespace monarch {
namespace {

#ifdef MONARCH_SANITIZED
constexpr bool kStatic = false;  // a sanitizer's memory and loader say nothing about ours
#else
constexpr bool kStatic = true;
#endif
constexpr long kResidentKilobytes = 8L * 1024;
constexpr Duration kDeadline = Duration::seconds(10);

[[noreturn]] void fail(const std::string& why) {
  (void)std::fprintf(stderr, "static-round-trip: %s\n", why.c_str());  // exiting either way
  std::exit(1);
}

template <class T>
T must(Result<T> result) {
  if (!result.ok()) fail(result.error().message);
  return std::move(result).value();
}

void must(const Status& status) {
  if (!status.ok()) fail(status.error().message);
}

long resident_kilobytes() {
  std::ifstream status("/proc/self/status");
  std::string word;
  while (status >> word) {
    long kilobytes = 0;
    if (word == "VmRSS:" && status >> kilobytes) return kilobytes;
  }
  fail("/proc/self/status has no VmRSS");
}

// AT_BASE is where the kernel put a loader; a static executable asked for none.
void expect_static() {
  if (::getauxval(AT_BASE) != 0) fail("the executable was started by a dynamic loader");
}

void round_trip() {
  const auto context = must(ZmqContext::create({.io_threads = 2}));
  const auto zap = must(ZapHandler::start(*context));
  must(zap_self_test(*context, [&](AllowTable table) { return zap->replace(std::move(table)); }));
  const CurveKeyPair server_keys = must(make_curve_key_pair());
  const CurveKeyPair keys = must(make_curve_key_pair());
  must(zap->replace({.users = {{keys.public_key, "worker/h1"}}, .denied = {}}));

  const auto events = must(EventLoop::create());
  ZmqLoop loop(*events);
  const auto server = must(ServerLink::bind(*context, {.link = {.io_thread = 1}}, server_keys));
  server->attach(loop, [&](InboundMessage&& message) {
    if (message.user_id != "worker/h1") fail("the sender is called " + message.user_id);
    must(server->send(message.link, message.frames));
  });
  ClientOptions options;
  options.port = server->port();
  options.server_key = server_keys.public_key;
  const auto client = must(ClientLink::connect(*context, options, keys));
  const Instant deadline = boot_now() + kDeadline;
  std::optional<std::string> answer;
  const auto monitor_watch = loop.watch(client->monitor_socket(), [&] {
    const auto event = client->next_event();
    if (event == ClientEvent::kConnected) {
      std::vector<ZmqFrame> frames;
      frames.push_back(ZmqFrame::copy("there and back"));
      must(client->send(frames));
    }
    return event.has_value();
  });
  const auto message_watch = loop.watch(client->socket(), [&] {
    const auto frames = client->receive();
    if (frames) answer = std::string(frames->at(0).bytes());
    return frames.has_value();
  });
  while (!answer && boot_now() < deadline) loop.turn(deadline);
  loop.forget(monitor_watch);
  loop.forget(message_watch);
  if (answer != "there and back") fail("no answer within " + to_text(kDeadline));
  const long resident = resident_kilobytes();
  (void)std::printf("VmRSS %ld kB\n", resident);  // for whoever reads the test's log
  if (kStatic && resident >= kResidentKilobytes) fail("resident: " + std::to_string(resident) + " kB");
}

}  // namespace
}  // namespace monarch

int main() {
  if (monarch::kStatic) monarch::expect_static();
  monarch::round_trip();
  return 0;
}
