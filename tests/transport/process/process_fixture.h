#pragma once

// What tests of real processes share: a loop with a child watch, children made of shell lines, waiting under a
// deadline.
//
// Thread: the test's.

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"
#include "transport/loop/signals.h"
#include "transport/process/child_watch.h"
#include "transport/process/containment.h"
#include "transport/process/spawn.h"

namespace monarch {

class ProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(::prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    (void)std::signal(SIGPIPE, SIG_IGN);
    loop_ = EventLoop::create().value();
    watch_ = std::make_unique<ChildWatch>(*loop_);
    char name[] = "/tmp/monarch-process-test-XXXXXX";
    folder_ = ::mkdtemp(name);
  }
  void TearDown() override {
    for (auto& child : children_) {
      (void)send_signal(child->pidfd(), SIGKILL);
      watch_->reap(child->pid());
    }
    children_.clear();
    EXPECT_EQ(kill_descendants(Duration::zero(), Duration::seconds(5)), 0U);
    std::filesystem::remove_all(folder_);
  }

  // Turns the loop until `done`; false after half a minute.
  bool until(const std::function<bool()>& done) {
    const Instant deadline = boot_now() + Duration::seconds(30);
    while (!done()) {
      if (boot_now() > deadline) return false;
      // Some of what is waited for (a file, an empty tree) makes no descriptor ready: it is looked at again soon.
      pollfd polled{loop_->descriptor(), POLLIN, 0};
      (void)::poll(&polled, 1, 5);
      loop_->turn();
    }
    return true;
  }

  SpawnOptions shell(const std::string& line) const {
    SpawnOptions options;
    options.program = {"/bin/sh", "-c", line};
    options.environment = {"PATH=/usr/bin:/bin"};
    return options;
  }
  // Forked, watched, its gate still closed. Null where the fork failed.
  Child* fork(const SpawnOptions& options) {
    auto result = Child::fork(options);
    auto* child = std::get_if<std::unique_ptr<Child>>(&result);
    if (child == nullptr) return nullptr;
    children_.push_back(std::move(*child));
    Child* raw = children_.back().get();
    EXPECT_TRUE(
        watch_->watch(raw->pid(), raw->pidfd(), [this, pid = raw->pid()](const ExitStatus& s) { ends_[pid] = s; })
            .ok());
    return raw;
  }
  Child* start(const SpawnOptions& options) {
    Child* child = fork(options);
    if (child != nullptr) child->open_gate();
    return child;
  }
  ExitStatus end_of(const Child* child) {
    EXPECT_TRUE(until([&] { return ends_.contains(child->pid()); }));
    return ends_[child->pid()];
  }
  std::string path(const std::string& name) const { return folder_ + "/" + name; }
  std::string read(const std::string& name) const {
    std::ifstream in(path(name));
    return {std::istreambuf_iterator<char>(in), {}};
  }
  void write(const std::string& name, const std::string& content, int mode) const {
    std::ofstream(path(name)) << content;
    std::filesystem::permissions(path(name), static_cast<std::filesystem::perms>(mode));
  }

  std::unique_ptr<EventLoop> loop_;
  std::unique_ptr<ChildWatch> watch_;
  std::vector<std::unique_ptr<Child>> children_;
  std::map<pid_t, ExitStatus> ends_;
  std::string folder_;
};

}  // namespace monarch
