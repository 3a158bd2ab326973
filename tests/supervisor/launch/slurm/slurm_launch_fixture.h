#pragma once

// A launcher of Slurm's nodes with a guard that the test plays, and scripts in the place of Slurm's commands.
//
// Thread: the test's.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/launch/slurm/slurm_launcher.h"
#include "tests/supervisor/client/scratch.h"
#include "tests/supervisor/launch/slurm/played_guard.h"
#include "tests/transport/loop/loop_fixture.h"
#include "transport/base/sha256.h"
#include "transport/base/step_lines.h"
#include "transport/base/text.h"
#include "transport/wire/codec.h"
#include "transport/wire/frame.h"

namespace monarch {

// As srun does: the words behind its options are executed, and the node is told from where.
inline constexpr char kSrun[] = R"(
for word; do case "$word" in --job-name=*) name=${word#*=};; esac; done
echo "$name" >>"$HOME/sruns"
while [ "${1#-}" != "$1" ]; do shift; done
SLURM_LAUNCH_NODE_IPADDR=10.9.8.7; export SLURM_LAUNCH_NODE_IPADDR
exec "$@")";
// As srun does where there are several nodes: a process for each, all of which read the same, and whose lines stay
// whole. One of a node of which there is a file dead.<node> never says anything.
inline constexpr char kSharedSrun[] = R"(
for word; do case "$word" in --job-name=*) name=${word#*=};; --nodelist=*) nodes=$(echo "${word#*=}" | tr , " ");; esac; done
echo "$name" >>"$HOME/sruns"
while [ "${1#-}" != "$1" ]; do shift; done
SLURM_LAUNCH_NODE_IPADDR=10.9.8.7; export SLURM_LAUNCH_NODE_IPADDR
case "$nodes" in
*" "*) ;;
*) [ ! -e "$HOME/dead.$nodes" ] || exec cat >/dev/null; exec "$@";;
esac
for node in $nodes; do
  mkfifo "$HOME/in.$node.$$"; inputs="$inputs $HOME/in.$node.$$"
  (exec <"$HOME/in.$node.$$"; [ ! -e "$HOME/dead.$node" ] || exec cat >/dev/null
   SLURMD_NODENAME=$node SLURM_STEP_NUM_TASKS=$(echo $nodes | wc -w) exec "$@") |
    while IFS= read -r line; do printf "%s\n" "$line"; done &
done
tee $inputs >/dev/null; wait)";
// In the place of monarch-worker: as a worker it answers, and stays as long as the file is there.
inline constexpr char kWorker[] = R"(#!/bin/sh
case "$1" in
end) rm -f "$HOME/stays"; echo "ended 0";;
step) [ ! -e "$HOME/mute.$5" ] || exec cat >/dev/null
   echo "@$5 ready"
   while read -r line; do case "$line" in "@$5 ="*) break;; esac; done
   touch "$HOME/stays"; cat "$HOME/reply.$5"; exec 0</dev/null 1>/dev/null
   while [ -e "$HOME/stays" ]; do sleep 0.01; done;;
*) head -c 40 >/dev/null; touch "$HOME/stays"; cat "$HOME/reply"; exec 0</dev/null 1>/dev/null
   while [ -e "$HOME/stays" ]; do sleep 0.01; done;;
esac)";

class SlurmLaunch : public LoopTest {
 protected:
  void SetUp() override {
    LoopTest::SetUp();
    auto [ours, theirs] = guard_sockets();
    played_ = std::make_unique<PlayedGuard>(loop(), std::move(theirs));
    auto guard = Guard::create(loop(), std::move(ours), JobUuid{},
                               {.on_hello = [](const KeeperHello&) {},
                                .on_changed = [this](const RankReport& report) { launcher_->on_changed(report); },
                                .on_lost = [this](const Error&) { launcher_->on_guard_lost(); }});
    ASSERT_TRUE(guard.ok());
    guard_ = std::move(*guard);
    (void)scratch_.script("bin/srun", kSrun);
    (void)scratch_.script("bin/squeue", R"(case "$*" in *--steps*) cat "$HOME/steps";; *) cat "$HOME/state";; esac)");
    (void)scratch_.script("bin/scancel", R"(echo "$@" >>"$HOME/cancelled"; : >"$HOME/steps"; rm -f "$HOME/stays")");
    (void)scratch_.script("bin/scontrol", R"(echo >>"$HOME/shown"; cat "$HOME/job")");
    say("job", "JobId=7 JobName=x\n   Nodes=h[1-2] CPU_IDs=0 Mem=0 GRES=\n");
    (void)scratch_.script("bin/sinfo", R"(cat "$HOME/node")");
    say("steps", "");
    say("state", "7|RUNNING|None\n");
    say("node", "idle\n");
    BootstrapReply reply;
    reply.version = MONARCH_VERSION;
    reply.boot_id = "boot";
    const std::string frame = encode_frame({FrameHeader{}, encode_payload(reply)});
    (void)scratch_.write("reply", frame);
    for (const char* node : {"h1", "h2", "h3"}) {
      (void)scratch_.write(text("reply.", node), step_lines(node, frame));
    }
    begin(kWorker);
  }

  void begin(const std::string& program) {
    WorkerImage image{
        .file = {.sha256 = sha256(program), .size = program.size()}, .bytes = program, .machine = machine()};
    SlurmLauncherOptions options{
        .job = JobUuid{},
        .job_id = "demo-1a2b",
        .term = Term(1),
        .slurm_job = 7,
        .nodes = {"h1", "h2", "h3"},
        .environment = {text("HOME=", scratch_.path()), text("PATH=", scratch_.path(), "/bin:/usr/bin:/bin")},
        .address = {},
        .image = std::make_shared<const WorkerImage>(std::move(image)),
        .log_directory = scratch_.path(),
        .silence = silence_,
        .ends = ends_,
        .own_steps = own_steps_,
        .on_over = [this](const std::string& state) { over_ = state; }};
    launcher_ = std::make_unique<SlurmLauncher>(loop(), *guard_, std::move(options),
                                                LauncherHandlers{.on_launched =
                                                                     [this](HostId host, LaunchedWorker worker) {
                                                                       launched_ = std::move(worker);
                                                                       launched_hosts_.insert(host.value());
                                                                     },
                                                                 .on_failed =
                                                                     [this](HostId host, LaunchFailure failure) {
                                                                       failed_ = std::move(failure);
                                                                       failed_hosts_.insert(host.value());
                                                                     },
                                                                 .on_ended =
                                                                     [this](HostId host, const std::string& how, bool) {
                                                                       ended_ = how;
                                                                       ended_hosts_.insert(host.value());
                                                                     }});
  }

  void launch(std::uint32_t host = 0) {
    Bootstrap bootstrap;
    bootstrap.host_name = text("h", host + 1);
    bootstrap.control_endpoint = "tcp://127.0.0.1:7000";
    bootstrap.bulk_endpoint = "tcp://127.0.0.1:7001";
    launcher_->launch(HostId(host), bootstrap);
  }

  // All three, where one step serves more than one.
  void launch_all() {
    own_steps_ = 1;
    (void)scratch_.script("bin/srun", kSharedSrun);
    begin(kWorker);
    for (const std::uint32_t host : {0U, 1U, 2U}) launch(host);
  }

  void launch_well() {
    launch();
    ASSERT_TRUE(run_until([&] { return launched_ || failed_; }));
    ASSERT_TRUE(launched_.has_value()) << what_failed(*failed_) << read("srun.h1.log");
    say("steps", "7.0|demo-1a2b.h1\n7.1|demo-1a2b.h2\n");
  }

  std::string read(const std::string& name) const {
    std::ifstream file(text(scratch_.path(), "/", name));
    std::stringstream all;
    all << file.rdbuf();
    return all.str();
  }

  // What a command answers from now on.
  void say(const std::string& name, const std::string& answer) const {
    std::filesystem::rename(scratch_.write(name + ".new", answer), text(scratch_.path(), "/", name));
  }

  // The words of each srun.
  std::vector<std::vector<std::string>> sruns() const {
    std::vector<std::vector<std::string>> found;
    for (const auto& words : played_->started()) {
      if (std::find(words.begin(), words.end(), "srun") != words.end()) found.push_back(words);
    }
    return found;
  }

  std::size_t asked_for_steps() const {
    return static_cast<std::size_t>(std::count_if(
        played_->started().begin(), played_->started().end(),
        [](const auto& words) { return std::find(words.begin(), words.end(), "--steps") != words.end(); }));
  }

  static std::string machine() {
#if defined(__x86_64__)
    return "x86_64";
#else
    return "aarch64";
#endif
  }

  Scratch scratch_;
  std::unique_ptr<PlayedGuard> played_;
  std::unique_ptr<Guard> guard_;
  std::unique_ptr<SlurmLauncher> launcher_;
  Duration silence_ = Duration::seconds(30);
  std::uint32_t own_steps_ = 100;
  std::uint32_t ends_ = 256;
  std::set<std::uint32_t> launched_hosts_;
  std::set<std::uint32_t> failed_hosts_;
  std::set<std::uint32_t> ended_hosts_;
  std::optional<LaunchedWorker> launched_;
  std::optional<LaunchFailure> failed_;
  std::optional<std::string> ended_;
  std::optional<std::string> over_;
};

}  // namespace monarch
