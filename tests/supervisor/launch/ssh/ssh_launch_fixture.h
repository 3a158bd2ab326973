#pragma once

// A launcher over a real sshd, with a script in the place of the worker.
//
// Thread: the test's.

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "supervisor/launch/ssh/ssh_launcher.h"
#include "tests/supervisor/launch/ssh/ssh_server.h"
#include "tests/supervisor/launch/talk/remote_orders.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/base/text.h"
#include "transport/messages/bootstrap.h"
#include "transport/messages/launch.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"

namespace monarch {

// Started, it keeps the bootstrap of so many bytes, says that two processes run, and answers; `end` ends them. Of a
// workspace it lacks the first and the third content, of four bytes each.
inline constexpr char kFakeWorker[] = R"sh(#!/bin/sh
cd "$(dirname "$0")/../../../.." || exit 1
if [ "$1" = end ]; then
  echo "ended $(cat running 2>/dev/null || echo 0)"
  rm -f running
  exit 0
fi
if [ "$1" = workspace ]; then
  read -r word size
  head -c "$size" >manifest
  printf "need 0\nneed 2\nend\n"
  [ ! -e full ] || { echo "failed disk-full no room"; exit 1; }
  head -c 8 >blobs
  echo "built 8"
  exit 0
fi
echo 2 >running
echo $PPID >parent
[ ! -e hang ] || exec sleep 10
while [ -e chatter ]; do echo "so much to do" >&2; sleep 0.1; done
head -c "$(cat size)" >bootstrap
exec cat reply
)sh";

class SshLaunch : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    const std::string lacks = SshServer::lacks();
    if (!lacks.empty()) GTEST_SKIP() << "this machine lacks " << lacks;
    serve("");
    home_.write("reply", test_reply());
    home_.write("size", text(frame_at("127.0.0.1").size()));
    image_ = image_of(kFakeWorker);
  }

  void serve(const std::string& configuration) {
    server_ =
        std::make_unique<SshServer>("ed25519", text(configuration, "\nSetEnv XDG_CACHE_HOME=", home_.path(), "/cache"));
    ASSERT_EQ(server_->failure(), "");
    target_ = server_->target();
  }
  static Bootstrap bootstrap() {
    Bootstrap bootstrap;
    bootstrap.host_name = "gpu7";
    bootstrap.control_endpoint = "tcp://0.0.0.0:7001";
    bootstrap.bulk_endpoint = "tcp://0.0.0.0:7002";
    return bootstrap;
  }
  static std::string frame_at(const std::string& address) {
    Bootstrap there = bootstrap();
    there.control_endpoint = endpoint_at(there.control_endpoint, address);
    there.bulk_endpoint = endpoint_at(there.bulk_endpoint, address);
    return frame_of(there);
  }
  static std::string frame_of(const Bootstrap& there) {
    FrameHeader header;
    header.term = Term(1);
    return encode_frame({header, encode_payload(there)});
  }
  std::shared_ptr<const WorkerImage> image_of(const std::string& bytes) {
    const std::string file = home_.write("image", bytes);
    const std::string hash = home_.path() + "/hash";
    EXPECT_EQ(run_command({"/bin/sh", "-c", "sha256sum <" + file + " >" + hash}), 0);
    return std::make_shared<WorkerImage>(WorkerImage{
        .file = {.sha256 = read_text(hash).substr(0, 64), .size = bytes.size()}, .bytes = bytes, .machine = "x86_64"});
  }

  void open() {
    auto made = SshLauncher::create(
        loop(),
        SshLauncherOptions{.job_id = "train-0001",
                           .term = Term(1),
                           .access = {.hosts = {{"gpu7", {target_}}, {"gpu8", {target_}}}, .image = image_},
                           .way_back = way_back_,
                           .silence = silence_,
                           .workspace = workspace_,
                           .pool = {},
                           .check = check_},
        LauncherHandlers{
            .on_launched = [this](HostId, LaunchedWorker worker) { launched_.push_back(std::move(worker)); },
            .on_failed = [this](HostId, LaunchFailure failure) { failed_.push_back(std::move(failure)); },
            .on_ended = [this](HostId, const std::string& how, bool) { ended_.push_back(how); }});
    ASSERT_TRUE(made.ok());
    launcher_ = std::move(*made);
  }
  // A file tells nobody that it has changed: the loop looks.
  void look_often() {
    (void)loop().at(loop().now() + Duration::milliseconds(20), [this] { look_often(); });
  }
  bool told() {
    return run_until([&] { return !launched_.empty() || !failed_.empty(); }, Duration::seconds(30));
  }
  void expect_launched() {
    ASSERT_TRUE(told());
    for (const LaunchFailure& failure : failed_)
      ADD_FAILURE() << failure.phase << ": " << failure.message << failure.words;
    ASSERT_EQ(launched_.size(), 1U);
  }
  bool ended() {
    return run_until([&] { return !ended_.empty(); }, Duration::seconds(30));
  }

  Scratch home_;
  std::unique_ptr<SshServer> server_;
  SshTarget target_;
  SshWayBack way_back_;
  bool workspace_ = false;
  Duration silence_ = Duration::seconds(20);
  SshHostCheck check_;
  std::shared_ptr<const WorkerImage> image_;
  std::unique_ptr<SshLauncher> launcher_;
  std::vector<LaunchedWorker> launched_;
  std::vector<LaunchFailure> failed_;
  std::vector<std::string> ended_;
};

}  // namespace monarch
