#include "supervisor/doctor/host_rows.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "supervisor/doctor/machine_limits.h"
#include "transport/base/text.h"
#include "transport/process/read_small.h"

namespace monarch::doctor {

namespace {

constexpr std::array<std::string_view, 12> kTitles = {"HOST",  "REACHED", "CLOCK", "FILES", "LOCKED",    "DISK FREE",
                                                      "CORES", "GPUS",    "RDMA",  "GROUP", "CALL-BACK", "NEIGHBOURS"};

Health worst(const HostFindings& findings, const std::string& host, const std::vector<std::string_view>& checks) {
  Health health = Health::kFine;
  for (const HostFinding& finding : findings) {
    const bool concerns =
        checks.empty() || std::find(checks.begin(), checks.end(), finding.finding.check) != checks.end();
    if (finding.host == host && concerns) health = std::max(health, finding.finding.health);
  }
  return health;
}

// What is smaller than the error may be nothing.
std::string clock_text(const ClockSample& clock) {
  const bool behind = clock.offset < Duration();
  const Duration size = behind ? Duration() - clock.offset : clock.offset;
  return size <= clock.bound ? "±" + to_text(clock.bound) : text(behind ? "-" : "+", to_text(size));
}

// "2 of 2"
std::string reached_text(const std::vector<DoorReached>& calls) {
  if (calls.empty()) return "";
  const auto reached =
      std::count_if(calls.begin(), calls.end(), [](const DoorReached& call) { return call.error.empty(); });
  return text(reached, " of ", calls.size());
}

std::string disk_text(const HostFacts& facts) {
  for (const FolderFacts& place : facts.places) {
    if (place.name == "state and logs") return size_text(place.free_bytes);
  }
  return "";
}

std::string rdma_text(const HostFacts& facts) {
  if (facts.rdma.empty()) return "";
  const auto active = std::count_if(facts.rdma.begin(), facts.rdma.end(),
                                    [](const RdmaPortFacts& port) { return port.state == "ACTIVE"; });
  return text(active, " of ", facts.rdma.size());
}

std::string reached_after(const HostSeen& host) {
  if (host.facts) return to_text(host.reached_after) + (host.copied ? ", copied" : "");
  return host.failure ? name_of(host.failure->kind) : host.silent ? "no answer" : "";
}

Json folder_json(const FolderFacts& folder) {
  return Json::object({{"name", folder.name},
                       {"path", folder.path},
                       {"error", folder.error},
                       {"free_bytes", folder.free_bytes},
                       {"total_bytes", folder.total_bytes}});
}

Json limit_json(const LimitFacts& limit) {
  return Json::object({{"soft", limit_text(limit.soft)}, {"hard", limit_text(limit.hard)}});
}

Json calls_json(const std::vector<DoorReached>& calls) {
  Json json = Json::array();
  for (const DoorReached& each : calls) {
    json.append(Json::object({{"to", each.call.name},
                              {"address", each.call.address},
                              {"port", static_cast<std::int64_t>(each.call.port)},
                              {"error", each.error}}));
  }
  return json;
}

Json facts_json(const HostFacts& facts) {
  Json places = Json::array();
  for (const FolderFacts& place : facts.places) places.append(folder_json(place));
  Json gpus = Json::array();
  for (const Gpu& gpu : facts.inventory.gpus) gpus.append(gpu.uuid);
  Json ports = Json::array();
  for (const RdmaPortFacts& port : facts.rdma) {
    ports.append(
        Json::object({{"port", port.name}, {"state", port.state}, {"link", port.link_layer}, {"rate", port.rate}}));
  }
  return Json::object({{"version", facts.version},
                       {"kernel", facts.kernel},
                       {"machine", facts.machine},
                       {"user", facts.user},
                       {"address", facts.address},
                       {"files", limit_json(facts.files)},
                       {"locked", limit_json(facts.locked)},
                       {"processes", limit_json(facts.processes)},
                       {"cgroup", facts.no_cgroup_because.empty()},
                       {"cores", facts.inventory.cpus},
                       {"gpus", gpus},
                       {"rdma", ports},
                       {"places", places}});
}

}  // namespace

std::vector<std::string> host_titles() { return {kTitles.begin(), kTitles.end()}; }

std::vector<std::vector<HostCell>> host_rows(const std::vector<HostSeen>& hosts, const HostFindings& findings) {
  std::vector<std::vector<HostCell>> rows;
  for (const HostSeen& host : hosts) {
    const auto health = [&](const std::vector<std::string_view>& checks) { return worst(findings, host.name, checks); };
    const HostFacts facts = host.facts.value_or(HostFacts{});
    const auto known = [&](std::string words) { return host.facts ? std::move(words) : std::string(); };
    rows.push_back({{host.name, health({})},
                    {reached_after(host), health({"reach", "host key", "login", "worker"})},
                    {host.clock ? clock_text(*host.clock) : "", health({"clock"})},
                    {known(limit_text(facts.files.soft)), health({"limits"})},
                    {known(bytes_limit_text(facts.locked.soft)), health({"limits"})},
                    {known(disk_text(facts)), health({"disk"})},
                    {known(text(facts.inventory.cpus)), health({"processors", "resources"})},
                    {known(text(facts.inventory.gpus.size())), health({"GPUs", "resources"})},
                    {known(rdma_text(facts)), health({"RDMA"})},
                    {known(facts.no_cgroup_because.empty() ? "own" : "no"), health({"containment"})},
                    {host.tunnel ? "tunnel" : reached_text(host.call_back), health({"call-back"})},
                    {reached_text(host.neighbours), health({"neighbours"})}});
  }
  return rows;
}

HostFindings folded(const HostFindings& findings) {
  HostFindings out;
  for (const HostFinding& finding : findings) {
    const auto same = std::find_if(out.begin(), out.end(), [&finding](const HostFinding& other) {
      return other.finding.check == finding.finding.check && other.finding.found == finding.finding.found &&
             other.finding.health == finding.finding.health && other.finding.means == finding.finding.means;
    });
    if (same == out.end()) {
      out.push_back(finding);
    } else {
      same->host += ", " + finding.host;
    }
  }
  return out;
}

Json host_json(const HostSeen& host, const HostFindings& findings) {
  Json json = Json::object({{"v", 1},
                            {"type", "host"},
                            {"host", host.name},
                            {"health", health_name(worst(findings, host.name, {}))},
                            {"failure", host.failure ? name_of(host.failure->kind) : ""}});
  if (!host.facts) return json;
  json.set("reached_ms", host.reached_after.count_milliseconds());
  json.set("copied", host.copied);
  if (host.clock) {
    json.set("clock_offset_ms", static_cast<double>(host.clock->offset.count_nanoseconds()) / 1e6);
    json.set("clock_bound_ms", static_cast<double>(host.clock->bound.count_nanoseconds()) / 1e6);
  }
  json.set("tunnel", host.tunnel);
  json.set("call_back", calls_json(host.call_back));
  json.set("neighbours", calls_json(host.neighbours));
  json.set("facts", facts_json(*host.facts));
  return json;
}

Json host_finding_json(const HostFinding& finding) {
  Json json = finding_json(finding.finding);
  json.set("host", finding.host);
  return json;
}

}  // namespace monarch::doctor
