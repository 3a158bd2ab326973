// Launches whose workers come back through the session, over a real sshd.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <csignal>

#include "tests/supervisor/launch/ssh/ssh_launch_fixture.h"
#include "transport/wire/messages.h"

namespace monarch {
namespace {

// A port of this machine, and what connects to it.
class Port {
 public:
  Port() : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)) {
    sockaddr_in address = at(0);
    socklen_t size = sizeof address;
    auto* generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(socket_.get(), generic, size), 0);
    EXPECT_EQ(::listen(socket_.get(), 64), 0);
    EXPECT_EQ(::getsockname(socket_.get(), generic, &size), 0);
    number_ = ntohs(address.sin_port);
  }
  static sockaddr_in at(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
  }
  std::uint16_t number() const { return number_; }
  bool somebody_came() const { return UniqueFd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC)).valid(); }

 private:
  UniqueFd socket_;
  std::uint16_t number_ = 0;
};

class SshLaunchTunnel : public SshLaunch {
 protected:
  void SetUp() override {
    SshLaunch::SetUp();
    if (IsSkipped()) return;
    way_back_.tunnel = {control_.number(), bulk_.number()};
    Bootstrap there = bootstrap();
    there.control_endpoint = there.bulk_endpoint = "tcp://127.0.0.1:40000";  // all of them have five digits
    there.host_address = "127.0.0.1";
    home_.write("size", text(frame_of(there).size()));
  }
  void launch() {
    open();
    look_often();
    launcher_->launch(HostId(0), bootstrap());
    expect_launched();
  }
  // What its worker would dial.
  std::uint16_t there(bool bulk = false) const {
    return endpoint_port(bulk ? launched_[0].bulk_endpoint : launched_[0].control_endpoint);
  }
  static bool listens(std::uint16_t port) {
    const UniqueFd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    const sockaddr_in address = Port::at(port);
    return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  bool leads_to(std::uint16_t port, const Port& here) {
    bool led = false;
    return run_until([&] { return led = led || (listens(port) && here.somebody_came()); }, Duration::seconds(30));
  }
  bool closes(std::uint16_t port) {
    return run_until([&] { return !listens(port); }, Duration::seconds(30));
  }

  Port control_;
  Port bulk_;
};

TEST_F(SshLaunchTunnel, TellsAWorkerPortsOfItsOwnHostThatLeadHere) {
  launch();
  EXPECT_EQ(launched_[0].control_endpoint, text("tcp://127.0.0.1:", there()));
  EXPECT_NE(there(), control_.number());
  EXPECT_NE(launched_[0].again.find(text("-R 127.0.0.1:0:127.0.0.1:", control_.number())), std::string::npos)
      << launched_[0].again;
  EXPECT_TRUE(leads_to(there(), control_));
  EXPECT_FALSE(bulk_.somebody_came());
  EXPECT_TRUE(leads_to(there(true), bulk_));
  Bootstrap told = bootstrap();
  told.control_endpoint = launched_[0].control_endpoint;
  told.bulk_endpoint = launched_[0].bulk_endpoint;
  told.host_address = "127.0.0.1";
  EXPECT_EQ(read_text(home_.path() + "/bootstrap"), frame_of(told));
}

TEST_F(SshLaunchTunnel, OpensTheSamePortsAgainWhenTheSessionBreaks) {
  launch();
  ASSERT_TRUE(leads_to(there(), control_));
  const pid_t sshd = std::stoi(read_text(home_.path() + "/parent"));
  ASSERT_GT(sshd, 1);
  ASSERT_EQ(::kill(sshd, SIGKILL), 0);
  ASSERT_TRUE(run_until([&] { return ::kill(sshd, 0) != 0; }));
  EXPECT_TRUE(leads_to(there(), control_));
  EXPECT_TRUE(leads_to(there(true), bulk_));
  EXPECT_EQ(launched_.size(), 1U) << "it is the same worker";
}

TEST_F(SshLaunchTunnel, OpensTheSamePortsAgainWhenTheSessionFallsSilent) {
  way_back_.silence = {.ask_after = Duration::milliseconds(200), .dead_after = Duration::seconds(2)};
  launch();
  ASSERT_TRUE(leads_to(there(), control_));
  // Its connection stands, its ports are held, and it says nothing any more.
  const pid_t sshd = std::stoi(read_text(home_.path() + "/parent"));
  ASSERT_EQ(::kill(sshd, SIGSTOP), 0);
  EXPECT_TRUE(leads_to(there(), control_));
  EXPECT_TRUE(leads_to(there(true), bulk_));
  EXPECT_TRUE(run_until([&] { return ::kill(sshd, 0) != 0; }));
}

TEST_F(SshLaunchTunnel, ClosesItBeforeAWorkerIsEnded) {
  launch();
  ASSERT_TRUE(listens(there()));
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(ended());
  EXPECT_EQ(ended_, std::vector<std::string>{"2 processes ended by order"});
  EXPECT_TRUE(closes(there()));
}

TEST_F(SshLaunchTunnel, ClosesItWhenAWorkerHasLeft) {
  launch();
  launcher_->on_goodbye(HostId(0), true);
  EXPECT_EQ(ended_, std::vector<std::string>{"it left"});
  EXPECT_TRUE(closes(there()));
}

TEST_F(SshLaunchTunnel, ReachesTheWorkersOfAnEarlierSupervisor) {
  launch();
  launcher_.reset();
  ASSERT_TRUE(closes(there()));
  open();
  launcher_->adopt(
      HostId(0),
      {.runs = true, .control_endpoint = launched_[0].control_endpoint, .bulk_endpoint = launched_[0].bulk_endpoint});
  EXPECT_TRUE(leads_to(there(), control_));
  EXPECT_TRUE(leads_to(there(true), bulk_));
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(ended());
  EXPECT_EQ(ended_, std::vector<std::string>{"2 processes ended by order"});
}

TEST_F(SshLaunchTunnel, NamesAnSshdThatForbidsIt) {
  serve("AllowTcpForwarding no");
  open();
  launcher_->launch(HostId(0), bootstrap());
  ASSERT_TRUE(told());
  ASSERT_EQ(failed_.size(), 1U);
  EXPECT_EQ(failed_[0].kind, LaunchFailureKind::kForwarding);
  EXPECT_EQ(failed_[0].phase, "tunnel");
  EXPECT_NE(failed_[0].message.find("gpu7"), std::string::npos) << failed_[0].message;
  EXPECT_NE(failed_[0].message.find("AllowTcpForwarding"), std::string::npos) << failed_[0].message;
  EXPECT_NE(failed_[0].again.find("ExitOnForwardFailure=yes"), std::string::npos) << failed_[0].again;
  launcher_->destroy(HostId(0));
  ASSERT_TRUE(ended());
  EXPECT_EQ(ended_[0], "was not running") << "nothing was started there";
}

TEST(SshEndpoints, HaveAPort) {
  EXPECT_EQ(endpoint_port("tcp://127.0.0.1:7001"), 7001);
  EXPECT_EQ(endpoint_port("tcp://[::1]:7001"), 7001);
  EXPECT_EQ(endpoint_port("tcp://127.0.0.1:70001"), 0);
  EXPECT_EQ(endpoint_port("nothing"), 0);
}

}  // namespace
}  // namespace monarch
