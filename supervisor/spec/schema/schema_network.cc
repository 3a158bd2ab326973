// By which addresses all parts of a job reach each other, and where its supervisor is.

#include "supervisor/spec/schema/schema_rows.h"

namespace monarch::schema_rows {

namespace {

using enum ValueType;

constexpr KeyRow kNetworkRows[] = {
    {.path = "network", .type = kMap, .doc = "which addresses the job uses"},
    {.path = "network.interface",
     .type = kText,
     .default_value = "auto",
     .least = 1,
     .doc = "interface of MASTER_ADDR, NCCL and Gloo"},
    {.path = "network.ports",
     .type = kPorts,
     .default_value = "auto",
     .words = "auto",
     .doc = "ports that ranks are given, as 20000-20999"},
    {.path = "control", .type = kMap, .doc = "how workers reach the supervisor"},
    {.path = "control.address",
     .type = kText,
     .default_value = "auto",
     .least = 1,
     .doc = "its address as the hosts see it"},
    {.path = "control.ports",
     .type = kPorts,
     .default_value = "auto",
     .words = "auto",
     .doc = "ports that it listens on, as 20000-20999"},
    {.path = "control.via",
     .type = kWord,
     .default_value = "direct",
     .words = "direct|ssh",
     .doc = "ssh: through the SSH session, where hosts cannot call back"},
    {.path = "supervisor", .type = kMap, .doc = "the process that decides"},
    {.path = "supervisor.on",
     .type = kText,
     .default_value = "here",
     .least = 1,
     .unbuilt = "*",
     .built = "first",
     .doc = "here, first (the first host), or a host"},
};

}  // namespace

std::span<const KeyRow> network() { return kNetworkRows; }

}  // namespace monarch::schema_rows
