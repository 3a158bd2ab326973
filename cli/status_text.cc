#include "cli/status_text.h"

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <utility>

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

bool spoke(const RankStatus& rank) { return rank.progress_age_milliseconds >= 0; }

std::string ready_words(const RankStatus& rank) {
  const bool lives = rank.phase == "running" || rank.phase == "suspended" || rank.phase == "stopping";
  return !lives ? std::string() : rank.ready ? "yes" : "no";
}

std::string metrics_words(const RankStatus& rank) {
  std::vector<std::string> metrics;
  for (const auto& [name, value] : rank.progress.metrics) metrics.push_back(text(name, ' ', value));
  return join(metrics, ", ");
}

// Tenths of a second while they tell something.
std::string age_words(const RankStatus& rank) {
  if (!spoke(rank)) return {};
  const std::int64_t unit = rank.progress_age_milliseconds < 10'000 ? 100 : 1'000;
  return text(to_text(Duration::milliseconds(rank.progress_age_milliseconds / unit * unit)), " ago");
}

// Columns of what ranks say of themselves.
struct SaidColumn {
  const char* title;
  std::string (*words)(const RankStatus&);
};
constexpr SaidColumn kSaid[] = {
    {"STEP", [](const RankStatus& rank) { return rank.progress.step ? text(*rank.progress.step) : std::string(); }},
    {"IN", [](const RankStatus& rank) { return rank.progress.phase; }},
    {"METRICS", metrics_words},
    {"STATUS", [](const RankStatus& rank) { return rank.progress.status; }},
    {"SAID", age_words},
};

// Those in which any rank has something; whether it is ready, where ranks speak or differ in that.
std::vector<SaidColumn> said_columns(const MeshStatus& mesh) {
  std::vector<SaidColumn> columns;
  const auto any = [&mesh](auto holds) { return std::any_of(mesh.ranks.begin(), mesh.ranks.end(), holds); };
  const bool differ = any([](const RankStatus& rank) { return ready_words(rank) == "yes"; }) &&
                      any([](const RankStatus& rank) { return ready_words(rank) == "no"; });
  if (differ || any(spoke)) columns.push_back({"READY", ready_words});
  for (const SaidColumn& column : kSaid) {
    if (any([&column](const RankStatus& rank) { return !column.words(rank).empty(); })) columns.push_back(column);
  }
  return columns;
}

std::string mesh_text(const MeshStatus& mesh, bool colour, std::size_t columns) {
  std::vector<std::string> dims;
  for (const auto& [name, size] : mesh.dims) dims.push_back(text(name, "=", size));
  std::string out = text("\nmesh ", paint(Colour::kBold, mesh.name, colour), "   ", join(dims, " × "), "   ",
                         paint(phase_colour(mesh.phase), mesh.phase, colour), "\n");
  const std::vector<SaidColumn> said = said_columns(mesh);
  std::vector<std::string> titles{"  RANK", "HOST", "PHASE", "PID", "GENERATION"};
  for (const SaidColumn& column : said) titles.emplace_back(column.title);
  titles.emplace_back("END");
  Table table(std::move(titles));
  for (const RankStatus& rank : mesh.ranks) {
    std::vector<Table::Cell> row{plain(text("  ", rank.rank)), plain(rank.host), phase(rank.phase),
                                 plain(rank.pid == 0 ? std::string() : text(rank.pid)),
                                 plain(rank.generation == 0 ? std::string() : text(rank.generation))};
    for (const SaidColumn& column : said) row.push_back(plain(column.words(rank)));
    row.push_back(plain(rank.end));
    table.add(std::move(row));
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
  if (phase == "suspect" || phase == "suspended" || phase == "stopping" || phase == "interrupted")
    return Colour::kYellow;
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
