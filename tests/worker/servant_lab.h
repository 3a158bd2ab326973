#pragma once

// ServantLab: processes of two hosts that serve beside a daemon, each on a thread of its own in this process, with real
// sockets between them; who plays their daemons is the test.

#include <gtest/gtest.h>
#include <poll.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "transport/base/unique_fd.h"
#include "transport/loop/signals.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_message.h"
#include "transport/wire/seqpacket_socket.h"
#include "transport/zmq/curve.h"

namespace monarch {

inline bool becomes_readable(int fd) {
  constexpr int kPatienceMilliseconds = 20'000;
  pollfd waiting{fd, POLLIN, 0};
  return ::poll(&waiting, 1, kPatienceMilliseconds) == 1;
}

// `door`: of the daemon, in the servant's folder.
template <class Servant, class SetupMessage, class Report>
class ServantLab : public ::testing::Test {
 protected:
  struct Host {
    SetupMessage setup;
    std::unique_ptr<SignalFd> signals;
    std::unique_ptr<Servant> servant;
    std::thread thread;
    UniqueFd daemon;
    Report report;
  };

  explicit ServantLab(std::string daemon_door) : daemon_door_(std::move(daemon_door)) {}

  // What only this kind has in its setup.
  virtual void complete(SetupMessage& setup) = 0;

  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "servant-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    for (std::uint32_t i = 0; i < hosts_.size(); ++i) start(i);
  }

  void TearDown() override {
    (void)::kill(::getpid(), SIGTERM);  // blocked in each thread: what is pending ends both loops
    for (Host& host : hosts_) {
      if (host.thread.joinable()) host.thread.join();
    }
    while (hosts_[0].signals && hosts_[0].signals->next()) continue;
    std::filesystem::remove_all(root_);
  }

  void start(std::uint32_t i) {
    auto keys = make_curve_key_pair();
    ASSERT_TRUE(keys.ok());
    Host& host = hosts_[i];
    auto signals = SignalFd::create({SIGTERM, own_signal(i)});
    ASSERT_TRUE(signals.ok());
    host.signals = std::move(*signals);
    host.setup.host_name = "h" + std::to_string(i);
    host.setup.host = HostId(i);
    host.setup.address = "127.0.0.1";
    host.setup.public_key = keys->public_key.to_text();
    host.setup.secret_key = std::string(keys->secret_key.bytes());
    host.setup.directory = root_ + "/" + std::to_string(i);
    host.setup.keeper_pid = ::getpid();
    complete(host.setup);
    std::filesystem::create_directory(host.setup.directory);
    auto servant = Servant::start(host.setup, *host.signals);
    ASSERT_TRUE(servant.ok()) << servant.error().message;
    host.servant = std::move(*servant);
    host.thread = std::thread([running = host.servant.get()] { running->run(); });
    connect_daemon(host);
  }

  // As if it had been killed; start() begins the next one.
  void stop(std::uint32_t i) {
    Host& host = hosts_[i];
    (void)::kill(::getpid(), own_signal(i));
    host.thread.join();
    while (host.signals->next()) continue;
    host.daemon.reset();
    host.servant.reset();
  }

  void connect_daemon(Host& host) {
    auto socket = connect_seqpacket(host.setup.directory + "/" + daemon_door_);
    ASSERT_TRUE(socket.ok()) << socket.error().message;
    host.daemon = std::move(*socket);
    tell(host, host.setup);
    hear_report(host);
  }

  template <class Message>
  static void tell(Host& host, const Message& message) {
    const auto packed = pack_message(frame_of(message), {}, limits::kSeqpacketInlineBytes);
    ASSERT_TRUE(packed.ok());
    ASSERT_EQ(send_message(host.daemon.get(), *packed), SendOutcome::kSent);
  }

  static void hear_report(Host& host) {
    ASSERT_TRUE(becomes_readable(host.daemon.get()));
    auto received = receive_message(host.daemon.get(), limits::kSeqpacketPayloadBytes);
    ASSERT_TRUE(received.ok()) << received.error().message;
    ASSERT_TRUE(received->has_value());
    auto report = decode_payload<Report>((*received)->frame.payload);
    ASSERT_TRUE(report.ok());
    host.report = *report;
  }

  // Ends the loop of one host.
  static int own_signal(std::uint32_t i) { return i == 0 ? SIGUSR1 : SIGUSR2; }

  std::string daemon_door_;
  std::string root_;
  std::array<Host, 2> hosts_;
};

}  // namespace monarch
