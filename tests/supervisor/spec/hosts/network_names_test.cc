#include "supervisor/spec/hosts/network_names.h"
#include "supervisor/launch/ssh/ssh_spec.h"

#include <gtest/gtest.h>

namespace monarch {
namespace {

TEST(NetworkNames, TakeUsersThatNoProgramMistakesForSomethingElse) {
  for (const char* name : {"alice", "_svc", "a.b-c_1", "A"}) EXPECT_TRUE(is_user_name(name)) << name;
  for (const char* name : {"", "-lroot", "1a", ".a", "a b", "a@b", "a;b", "$(reboot)", "a\n", "\xc3\xa4"})
    EXPECT_FALSE(is_user_name(name)) << name;
  EXPECT_FALSE(is_user_name(std::string(65, 'a')));
}

TEST(NetworkNames, TellAddressesApart) {
  EXPECT_EQ(numeric_address("10.0.0.7"), NumericAddress::kOther);
  EXPECT_EQ(numeric_address("fd00::7"), NumericAddress::kOther);
  EXPECT_EQ(numeric_address("127.9.9.9"), NumericAddress::kLoopback);
  EXPECT_EQ(numeric_address("::1"), NumericAddress::kLoopback);
  EXPECT_EQ(numeric_address("0.0.0.0"), NumericAddress::kUnspecified);
  EXPECT_EQ(numeric_address("::"), NumericAddress::kUnspecified);
  for (const char* text : {"", "gpu7", "10.0.0", "10.0.0.300", "010.0.0.1", "::g", "fe80::1%eth0"})
    EXPECT_EQ(numeric_address(text), NumericAddress::kNone) << text;
  EXPECT_EQ(numeric_address(std::string_view("1.2.3.4\0x", 9)), NumericAddress::kNone);
}

TEST(NetworkNames, TakeNamesAndAddressesToDial) {
  for (const char* text : {"gpu7", "gpu-7.cluster.example", "10.0.0.7", "fd00::7", "7"})
    EXPECT_TRUE(is_address(text)) << text;
  for (const char* text : {"", "-oProxyCommand=x", "10.0.0.300", "a b", "fe80::1;x", "gpu.7"})
    EXPECT_FALSE(is_address(text)) << text;
}

TEST(NetworkNames, TakeInterfaces) {
  for (const char* text : {"ib0", "eth0.100", "bond0", "veth@if3"}) EXPECT_TRUE(is_interface_name(text)) << text;
  for (const char* text : {"", ".", "..", "a/b", "-x", "a b", "sixteen_letters_"})
    EXPECT_FALSE(is_interface_name(text)) << text;
}

TEST(NetworkNames, TakeFingerprintsAsSshShowsThem) {
  const std::string key = "SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU";
  EXPECT_TRUE(is_key_fingerprint(key));
  for (const std::string& text : {std::string(), key + "=", key.substr(0, key.size() - 1), key.substr(7), " " + key,
                                  std::string("MD5:d4:1d:8c:d9"), std::string("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5")})
    EXPECT_FALSE(is_key_fingerprint(text)) << text;
}

TEST(NetworkNames, TakeHostsToJumpThrough) {
  EXPECT_EQ(read_jump("login1"), (SshJump{.address = "login1"}));
  EXPECT_EQ(read_jump("alice@login1"), (SshJump{.address = "login1", .user = "alice"}));
  EXPECT_EQ(read_jump("alice@login1:2222"), (SshJump{.address = "login1", .user = "alice", .port = 2222}));
  EXPECT_EQ(read_jump("10.0.0.1:22"), (SshJump{.address = "10.0.0.1", .port = 22}));
  EXPECT_EQ(read_jump("[fd00::1]:22"), (SshJump{.address = "fd00::1", .port = 22}));
  EXPECT_EQ(read_jump("a@[fd00::1]"), (SshJump{.address = "fd00::1", .user = "a"}));
  for (const char* text :
       {"", "@login1", "alice@", "login1:", "login1:0", "login1:65536", "login1:x", "fd00::1", "[fd00::1", "[fd00::1]x",
        "[fd00::1]:", "[login1]", "-J", "a@b@c", "ssh://login1", "login1,login2"})
    EXPECT_FALSE(read_jump(text)) << text;
}

}  // namespace
}  // namespace monarch
