// Lists of hosts: whatever the bytes are, each name that comes out is one that another program can be given, no two are
// alike, and folding is the inverse of expanding. The same bytes as a file of hosts, and as a host to go through.

#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>

#include "supervisor/core/spec/hostlist.h"
#include "supervisor/launch/ssh/ssh_spec.h"
#include "supervisor/spec/hosts/hosts_file.h"
#include "supervisor/spec/hosts/network_names.h"
#include "supervisor/spec/hosts/ssh_hosts.h"
#include "transport/base/assert.h"
#include "transport/base/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace monarch;
  const std::string_view list(reinterpret_cast<const char*>(data), size);
  const auto names = expand_hostlist(list);
  const auto slots = expand_slot_list(list);
  if (names.ok()) {
    MONARCH_ASSERT(!names->empty() && names->size() <= limits::kHostlistNames);
    MONARCH_ASSERT(std::set<std::string_view>(names->begin(), names->end()).size() == names->size());
    for (const std::string& name : *names) MONARCH_ASSERT(is_host_name(name) && name.front() != '-');
    const auto again = expand_hostlist(fold_hostlist(*names));
    MONARCH_ASSERT(again.ok() && *again == *names);
    MONARCH_ASSERT(slots.ok() && slots->size() == names->size());
  }
  if (slots.ok()) {
    for (const HostSlots& host : *slots) {
      MONARCH_ASSERT(is_host_name(host.name));
      MONARCH_ASSERT(!host.slots || (*host.slots >= 1 && *host.slots <= limits::kRanksPerJob));
    }
  }
  if (const auto jump = read_jump(list)) {
    MONARCH_ASSERT(is_address(jump->address) && (jump->user.empty() || is_user_name(jump->user)) && jump->port != 0);
  }
  Report report("hosts.txt", list);
  const YamlNode hosts = read_hosts_file(list, report, 0);
  for (const SshHost& host : read_ssh_hosts(hosts, "hosts.txt", {}, report)) {
    MONARCH_ASSERT(is_host_name(host.name) && (host.user.empty() || is_user_name(host.user)));
  }
  (void)render(report.diagnostics(), list);
  return 0;
}
