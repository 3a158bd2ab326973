// What a fully static worker needs of libzmq: a port with CURVE that fails closed, and a message there and back. Also
// that the executable is one static file and stays small, so that a host has nothing to provide, and that what it was
// linked without says so when it is called.

#include <elf.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
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

#ifndef MONARCH_SANITIZED
extern "C" void pgm_send();  // of absent_transports.c
#endif

namespace monarch {
namespace {

#ifdef MONARCH_SANITIZED
constexpr bool kMeasured = false;  // a sanitizer's memory says nothing about ours
#else
constexpr bool kMeasured = true;
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

#ifndef MONARCH_SANITIZED
// AT_BASE is where the kernel put a loader; a static executable asked for none.
void expect_static() {
  if (::getauxval(AT_BASE) != 0) fail("the executable was started by a dynamic loader");
}

// Before the first thread: it forks.
void expect_absent_transport_to_name_itself() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) fail("pipe2");
  const pid_t child = ::fork();
  if (child < 0) fail("fork");
  if (child == 0) {
    if (::dup2(ends[1], STDERR_FILENO) < 0) ::_exit(1);
    pgm_send();
    ::_exit(0);
  }
  (void)::close(ends[1]);  // the child has its own
  std::string said;
  std::array<char, 256> buffer{};
  for (ssize_t count = 0; (count = ::read(ends[0], buffer.data(), buffer.size())) > 0;) {
    said.append(buffer.data(), static_cast<std::size_t>(count));
  }
  (void)::close(ends[0]);  // read to its end
  int status = 0;
  if (::waitpid(child, &status, 0) != child) fail("waitpid");
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT) fail("an absent transport did not abort");
  if (said.find("libzmq called pgm_send") == std::string::npos) fail("an absent transport said `" + said + "`");
}
#endif

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
  if (kMeasured && resident >= kResidentKilobytes) fail("resident: " + std::to_string(resident) + " kB");
}

}  // namespace
}  // namespace monarch

int main() {
#ifndef MONARCH_SANITIZED
  monarch::expect_static();
  monarch::expect_absent_transport_to_name_itself();
#endif
  monarch::round_trip();
  return 0;
}
