// A worker on a machine of its own: it is given a bootstrap on its standard input, as over SSH, and finds everything
// else there; and how all of a job is ended there by whoever comes later.

#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "tests/worker/keeper/keeper_fixture.h"
#include "transport/messages/bootstrap.h"
#include "transport/process/job_marks.h"
#include "transport/wire/codec.h"
#include "transport/wire/runtime_directory.h"
#include "transport/wire/socket_directory.h"

namespace monarch {
namespace {

namespace fs = std::filesystem;

class OwnPlace : public KeeperTest {
 protected:
  static std::string worker() {
    const char* found = std::getenv("MONARCH_WORKER");
    return found == nullptr ? "" : found;
  }
  static std::string uuid() { return job_of(kWorkerMark, ::getpid()).to_text(); }

  void SetUp() override {
    KeeperTest::SetUp();
    ASSERT_NE(worker(), "") << "MONARCH_WORKER names the executable under test";
    for (const char* folder : {"home", "run"}) fs::create_directory(path(folder));
    fs::permissions(path("run"), fs::perms::owner_all);
  }
  void TearDown() override {
    for (const char* host : {"node1", "node2"}) {
      (void)end_marked({.uuid = uuid(), .host = host}, Duration::seconds(5));
      EXPECT_TRUE(remove_socket_directory(sockets(host)));
    }
    (void)remove_job_groups(uuid(), Duration::seconds(5));
    KeeperTest::TearDown();
  }

  SpawnOptions on_host(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), worker());
    SpawnOptions options = program(std::move(arguments));
    options.environment = {"PATH=/usr/bin:/bin", "HOME=" + path("home"), "XDG_RUNTIME_DIR=" + path("run"),
                           "SSH_CONNECTION=127.0.0.1 1 127.0.0.1 22"};
    return options;
  }

  static Bootstrap bootstrap_of(const std::string& host) {
    Bootstrap bootstrap;
    bootstrap.job_id = "test-0001";
    bootstrap.host_name = host;
    bootstrap.term = Term(1);
    bootstrap.server_public_key = "rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7";
    bootstrap.control_endpoint = "tcp://127.0.0.1:9";
    bootstrap.bulk_endpoint = "tcp://127.0.0.1:9";
    bootstrap.heartbeat = Duration::milliseconds(50);
    bootstrap.login_environment = true;
    return bootstrap;
  }

  // What it said on its standard output up to the end of that, which comes while it lives; standard error must end,
  // too.
  Result<BootstrapReply> launch(const std::string& host, Child** keeper) {
    Frame order;
    order.header.job = job_of(kWorkerMark, ::getpid());
    order.payload = encode_payload(bootstrap_of(host));
    write("order", encode_frame(order), 0600);
    const UniqueFd input(::open(path("order").c_str(), O_RDONLY | O_CLOEXEC));
    int out[2];
    int err[2];
    if (::pipe2(out, O_CLOEXEC) != 0 || ::pipe2(err, O_CLOEXEC) != 0) return errno_error("pipe2", errno);
    SpawnOptions options = on_host({"--job", uuid(), "--host", host});
    options.descriptors = {{input.get(), 0}, {out[1], 1}, {err[1], 2}};
    *keeper = start(options);
    (void)::close(out[1]);
    (void)::close(err[1]);
    const UniqueFd answers(out[0]);
    const UniqueFd words(err[0]);
    std::string bytes;
    EXPECT_TRUE(until([&] { return at_end(answers.get(), bytes); }));
    EXPECT_TRUE(until([&] { return at_end(words.get(), words_); })) << "the connection could not be closed";
    MONARCH_ASSIGN(const Frame frame, decode_frame(bytes, 1U << 20U));
    return decode_payload<BootstrapReply>(frame.payload);
  }
  static bool at_end(int fd, std::string& bytes) {
    (void)::fcntl(fd, F_SETFL, O_NONBLOCK);
    char buffer[4096];
    for (;;) {
      const ssize_t got = ::read(fd, buffer, sizeof buffer);
      if (got <= 0) return got == 0;
      bytes.append(buffer, static_cast<std::size_t>(got));
    }
  }

  struct Printed {
    int code = -1;
    std::string line;
  };
  Printed run(const std::vector<std::string>& arguments) {
    SpawnOptions options = on_host(arguments);
    const UniqueFd output(::open(path("printed").c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600));
    options.descriptors = {{output.get(), 1}, {2, 2}};
    const int code = end_of(start(options)).value;
    return {code, read("printed")};
  }
  Printed end(const std::string& host) {
    return run({"end", "--job", uuid(), "--host", host, "--job-id", "test-0001"});
  }

  std::string state(const std::string& host) const {
    return path("home") + "/.local/state/monarch/hosts/test-0001/" + host;
  }
  std::string sockets(const std::string& host) const {
    return host_socket_directory(lasting_directory(::geteuid()), uuid(), host);
  }
  // A process as a rank of this host would leave it: in a session of its own, its parent gone.
  pid_t leave_grandchild(const std::string& host, const std::string& uuid) {
    const std::string file = path("grandchild." + host + uuid.substr(0, 4));
    SpawnOptions options = shell("(setsid sh -c 'echo $$ >" + file + "; exec sleep 1000' >/dev/null 2>&1 &); exit 0");
    options.environment.push_back("MONARCH_JOB_UUID=" + uuid);
    options.environment.push_back("MONARCH_HOST=" + host);
    (void)end_of(start(options));
    pid_t pid = 0;
    EXPECT_TRUE(until([&] {
      std::ifstream(file) >> pid;
      return pid != 0;
    }));
    return pid;
  }
  static bool lives(pid_t pid) {
    const auto process = read_process(pid);
    return process && !process->dead();
  }
  static pid_t daemon_of(pid_t keeper) {
    for (const ProcessEntry& entry : list_processes()) {
      if (entry.parent == keeper && !entry.dead()) return entry.pid;
    }
    return 0;
  }

  std::string words_;
};

TEST_F(OwnPlace, HasItsStateLogsAndSocketsWhereTheUserKeepsSuchThings) {
  Child* keeper = nullptr;
  const auto reply = launch("node1", &keeper);
  ASSERT_TRUE(reply.ok()) << reply.error().message << words_;
  EXPECT_EQ(reply->error, "");
  EXPECT_EQ(reply->log_directory, state("node1") + "/logs");
  EXPECT_EQ(reply->host_address, "127.0.0.1") << "that from which it reaches the control endpoint";
  EXPECT_NE(reply->architecture, "");
  EXPECT_TRUE(fs::exists(state("node1") + "/promise"));
  EXPECT_TRUE(fs::is_directory(sockets("node1")));
  EXPECT_EQ(fs::status(state("node1")).permissions(), fs::perms::owner_all);
  EXPECT_EQ(words_, "") << "its log is a file";
  ASSERT_TRUE(until([&] {
    return read("home/.local/state/monarch/hosts/test-0001/node1/logs/worker.log").find("cannot be reached") !=
           std::string::npos;
  })) << "that it finds no supervisor";
  ASSERT_TRUE(send_signal(keeper->pidfd(), SIGTERM));
  EXPECT_EQ(end_of(keeper).value, 143);
  EXPECT_FALSE(fs::exists(state("node1") + "/promise"));
  EXPECT_FALSE(fs::exists(sockets("node1")));
  EXPECT_TRUE(fs::exists(state("node1") + "/logs/worker.log")) << "the logs stay";
}

// systemd-logind removes /run/user/<uid> when the session ends that started the worker.
TEST_F(OwnPlace, LosesNothingWithTheFolderOfTheSessionThatStartedIt) {
  Child* keeper = nullptr;
  ASSERT_TRUE(launch("node1", &keeper).ok());
  EXPECT_TRUE(fs::is_empty(path("run")));
  EXPECT_TRUE(fs::is_directory(sockets("node1")));
  ASSERT_TRUE(send_signal(keeper->pidfd(), SIGKILL));
  (void)end_of(keeper);
  EXPECT_EQ(end("node1").code, 0);
  EXPECT_FALSE(fs::exists(sockets("node1")));
}

TEST_F(OwnPlace, RefusesAPlaceThatIsALinkOfSomebodyElses) {
  fs::create_directories(path("home/.local/state"));
  fs::create_directory(path("elsewhere"));
  fs::create_directory_symlink(path("elsewhere"), path("home/.local/state/monarch"));
  if (::lchown(path("home/.local/state/monarch").c_str(), 65534, 65534) != 0) GTEST_SKIP() << "only root can plant it";
  Child* keeper = nullptr;
  const auto reply = launch("node1", &keeper);
  ASSERT_TRUE(reply.ok()) << reply.error().message;
  EXPECT_NE(reply->error.find("/.local/state/monarch "), std::string::npos) << reply->error;
  EXPECT_EQ(end_of(keeper).value, 70);
}

TEST_F(OwnPlace, IsEndedWithAllOfItsJobAndNothingElse) {
  Child* keeper = nullptr;
  Child* other = nullptr;
  ASSERT_TRUE(launch("node1", &keeper).ok());
  ASSERT_TRUE(launch("node2", &other).ok());
  const pid_t daemon = daemon_of(keeper->pid());
  ASSERT_NE(daemon, 0);
  const pid_t grandchild = leave_grandchild("node1", uuid());
  const pid_t of_other_host = leave_grandchild("node2", uuid());
  const pid_t of_other_job = leave_grandchild("node1", std::string(32, '7'));
  const Printed ended = end("node1");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.line, "ended 3\n");
  EXPECT_TRUE(until([&] { return ends_.contains(keeper->pid()); }));
  EXPECT_FALSE(lives(daemon));
  EXPECT_FALSE(lives(grandchild));
  EXPECT_FALSE(fs::exists(state("node1") + "/promise"));
  EXPECT_FALSE(fs::exists(sockets("node1")));
  EXPECT_TRUE(fs::exists(state("node1") + "/logs/worker.log"));
  EXPECT_TRUE(lives(other->pid()));
  EXPECT_TRUE(lives(of_other_host));
  EXPECT_TRUE(lives(of_other_job));
  EXPECT_TRUE(fs::exists(state("node2") + "/promise"));
  EXPECT_EQ(end("node1").line, "ended 0\n") << "again";
  (void)end_marked({.uuid = std::string(32, '7')}, Duration::seconds(5));
}

TEST_F(OwnPlace, IsEndedWhenItsKeeperWasKilledAndItsDaemonHangs) {
  Child* keeper = nullptr;
  ASSERT_TRUE(launch("node1", &keeper).ok());
  const pid_t daemon = daemon_of(keeper->pid());
  const UniqueFd pidfd = open_process(*read_process(daemon));
  ASSERT_TRUE(send_signal(pidfd.get(), SIGSTOP));
  ASSERT_TRUE(send_signal(keeper->pidfd(), SIGKILL));
  (void)end_of(keeper);
  const pid_t grandchild = leave_grandchild("node1", uuid());
  ASSERT_TRUE(lives(daemon));
  EXPECT_EQ(end("node1").line, "ended 2\n");
  EXPECT_FALSE(lives(daemon));
  EXPECT_FALSE(lives(grandchild));
  EXPECT_FALSE(fs::exists(sockets("node1")));
}

TEST_F(OwnPlace, RefusesToEndWithoutAUuidAndAHost) {
  EXPECT_EQ(run({"end", "--job", "not a uuid", "--host", "node1"}).code, 2);
  EXPECT_EQ(run({"end", "--job", uuid()}).code, 2);
  EXPECT_EQ(run({"end", "--job", uuid(), "--host", "node1", "--force", "yes"}).code, 2);
}

TEST_F(OwnPlace, PrintsADigest) {
  write("abc", "abc", 0600);
  EXPECT_EQ(run({"digest", path("abc")}).line, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad\n");
  EXPECT_EQ(run({"digest", path("nonesuch")}).code, 1);
}

}  // namespace
}  // namespace monarch
