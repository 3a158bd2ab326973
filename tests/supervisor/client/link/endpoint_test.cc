#include "supervisor/client/link/endpoint.h"

#include <gtest/gtest.h>

#include "supervisor/client/link/viewer_address.h"

namespace monarch {
namespace {

Endpoint made() {
  return {.host = "node1",
          .pid = 4711,
          .term = Term(2),
          .socket = "/run/monarch/hello.sock",
          .viewers = ViewerDoorAddress{.addresses = {"10.0.0.7", "fd00::7"},
                                       .port = 40'123,
                                       .server_key = "server",
                                       .public_key = "public",
                                       .secret_key = "secret"}};
}

TEST(Endpoint, IsReadAsItWasWritten) {
  const Endpoint written = made();
  const auto read = parse_endpoint(write_endpoint(written));
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->host, "node1");
  EXPECT_EQ(read->pid, 4711);
  EXPECT_EQ(read->term, Term(2));
  EXPECT_EQ(read->socket, written.socket);
  EXPECT_EQ(read->viewers, written.viewers);
}

TEST(Endpoint, MayHaveNoDoorForOtherMachines) {
  Endpoint written = made();
  written.viewers.reset();
  const auto read = parse_endpoint(write_endpoint(written));
  ASSERT_TRUE(read.ok());
  EXPECT_FALSE(read->viewers.has_value());
}

TEST(Endpoint, SaysWhatIsWrongWithIt) {
  EXPECT_FALSE(parse_endpoint("{").ok());
  EXPECT_FALSE(parse_endpoint(R"({"v":1,"host":"a"})").ok());
  for (const char* viewers : {"{}", R"({"addresses":["10.0.0.7"],"port":0,"server":"a","public":"b","secret":"c"})",
                              R"({"addresses":["10.0.0.7"],"port":70000,"server":"a","public":"b","secret":"c"})",
                              R"({"addresses":["10.0.0.7"],"port":7000,"server":"a","public":"b"})", "7"}) {
    const auto read = parse_endpoint(std::string(R"({"v":1,"socket":"/s","viewers":)") + viewers + "}");
    EXPECT_FALSE(read.ok()) << viewers;
  }
}

TEST(ViewerAddress, IsFarWhereTheSupervisorIsOnAnotherMachineAndLetsOthersCome) {
  Endpoint endpoint = made();
  EXPECT_EQ(viewer_address(endpoint).far, endpoint.viewers);
  EXPECT_EQ(viewer_address(endpoint).host, "node1");
  endpoint.viewers.reset();
  EXPECT_FALSE(viewer_address(endpoint).far.has_value());
  endpoint = made();
  endpoint.host = name_of_this_machine();
  EXPECT_FALSE(viewer_address(endpoint).far.has_value());
  EXPECT_EQ(viewer_address(endpoint).socket, endpoint.socket);
}

}  // namespace
}  // namespace monarch
