#include "cli/status_text.h"

#include <string_view>

#include "cli/result_text.h"
#include "cli/table.h"
#include "supervisor/client/viewer_json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Counts what an honest job adds to at any time: no news for a person, and in --json.
bool is_usual(std::string_view counter) {
  const std::string_view name = counter.substr(counter.find('.') + 1);
  return name == "accepted" || name == "handshaken" || name == "messages" || name == "disconnected";
}

Table::Cell plain(std::string words) { return {.words = std::move(words), .colour = Colour::kNone}; }
Table::Cell phase(const std::string& name) { return {.words = name, .colour = phase_colour(name)}; }

std::string mesh_text(const MeshStatus& mesh, bool colour, std::size_t columns) {
  std::vector<std::string> dims;
  for (const auto& [name, size] : mesh.dims) dims.push_back(text(name, "=", size));
  std::string out = text("\nmesh ", paint(Colour::kBold, mesh.name, colour), "   ", join(dims, " × "), "   ",
                         paint(phase_colour(mesh.phase), mesh.phase, colour), "\n");
  Table table({"  RANK", "HOST", "PHASE", "PID", "GENERATION", "END"});
  for (const RankStatus& rank : mesh.ranks) {
    table.add({plain(text("  ", rank.rank)), plain(rank.host), phase(rank.phase),
               plain(rank.pid == 0 ? std::string() : text(rank.pid)),
               plain(rank.generation == 0 ? std::string() : text(rank.generation)), plain(rank.end)});
  }
  return out + table.render(colour, columns);
}

std::string hosts_text(const JobStatus& status, bool colour, std::size_t columns) {
  Table table({"  HOST", "PHASE", "ROLE", "KEEPER", "DAEMON STARTS", "SILENT", "ROUND TRIP"});
  const bool live = status.supervisor_pid != 0;  // the journal knows no silences
  for (const HostStatus& host : status.hosts) {
    table.add(
        {plain("  " + host.name), phase(host.phase), plain(host.role),
         plain(host.keeper_pid == 0 ? std::string() : text(host.keeper_pid)),
         plain(host.daemon_starts == 0 ? std::string() : text(host.daemon_starts)),
         plain(live ? to_text(Duration::milliseconds(host.silent_milliseconds)) : std::string()),
         plain(live && host.round_trip_microseconds > 0 ? text(host.round_trip_microseconds, " us") : std::string())});
  }
  return text("\n", table.render(colour, columns));
}

}  // namespace

Colour phase_colour(std::string_view phase) {
  if (phase == "running" || phase == "ready" || phase == "done" || phase == "succeeded" || phase == "live")
    return Colour::kGreen;
  if (phase == "failed" || phase == "lost" || phase == "wedged" || phase == "abandoned") return Colour::kRed;
  if (phase == "suspect" || phase == "stopping" || phase == "interrupted") return Colour::kYellow;
  return Colour::kNone;
}

std::string status_text(const JobStatus& status, bool colour, std::size_t columns) {
  const bool ended = status.verdict.has_value();
  std::string supervisor = text("supervisor pid ", status.supervisor_pid);
  if (status.supervisor_pid == 0) supervisor = ended ? "" : "no supervisor answers; this is what its journal says";
  std::string out = text("job ", paint(Colour::kBold, status.job_id, colour), "   ",
                         paint(phase_colour(status.phase), status.phase, colour), "   term ", status.term.value(),
                         supervisor.empty() ? "" : "   ", supervisor, "\n");
  if (ended) {
    out += text("result ", outcome_name(status.verdict->outcome), " (exit ", status.verdict->exit_code,
                "): ", printable(status.verdict->reason), "\n");
    if (status.verdict->cause.rank) out += text("root cause ", cause_text(status.verdict->cause), "\n");
  }
  for (const MeshStatus& mesh : status.meshes) out += mesh_text(mesh, colour, columns);
  out += hosts_text(status, colour, columns);
  if (!status.counters.empty()) {
    std::vector<std::string> counters;
    for (const auto& [name, count] : status.counters) {
      if (count != 0 && !is_usual(name)) counters.push_back(text(name, " ", count));
    }
    if (!counters.empty()) out += text("\ncounters  ", join(counters, "   "), "\n");
  }
  return out;
}

}  // namespace monarch
