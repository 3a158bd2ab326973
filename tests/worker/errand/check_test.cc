// `monarch-worker check` as a doctor runs it: requests on its standard input, answers on its standard output.

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <utility>

#include "tests/worker/keeper/keeper_fixture.h"
#include "transport/messages/check.h"
#include "transport/messages/strike.h"
#include "transport/process/door.h"
#include "transport/process/process_scan.h"
#include "transport/wire/check_stream.h"
#include "transport/wire/codec.h"

namespace monarch {
namespace {

namespace fs = std::filesystem;

class CheckProcess : public KeeperTest {
 protected:
  void begin() {
    const char* worker = std::getenv("MONARCH_WORKER");
    ASSERT_NE(worker, nullptr) << "MONARCH_WORKER names the executable under test";
    int in[2];
    int out[2];
    ASSERT_EQ(::pipe2(in, O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(out, O_CLOEXEC), 0);
    SpawnOptions options = program({worker, "check"});
    options.environment = {"PATH=/usr/bin:/bin", "HOME=" + path("")};
    options.descriptors = {{in[0], 0}, {out[1], 1}, {2, 2}};
    child_ = start(options);
    (void)::close(in[0]);
    (void)::close(out[1]);
    to_ = UniqueFd(in[1]);
    from_ = UniqueFd(out[0]);
    (void)::fcntl(from_.get(), F_SETFL, O_NONBLOCK);
  }
  CheckAnswer ask(CheckRequest request) {
    request.words = words_;
    const std::string bytes = encode_piece(encode_payload(request));
    EXPECT_EQ(::write(to_.get(), bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    std::optional<std::string> piece;
    EXPECT_TRUE(until([&] {
      char buffer[65536];
      const ssize_t got = ::read(from_.get(), buffer, sizeof buffer);
      if (got > 0) bytes_.append(buffer, static_cast<std::size_t>(got));
      const auto taken = take_piece(bytes_);
      if (taken.ok()) piece = *taken;
      return piece.has_value();
    }));
    const auto answer = decode_payload<CheckAnswer>(piece.value_or(""), kCheckBytes);
    EXPECT_TRUE(answer.ok());
    return answer.ok() ? *answer : CheckAnswer{};
  }

  DoorWords words_ = {.word = "word-0123456789", .answer = "answer-0123456789"};
  Child* child_ = nullptr;
  UniqueFd to_;
  UniqueFd from_;
  std::string bytes_;
};

TEST_F(CheckProcess, AnswersUntilItIsLeftAloneAndTakesItsTokensAway) {
  begin();
  const WallTime before = wall_now();
  const CheckAnswer looked = ask({.look = true, .first_door = 0});
  EXPECT_GE(looked.received, before);
  EXPECT_GE(looked.answered, looked.received);
  ASSERT_TRUE(looked.facts.has_value());
  EXPECT_EQ(looked.facts->version, MONARCH_VERSION);
  const DoorCall call{.name = "it", .address = "127.0.0.1", .port = looked.door};
  EXPECT_EQ(knock({call}, words_, Duration::seconds(5))[0].error, "");

  fs::create_directory(path("store"));
  const TokenOrder token{.folder = path("store"), .name = text(kTokenPrefix, "1-a"), .content = "x"};
  const CheckAnswer written = ask({.calls = {call}, .write = {token}});
  EXPECT_EQ(written.written.at(0).error, "");
  EXPECT_EQ(written.calls.at(0).error, "") << "it answers at its door while it is busy";
  EXPECT_EQ(written.door, looked.door);
  EXPECT_EQ(ask({.read = {token}}).read.at(0).content, "x");

  to_.reset();
  EXPECT_EQ(end_of(child_).value, 0);
  EXPECT_TRUE(fs::is_empty(path("store")));
  EXPECT_NE(knock({call}, words_, Duration::seconds(5))[0].error, "");
}

TEST_F(CheckProcess, LooksForAJobsWorkerAndForWhatItLeft) {
  begin();
  const std::string uuid = "0123456789abcdef0123456789abcdef";
  const WorkerMarks marks{.job_uuid = uuid, .host = "gpu7"};
  EXPECT_FALSE(ask({.look = false}).worker.has_value()) << "nobody asked";
  EXPECT_EQ(ask({.worker = marks}).worker->processes, 0U);
  SpawnOptions options = program({"/bin/sleep", "100"});
  options.environment = {"MONARCH_JOB_UUID=" + uuid, "MONARCH_HOST=gpu7"};
  Child* left = start(options);
  std::optional<WorkerThere> found;
  EXPECT_TRUE(until([&] {
    found = ask({.worker = marks}).worker;
    return found && found->processes == 1;
  }));
  EXPECT_EQ(found->keepers, 0U);
  EXPECT_EQ(ask({.worker = WorkerMarks{.job_uuid = uuid, .host = "gpu8"}}).worker->processes, 0U);
  EXPECT_FALSE(ask({.worker = WorkerMarks{.job_uuid = "all of them", .host = "gpu7"}}).worker.has_value());
  ASSERT_EQ(::kill(left->pid(), SIGKILL), 0);
  (void)end_of(left);
}

// A job's process, and what `check` is asked to do to it.
class Struck : public CheckProcess {
 protected:
  void begin() {
    CheckProcess::begin();
    SpawnOptions options = program({"/bin/sleep", "100"});
    options.environment = {"MONARCH_JOB_UUID=" + kUuid, "MONARCH_HOST=gpu7"};
    victim_ = start(options);
    EXPECT_TRUE(until([&] { return ask({.worker = WorkerMarks{kUuid, "gpu7"}}).worker->processes == 1; }));
  }
  StrikeSeen strike(StrikeOrder order) {
    order.job_uuid = kUuid;
    order.host = "gpu7";
    return ask({.strike = order}).struck.value_or(StrikeSeen{"no answer", {}});
  }
  char state() const { return read_process(victim_->pid())->state; }
  rlimit limit(__rlimit_resource resource) const {
    rlimit now{};
    EXPECT_EQ(::prlimit(victim_->pid(), resource, nullptr, &now), 0);
    return now;
  }
  void end_victim() {
    EXPECT_EQ(::kill(victim_->pid(), SIGKILL), 0);
    (void)end_of(victim_);
  }

  const std::string kUuid = "0123456789abcdef0123456789abcdef";
  Child* victim_ = nullptr;
};

TEST_F(Struck, StandsStillUntilTheStrikeIsTakenBack) {
  begin();
  const StrikeSeen seen = strike({.what = StrikeWhat::kStop});
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.struck, std::vector<std::int32_t>{victim_->pid()});
  EXPECT_EQ(state(), 'T');
  EXPECT_EQ(ask({.undo = true}).struck->error, "");
  EXPECT_NE(state(), 'T');
  end_victim();
}

TEST_F(Struck, GoesOnWhenTheTalkEndsAndAlsoWhenItsCheckIsKilled) {
  begin();
  EXPECT_EQ(strike({.what = StrikeWhat::kStop}).error, "");
  EXPECT_EQ(state(), 'T');
  to_.reset();
  EXPECT_EQ(end_of(child_).value, 0);
  EXPECT_NE(state(), 'T');

  CheckProcess::begin();
  EXPECT_EQ(strike({.what = StrikeWhat::kStop}).error, "");
  ASSERT_EQ(::kill(child_->pid(), SIGKILL), 0);
  (void)end_of(child_);
  EXPECT_TRUE(until([&] { return state() != 'T'; }));
  end_victim();
}

TEST_F(Struck, IsGoneAfterAKill) {
  begin();
  const StrikeSeen seen = strike({.what = StrikeWhat::kKill});
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.struck, std::vector<std::int32_t>{victim_->pid()});
  EXPECT_EQ(end_of(victim_).value, SIGKILL);
}

TEST_F(Struck, IsGoneAfterATerm) {
  begin();
  const WallTime before = wall_now();
  const StrikeSeen seen = strike({.what = StrikeWhat::kTerm});
  EXPECT_EQ(seen.error, "");
  EXPECT_EQ(seen.struck, std::vector<std::int32_t>{victim_->pid()});
  EXPECT_EQ(end_of(victim_).value, SIGTERM);
  EXPECT_GE(seen.struck_at, before);
  EXPECT_GE(seen.seen_at, seen.struck_at);
  EXPECT_LE(seen.seen_at, wall_now());
}

TEST_F(Struck, HasTheLimitsAgainThatItHad) {
  begin();
  for (const auto& [what, resource] :
       {std::pair(StrikeWhat::kNoFiles, RLIMIT_NOFILE), {StrikeWhat::kNoMemory, RLIMIT_AS}}) {
    const rlimit before = limit(resource);
    const auto is_as_before = [&, of = resource] { return limit(of).rlim_cur == before.rlim_cur; };
    EXPECT_EQ(strike({.what = what}).error, "");
    EXPECT_LT(limit(resource).rlim_cur, before.rlim_cur);
    EXPECT_EQ(limit(resource).rlim_max, before.rlim_max) << "it could not have it back";
    EXPECT_EQ(ask({.undo = true}).struck->error, "");
    EXPECT_TRUE(is_as_before());

    EXPECT_EQ(strike({.what = what}).struck, std::vector<std::int32_t>{victim_->pid()});
    EXPECT_FALSE(is_as_before());
    ASSERT_EQ(::kill(child_->pid(), SIGKILL), 0);
    (void)end_of(child_);
    EXPECT_TRUE(until(is_as_before)) << "its check was killed";
    CheckProcess::begin();
  }
  end_victim();
}

TEST_F(Struck, HostIsBusyUntilTheStrikeIsTakenBackOrItsCheckIsKilled) {
  begin();
  StrikeSeen seen = strike({.what = StrikeWhat::kBusy, .processes = 3});
  EXPECT_EQ(seen.error, "");
  ASSERT_EQ(seen.struck.size(), 3U);
  for (const std::int32_t pid : seen.struck) EXPECT_TRUE(until([&] { return read_process(pid)->state == 'R'; }));
  EXPECT_EQ(ask({.undo = true}).struck->error, "");
  for (const std::int32_t pid : seen.struck) EXPECT_FALSE(read_process(pid).has_value());

  seen = strike({.what = StrikeWhat::kBusy, .processes = 2});
  ASSERT_EQ(::kill(child_->pid(), SIGKILL), 0);
  (void)end_of(child_);
  EXPECT_TRUE(until([&] {
    return std::none_of(seen.struck.begin(), seen.struck.end(), [](std::int32_t pid) {
      const auto now = read_process(pid);
      return now && !now->dead();
    });
  }));
  end_victim();
}

TEST_F(Struck, SaysWhoIsNotThereAndWhatMakesNoSense) {
  begin();
  EXPECT_EQ(strike({.what = StrikeWhat::kStop, .whom = StrikeWhom::kKeeper}).error,
            "no keeper of the job is on this host");
  EXPECT_EQ(strike({.what = StrikeWhat::kBusy}).error, "1 to 4096 processes keep a host busy");
  EXPECT_EQ(strike({.what = StrikeWhat::kCut, .address = "h1", .ports = {1}}).error,
            "what is cut is named by a numeric address");
  EXPECT_EQ(ask({.undo = true}).struck->error, "") << "there is nothing to take back";
  end_victim();
}

TEST_F(CheckProcess, EndsByItselfWhenItsTimeIsUp) {
  begin();
  fs::create_directory(path("store"));
  (void)ask(
      {.life = Duration::milliseconds(50), .write = {{.folder = path("store"), .name = "token", .content = "x"}}});
  EXPECT_EQ(end_of(child_).value, 0);
  EXPECT_TRUE(fs::is_empty(path("store")));
}

TEST_F(CheckProcess, LeavesAtOnceWhereItIsAskedSomethingElse) {
  begin();
  ASSERT_EQ(::write(to_.get(), "GET / HTTP/1.1\r\n", 16), 16);
  EXPECT_EQ(end_of(child_).value, 1);
}

}  // namespace
}  // namespace monarch
