#pragma once

// host_facts(): what a doctor wants to know of this host and this login, as it is, without an opinion. Nothing is
// changed but a group and a few probes, which are removed at once.
//
// Thread: the only one of its process (it forks).

#include <string>

#include "transport/messages/check.h"
#include "worker/core/environment.h"

namespace monarch {

// Where the kernel and the system show the machine; another place in tests.
struct HostFactsRoots {
  std::string proc = "/proc";
  std::string sys = "/sys";
  std::string etc = "/etc";
};

HostFacts host_facts(const CheckRequest& request, const Environment& environment, const HostFactsRoots& roots = {});

// The parts of it that read files alone.
bool kills_at_logout(const std::string& user, const HostFactsRoots& roots);
std::vector<RdmaPortFacts> rdma_ports(const HostFactsRoots& roots);
ProgramFacts find_program(const ProgramNeed& need, const Environment& environment);

}  // namespace monarch
