#include "cli/start/started_line.h"

#include <string>
#include <utility>

#include "cli/args/say.h"

namespace monarch {

namespace {

Json door_json(const std::string& door) { return door.empty() ? Json() : Json(door); }

}  // namespace

Json started_json(const JobStatus& status) {
  Json hosts = Json::array();
  std::string first;
  for (const HostStatus& host : status.hosts) {
    if (host.phase == "on request") continue;  // nobody has asked for it, and it is no machine
    hosts.append(Json::object({{"name", host.name}, {"door", door_json(host.door)}}));
    if (first.empty()) first = host.door;
  }
  return Json::object({{"v", 1},
                       {"type", "started"},
                       {"job", status.job_id},
                       {"phase", status.phase.empty() ? Json() : Json(status.phase)},
                       {"door", door_json(first)},
                       {"hosts", std::move(hosts)}});
}

void write_started(const JobView& view, const JobSpec& spec, bool json, const Context& context) {
  if (!json) return write_out(context.terminal, view.id() + "\n");
  const auto status = view.status(spec);
  write_out(context.terminal,
            to_json(started_json(status.ok() ? *status : JobStatus{.job_id = view.id(), .phase = {}})) + "\n");
}

}  // namespace monarch
