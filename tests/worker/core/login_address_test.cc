// The address of a host by the way somebody logged in.

#include "worker/core/login_address.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

TEST(LoginAddress, IsTheServersSide) {
  EXPECT_EQ(login_address("10.0.0.1 50000 10.0.0.7 22"), "10.0.0.7");
  EXPECT_EQ(login_address("fd00::1 50000 fd00::7 22"), "fd00::7");
  EXPECT_EQ(login_address("fe80::1%eth0 50000 fe80::7%eth0 22"), "fe80::7%eth0");
}

TEST(LoginAddress, IsNoneWhereOthersReachNobody) {
  for (const char* words : {"", "10.0.0.1 50000", "UNKNOWN 65535 UNKNOWN 65535", "127.0.0.1 50000 127.0.0.1 22",
                            "::1 50000 ::1 22", "10.0.0.1 50000 head 22"}) {
    EXPECT_EQ(login_address(words), "") << words;
  }
}

std::string settled(const std::string& endpoint, const std::string& seen, const Environment& environment) {
  Bootstrap bootstrap;
  bootstrap.control_endpoint = endpoint;
  bootstrap.host_address = seen;
  settle_address(bootstrap, environment);
  return bootstrap.host_address;
}

TEST(LoginAddress, CountsWhereATunnelIsEntered) {
  const Environment login = {{"SSH_CONNECTION", "10.0.0.1 50000 10.0.0.7 22"}};
  EXPECT_EQ(settled("tcp://127.0.0.1:40000", "", login), "10.0.0.7");
  EXPECT_EQ(settled("tcp://127.0.0.1:40000", "192.0.2.1", login), "10.0.0.7") << "what was dialled may be a gateway";
  EXPECT_EQ(settled("tcp://127.0.0.1:40000", "192.0.2.1", {}), "192.0.2.1");
  EXPECT_EQ(settled("tcp://10.0.0.1:20000", "", login), "") << "the way to the supervisor says it";
}

}  // namespace
}  // namespace monarch
