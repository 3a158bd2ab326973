#include "supervisor/doctor/odd_hosts.h"

#include <algorithm>
#include <functional>
#include <map>

#include "transport/base/text.h"

namespace monarch::doctor {

namespace {

constexpr std::size_t kFewHosts = 3;

struct Trait {
  std::string check;
  Health health;
  std::function<std::string(const HostFacts&)> of;  // empty: not known
  std::string means;
  std::string fix;
};

// Of the interface by which the job talks.
std::string mtu_of(const HostFacts& facts) {
  for (const InterfaceFacts& interface : facts.interfaces) {
    if (interface.address == facts.address && interface.mtu != 0) return text("an MTU of ", interface.mtu);
  }
  return "";
}

std::string active_ports_of(const HostFacts& facts) {
  const auto active = std::count_if(facts.rdma.begin(), facts.rdma.end(),
                                    [](const RdmaPortFacts& port) { return port.state == "ACTIVE"; });
  return counted(static_cast<std::size_t>(active), "active RDMA port");
}

std::vector<Trait> traits() {
  return {
      {.check = "GPUs",
       .health = Health::kWarning,
       .of = [](const HostFacts& facts) { return counted(facts.inventory.gpus.size(), "GPU"); },
       .means = "a GPU fell off its bus, or this is another kind of machine",
       .fix = "nvidia-smi and dmesg there say more; exclude the host until it is like the others"},
      {.check = "RDMA",
       .health = Health::kWarning,
       .of = active_ports_of,
       .means = "traffic of this host is slower, or goes another way",
       .fix = "ibstat, or rdma link, there"},
      {.check = "network",
       .health = Health::kWarning,
       .of = mtu_of,
       .means =
           "large packets between it and the others are lost or split: connections open, and hang when they carry much",
       .fix = "ip link show, there and on another host; set the same MTU on both, and on the switch between"},
      {.check = "machine",
       .health = Health::kWarning,
       .of = [](const HostFacts& facts) { return facts.machine; },
       .means = "a program that was built for the others does not run there",
       .fix = "another pool for hosts of this kind"},
      {.check = "processors",
       .health = Health::kNote,
       .of = [](const HostFacts& facts) { return counted(facts.inventory.cpus, "usable core"); },
       .means = "ranks there may be slower than the others, and hold them up",
       .fix = "lscpu and taskset -p 1, there, say which are missing"},
      {.check = "containment",
       .health = Health::kNote,
       .of =
           [](const HostFacts& facts) {
             return std::string(facts.no_cgroup_because.empty() ? "a writable cgroup" : "no writable cgroup");
           },
       .means = "what ranks start is found by its marks there, and by its group on the others",
       .fix = "loginctl enable-linger, and systemd's delegation of the user's slice, are set in another way there"},
  };
}

}  // namespace

HostFindings odd_hosts(const std::vector<HostSeen>& hosts) {
  HostFindings findings;
  for (const Trait& trait : traits()) {
    std::map<std::string, std::size_t> counts;
    std::size_t known = 0;
    for (const HostSeen& host : hosts) {
      const std::string value = host.facts ? trait.of(*host.facts) : "";
      if (value.empty()) continue;
      ++counts[value];
      ++known;
    }
    const auto most = std::max_element(counts.begin(), counts.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    if (known < kFewHosts || most->second * 2 <= known) continue;
    for (const HostSeen& host : hosts) {
      const std::string value = host.facts ? trait.of(*host.facts) : "";
      if (value.empty() || value == most->first) continue;
      findings.push_back(
          {.host = host.name,
           .finding = {.check = trait.check,
                       .health = trait.health,
                       .found = text(value, ", where ", most->second, " of ", known, " hosts have ", most->first),
                       .means = trait.means,
                       .fix = trait.fix}});
    }
  }
  return findings;
}

}  // namespace monarch::doctor
