// From a spec, and a configuration file of OpenSSH's, to what is dialled.

#include "supervisor/launch/ssh/ssh_routes.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include "supervisor/launch/ssh/ssh_spec.h"
#include "tests/supervisor/client/scratch.h"

namespace monarch {
namespace {

LaunchSsh launch_of(std::vector<SshHost> hosts) {
  LaunchSsh launch;
  launch.hosts = std::move(hosts);
  launch.identity = "/home/a/.ssh/id";
  launch.known_hosts = "/home/a/.ssh/known";
  return launch;
}

const SshUser kUser{.name = "a", .home = "/home/a", .agent_socket = "/run/agent"};

TEST(SshRoutes, HaveTheUsersNamePortTwentyTwoAndTheFilesOfTheSpec) {
  const auto routes = ssh_routes(launch_of({{.name = "gpu7", .address = "10.0.0.7"}}), kUser);
  ASSERT_TRUE(routes.ok()) << routes.error().message;
  ASSERT_EQ(routes->size(), 1U);
  ASSERT_EQ((*routes)[0].route.size(), 1U);
  const SshTarget& target = (*routes)[0].route[0];
  EXPECT_EQ((*routes)[0].name, "gpu7");
  EXPECT_EQ(target.address, "10.0.0.7");
  EXPECT_EQ(target.port, 22);
  EXPECT_EQ(target.user, "a");
  EXPECT_EQ(target.agent_socket, "/run/agent");
  EXPECT_EQ(target.identities, std::vector<std::string>{"/home/a/.ssh/id"});
  EXPECT_EQ(target.known_hosts, (std::vector<std::string>{"/home/a/.ssh/known", "/etc/ssh/ssh_known_hosts"}));
  EXPECT_FALSE(target.accept_new_host_keys);
}

TEST(SshRoutes, PutTheSpecBeforeTheFileAndTheFileBeforeTheUser) {
  const Scratch home;
  LaunchSsh launch = launch_of({{.name = "gpu7", .address = "gpu7", .user = "spec", .port = 7},
                                {.name = "gpu8", .address = "gpu8", .host_key = "SHA256:x"}});
  launch.config = home.write("config",
                             "Host gpu*\n HostName %h.example\n User file\n Port 8\n IdentityFile /k\n"
                             "Host gpu8\n UserKnownHostsFile /h\n IdentitiesOnly yes\n CertificateFile /c\n");
  const auto routes = ssh_routes(launch, kUser);
  ASSERT_TRUE(routes.ok()) << routes.error().message;
  const SshTarget& seven = (*routes)[0].route.back();
  EXPECT_EQ(seven.address, "gpu7.example");
  EXPECT_EQ(seven.user, "spec");
  EXPECT_EQ(seven.port, 7);
  EXPECT_EQ(seven.identities, (std::vector<std::string>{"/home/a/.ssh/id", "/k"}));
  const SshTarget& eight = (*routes)[1].route.back();
  EXPECT_EQ(eight.user, "file");
  EXPECT_TRUE(eight.identities_only);
  EXPECT_EQ(eight.certificates, std::vector<std::string>{"/c"});
  EXPECT_FALSE(seven.identities_only);
  EXPECT_EQ(eight.port, 8);
  EXPECT_EQ(eight.host_key, "SHA256:x");
  EXPECT_EQ(eight.known_hosts, (std::vector<std::string>{"/h", "/etc/ssh/ssh_known_hosts"}));
}

TEST(SshRoutes, TryTheKeysThatSshTriesWhereTheSpecNamesNone) {
  const Scratch home;
  const std::string folder = home.path() + "/.ssh";
  ASSERT_EQ(::mkdir(folder.c_str(), 0700), 0);
  LaunchSsh launch = launch_of({{.name = "gpu7", .address = "gpu7"}});
  launch.identity = folder + "/id_ed25519";
  const auto tried = [&] { return ssh_routes(launch, kUser)->front().route.back().identities; };
  EXPECT_EQ(tried(), std::vector<std::string>{launch.identity}) << "so that it is named";
  (void)home.write(".ssh/id_rsa", "k");
  EXPECT_EQ(tried(), std::vector<std::string>{folder + "/id_rsa"});
  (void)home.write(".ssh/id_ed25519", "k");
  EXPECT_EQ(tried(), (std::vector<std::string>{launch.identity, folder + "/id_rsa"}));
  launch.identity = folder + "/cluster";
  EXPECT_EQ(tried(), std::vector<std::string>{launch.identity});
}

TEST(SshRoutes, GoThroughTheJumpHostsOfTheSpecOrElseOfTheFile) {
  const Scratch home;
  LaunchSsh launch = launch_of({{.name = "gpu7", .address = "gpu7"}});
  launch.config = home.write("config", "Host gpu7\n ProxyJump b@login1:2222,[::1]:3333,login2\nHost login2\n Port 9\n");
  auto routes = ssh_routes(launch, kUser);
  ASSERT_TRUE(routes.ok()) << routes.error().message;
  const SshRoute& route = (*routes)[0].route;
  ASSERT_EQ(route.size(), 4U);
  EXPECT_EQ(route[0].user, "b");
  EXPECT_EQ(endpoint_text(route[0]), "login1:2222");
  EXPECT_EQ(endpoint_text(route[1]), "[::1]:3333");
  EXPECT_EQ(endpoint_text(route[2]), "login2:9");
  launch.jump = {{.address = "other", .user = "u"}};
  routes = ssh_routes(launch, kUser);
  ASSERT_TRUE(routes.ok());
  ASSERT_EQ((*routes)[0].route.size(), 2U);
  EXPECT_EQ((*routes)[0].route[0].address, "other");
  EXPECT_EQ((*routes)[0].route[0].user, "u");
}

TEST(SshRoutes, RefuseWhatCannotBeDialled) {
  const Scratch home;
  LaunchSsh launch = launch_of({{.name = "gpu7", .address = "gpu7"}});
  launch.config = home.write("config", "Host gpu7\n ProxyJump login1\nHost login1\n ProxyJump login2\n");
  EXPECT_NE(ssh_routes(launch, kUser).error().message.find("a ProxyJump of its own (login2)"), std::string::npos);
  launch.config = home.write("config", "Host gpu7\n User -oProxyCommand=x\n");
  EXPECT_NE(ssh_routes(launch, kUser).error().message.find("is no name of a user"), std::string::npos);
  launch.config = home.write("config", "ProxyJump login1:x\n");
  EXPECT_FALSE(ssh_routes(launch, kUser).ok());
  launch.config = home.path() + "/none";
  const auto missing = ssh_routes(launch, kUser);
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kInvalid) << "whoever wrote the spec is to be told";
  EXPECT_EQ(missing.error().message.rfind("launch.ssh.config: ", 0), 0U) << missing.error().message;
}

}  // namespace
}  // namespace monarch
