// What a spec says of virtual hosts of this machine: its keys, and what is built of them.

#include "supervisor/launch/local/local_spec.h"

#include <string>
#include <utility>
#include <vector>

#include "supervisor/launch/launchers.h"
#include "supervisor/spec/schema/launcher_spec.h"
#include "supervisor/spec/yaml/values.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::int64_t kMostLocalHosts = limits::kHostsPerJob;

constexpr KeyRow kLocalRows[] = {
    {.path = "launch.local", .type = ValueType::kMap, .doc = "virtual hosts on this machine"},
    {.path = "launch.local.hosts",
     .type = ValueType::kInteger,
     .default_value = "auto",
     .words = "auto",
     .least = 1,
     .most = kMostLocalHosts,
     .doc = "the pool; auto: what the meshes need, and the spares"},
    MONARCH_SPARES_ROWS("launch.local", "hosts"),
};

constexpr KeyHelp kLocalHelp[] = {
    {"launch.local", "{hosts: 4, spares: 1}",
     "Virtual hosts are called v1, v2, ... and have addresses of their own in 127.0.1.0/24; each has its own worker. "
     "They "
     "share the cores of this machine. Everything that real hosts can do is tried out with them."},
    {"launch.local.hosts", "4"},
    MONARCH_SPARES_HELP("launch.local", "1", "2m"),
};

Launch build_local(const YamlNode* local, Place, const PathBases&, Report& report) {
  LaunchLocal out;
  out.hosts = integer_of(local, "hosts");
  if (out.hosts == 0U) out.hosts.reset();  // refused by the schema
  out.spares = spares_of(local);
  out.prepare = prepare_of(local, report);
  return out;
}

PoolKey local_pool_key(const JobSpec&, const YamlNode* node) {
  return {.path = "launch.local.hosts",
          .called = "`launch.local.hosts`",
          .node = value_of(node, "hosts"),
          .verb = "is",
          .counts = true,
          .one_host = "host"};
}

std::vector<std::string> local_notes(const JobSpec& job) {
  std::vector<std::string> notes;
  if (!job.control.address.empty()) {
    notes.push_back(text("control.address: ", job.control.address,
                         " is not used: virtual hosts are on this machine, and reach the supervisor at 127.0.0.1"));
  }
  if (!job.network.interface.empty()) {
    notes.push_back(text("network.interface: ", job.network.interface,
                         " is not used: virtual hosts are on this machine, and reach each other by lo"));
  }
  if (job.control.via == ControlVia::kSsh) {
    notes.emplace_back("control.via: ssh is not used: virtual hosts are on this machine, without SSH");
  }
  if (job.supervisor_on == SupervisorPlace::kFirst) {
    notes.emplace_back("supervisor.on: first is not used: virtual hosts are on this machine, and so is the supervisor");
  }
  return notes;
}

}  // namespace

const LauncherSpec& local_spec() {
  static const LauncherSpec kSpec{.name = "local",
                                  .flag_words = "local, local:N for N virtual hosts of this machine",
                                  .flag_key = "hosts",
                                  .flag_counts = true,
                                  .rows = kLocalRows,
                                  .help = kLocalHelp,
                                  .build = build_local,
                                  .pool_key = local_pool_key,
                                  .check = [](const JobSpec&, const YamlNode&, Report&) {},
                                  .notes = local_notes};
  return kSpec;
}

}  // namespace monarch
