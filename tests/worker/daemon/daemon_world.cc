#include "tests/worker/daemon/daemon_world.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/sealed_memory.h"
#include "transport/wire/seqpacket_socket.h"
#include "transport/zmq/link_message.h"
#include "worker/daemon/daemon_setup.h"

namespace monarch::daemon {
namespace {

namespace fs = std::filesystem;

constexpr Duration kDeadline = Duration::seconds(20);
constexpr Duration kTurn = Duration::milliseconds(50);

std::function<void(InboundMessage&&)> into(std::vector<SupervisorHeard>& heard) {
  return [&heard](InboundMessage&& message) {
    ASSERT_EQ(message.frames.size(), 2U);
    EXPECT_EQ(message.user_id, "worker");
    const auto header = decode_header(message.frames[0].bytes());
    ASSERT_TRUE(header.ok());
    heard.push_back({message.link, *header, std::string(message.frames[1].bytes())});
  };
}

}  // namespace

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

DaemonWorld::DaemonWorld() {
  std::string path = (fs::temp_directory_path() / "monarch-daemon-XXXXXX").string();
  directory = ::mkdtemp(path.data());
  for (std::size_t i = 0; i < job.bytes.size(); ++i) {
    job.bytes[i] = static_cast<std::uint8_t>(i ^ static_cast<std::size_t>(::getpid()));
  }
  loop = EventLoop::create().value();
  zmq_loop.emplace(*loop);
  context_ = ZmqContext::create({.io_threads = 2}).value();
  zap_ = ZapHandler::start(*context_).value();
  keys_.emplace(make_curve_key_pair().value());
  ServerOptions options;
  control_ = ServerLink::bind(*context_, options, *keys_).value();
  options.link.io_thread = 1;
  bulk_ = ServerLink::bind(*context_, options, *keys_).value();
  control_->attach(*zmq_loop, into(to_supervisor));
  bulk_->attach(*zmq_loop, into(output));
}

DaemonWorld::~DaemonWorld() {
  if (daemon > 0) {
    (void)::kill(daemon, SIGKILL);
    (void)::waitpid(daemon, nullptr, 0);
  }
  keeper.reset();
  control_.reset();
  bulk_.reset();
  zap_.reset();
  context_.reset();
  fs::remove_all(directory);
}

DaemonStash DaemonWorld::first_stash() const {
  DaemonStash stash;
  stash.job = job;
  stash.bootstrap.job_id = "test-0000";
  stash.bootstrap.host = 7;
  stash.bootstrap.host_name = "v8";
  stash.bootstrap.term = Term(3);
  stash.bootstrap.server_public_key = keys_->public_key.to_text();
  stash.bootstrap.control_endpoint = text("tcp://127.0.0.1:", control_->port());
  stash.bootstrap.bulk_endpoint = text("tcp://127.0.0.1:", bulk_->port());
  stash.bootstrap.state_directory = directory + "/state";
  stash.bootstrap.log_directory = directory + "/logs";
  stash.bootstrap.heartbeat = Duration::milliseconds(200);
  return stash;
}

void DaemonWorld::start(const DaemonStash& stash, KeeperHello hello) {
  auto pair = make_channel_pair();
  ASSERT_TRUE(pair.ok());
  std::array<int, 2> answer{};
  ASSERT_EQ(::pipe2(answer.data(), O_CLOEXEC), 0);
  const std::string program = DAEMON_PROCESS;
  // Before the fork: the child of a process with threads may only make system calls.
  const char* const argv[] = {program.c_str(), nullptr};
  daemon = ::fork();
  if (daemon == 0) {
    if (::dup2(answer[1], STDOUT_FILENO) < 0 || ::dup2(pair->second.get(), 3) < 0) ::_exit(126);
    (void)::fcntl(3, F_SETFD, 0);
    ::execv(program.c_str(), const_cast<char* const*>(argv));
    ::_exit(127);
  }
  ASSERT_GT(daemon, 0);
  (void)::close(answer[1]);
  answer_ = UniqueFd(answer[0]);
  to_keeper.clear();
  ChannelHandlers handlers;
  handlers.on_frame = [this](Frame frame, std::vector<UniqueFd>) { to_keeper.push_back(std::move(frame)); };
  handlers.on_closed = [](const Error&) {};
  keeper = SeqpacketChannel::create(*loop, std::move(pair->first), std::move(handlers)).value();
  hello.has_stash = true;
  hello.keeper_pid = ::getpid();
  hello.incarnation = 99;
  std::vector<UniqueFd> memory;
  memory.push_back(make_sealed_memory("stash", encode_stash(stash)).value());
  keeper_says(hello, {}, std::move(memory));
}

BootstrapReply DaemonWorld::admit() {
  std::string bytes;
  std::array<char, 4096> buffer{};
  const Instant deadline = boot_now() + kDeadline;
  while (boot_now() < deadline) {
    pollfd ready{answer_.get(), POLLIN, 0};
    if (::poll(&ready, 1, EventLoop::wait_milliseconds(boot_now(), deadline)) <= 0) break;
    const ssize_t n = ::read(answer_.get(), buffer.data(), buffer.size());
    if (n <= 0) break;
    bytes.append(buffer.data(), static_cast<std::size_t>(n));
  }
  const auto frame = decode_frame(bytes, limits::kControlPayloadBytes);
  EXPECT_TRUE(frame.ok()) << bytes.size() << " bytes";
  if (!frame.ok()) return {};
  auto reply = decode_payload<BootstrapReply>(frame->payload);
  EXPECT_TRUE(reply.ok());
  if (const auto key = CurvePublicKey::parse(reply->public_key); key.ok()) {
    AllowTable table;
    table.users[*key] = "worker";
    EXPECT_TRUE(zap_->replace(std::move(table)).ok());
  }
  return std::move(reply).value();
}

bool DaemonWorld::until(const std::function<bool()>& condition) {
  const Instant deadline = boot_now() + kDeadline;
  // Asked no more once it was true: a condition may reap.
  for (;;) {
    if (condition()) return true;
    if (boot_now() >= deadline) return false;
    zmq_loop->turn(boot_now() + kTurn);
  }
}

std::optional<int> DaemonWorld::wait_for_end() {
  int status = 0;
  if (!until([&] { return ::waitpid(daemon, &status, WNOHANG) == daemon; })) return std::nullopt;
  daemon = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

void DaemonWorld::kill_daemon(int signal) { ASSERT_EQ(::kill(daemon, signal), 0); }

void DaemonWorld::keeper_says(std::uint16_t type, std::string payload, FrameHeader header, std::vector<UniqueFd> fds) {
  header.type = type;
  header.job = job;
  ASSERT_TRUE(keeper->send(Frame{header, std::move(payload)}, std::move(fds)).ok());
}

void DaemonWorld::supervisor_says_payload(std::uint16_t type, std::string payload, Term term) {
  ASSERT_FALSE(to_supervisor.empty());
  FrameHeader header;
  header.type = type;
  header.job = job;
  header.term = term;
  std::vector<ZmqFrame> frames = link_message(header, std::move(payload));
  ASSERT_TRUE(control_->send(to_supervisor.back().link, frames).ok());
}

std::optional<Beat> DaemonWorld::last_beat() const { return supervisor_heard<Beat>(); }

}  // namespace monarch::daemon
