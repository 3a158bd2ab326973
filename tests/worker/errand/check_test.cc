// `monarch-worker check` as a doctor runs it: requests on its standard input, answers on its standard output.

#include <csignal>
#include <filesystem>

#include "tests/worker/errand/check_fixture.h"
#include "transport/messages/check.h"
#include "transport/process/door.h"
#include "transport/process/process_scan.h"
#include "transport/wire/check_stream.h"
#include "transport/wire/codec.h"
#include "worker/errand/fault_rights.h"

namespace monarch {
namespace {

namespace fs = std::filesystem;

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

TEST_F(CheckProcess, TellsWhichFaultsItsHostAllows) {
  begin();
  EXPECT_FALSE(ask({}).rights.has_value()) << "nobody asked";
  const auto rights = ask({.rights = true}).rights;
  ASSERT_TRUE(rights.has_value());
  EXPECT_TRUE(rights->no_nft_because.empty() || rights->tables.empty());
  EXPECT_EQ(drill_tables("table inet filter\ntable inet monarch_drill_412\n\ntable ip monarch_drill_9\n"),
            (std::vector<std::string>{"monarch_drill_412", "monarch_drill_9"}));
  EXPECT_TRUE(drill_tables("").empty());
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
