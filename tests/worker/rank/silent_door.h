#pragma once

// SilentDoor: the door of a post that welcomes who comes, and says nothing more but what the test has it say: as one
// that is stopped or stuck.
//
// Thread: the test's; who comes is welcomed by a thread of its own.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <condition_variable>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "transport/base/unique_fd.h"
#include "transport/loop/joining_thread.h"
#include "transport/messages/post.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/seqpacket_message.h"
#include "transport/wire/unix_address.h"

namespace monarch {

class SilentDoor : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "silent-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
    const auto address = unix_address(door());
    ASSERT_TRUE(address.ok());
    listener_ = UniqueFd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    ASSERT_EQ(::bind(listener_.get(), reinterpret_cast<const sockaddr*>(&*address), sizeof *address), 0);
    ASSERT_EQ(::listen(listener_.get(), 8), 0);
    auto started = JoiningThread::start([this](int stop) { welcome_all(stop); });
    ASSERT_TRUE(started.ok());
    thread_ = std::move(*started);
  }
  void TearDown() override {
    thread_.reset();
    std::filesystem::remove_all(root_);
  }
  std::string door() const { return root_ + "/post"; }

  // To the last that came, once one has.
  template <class Message>
  void say(const Message& said) {
    const auto message = pack_message(frame_of(said), {}, 65'536);
    ASSERT_TRUE(message.ok());
    std::unique_lock lock(mutex_);
    came_.wait(lock, [this] { return !connections_.empty(); });
    EXPECT_EQ(send_message(connections_.back().get(), *message), SendOutcome::kSent);
  }
  // The post has ended; who comes is welcome again.
  void end_all() {
    const std::lock_guard lock(mutex_);
    connections_.clear();
  }

 private:
  void welcome_all(int stop) {
    for (;;) {
      pollfd waiting[] = {{listener_.get(), POLLIN, 0}, {stop, POLLIN, 0}};
      if (::poll(waiting, 2, -1) < 0) continue;
      if (waiting[1].revents != 0) return;
      UniqueFd connection(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      PostWelcome welcome;
      welcome.calls = 16'384;
      welcome.call_bytes = welcome.body_bytes = 64U << 20U;
      const auto message = pack_message(frame_of(welcome), {}, 65'536);
      ASSERT_TRUE(message.ok());
      EXPECT_EQ(send_message(connection.get(), *message), SendOutcome::kSent);
      const std::lock_guard lock(mutex_);
      connections_.push_back(std::move(connection));
      came_.notify_all();
    }
  }

  std::string root_;
  UniqueFd listener_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<UniqueFd> connections_;
  std::unique_ptr<JoiningThread> thread_;
};

}  // namespace monarch
