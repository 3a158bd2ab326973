#include "cli/show/status_text.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include "cli/term/cause_text.h"
#include "cli/term/ranges_text.h"
#include "cli/term/table.h"
#include "supervisor/client/link/viewer_json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// Counts what an honest job adds to at any time: no news for a person, and in --json.
bool is_usual(std::string_view counter) {
  const std::string_view name = counter.substr(counter.find('.') + 1);
  return name == "accepted" || name == "handshaken" || name == "messages" || name == "disconnected";
}

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
    {"STANDS STILL", [](const RankStatus& rank) { return rank.standstill; }},
    {"HANGS", [](const RankStatus& rank) { return rank.watched ? std::string() : std::string("not watched"); }},
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

// Of gangs that were started again, in the order of their numbers.
std::string restarts_text(const MeshStatus& mesh) {
  constexpr std::size_t kMostLines = 16;
  const std::string of = mesh.restart.max ? text(" of ", *mesh.restart.max) : std::string(", unlimited,");
  const std::string window = to_text(Duration::milliseconds(mesh.restart.window_milliseconds));
  std::string out;
  std::size_t lines = 0;
  for (std::size_t g = 0; g < mesh.gangs.size(); ++g) {
    const GangStatus& gang = mesh.gangs[g];
    if (gang.restarts == 0 || ++lines > kMostLines) continue;
    out += text("  gang ", g, " (", gang.phase, ") was started again ", gang.restarts,
                gang.restarts == 1 ? " time; restarts that count: " : " times; restarts that count: ", gang.failures,
                of, " in ", window, "\n");
  }
  if (lines > kMostLines) out += text("  and ", lines - kMostLines, " more gangs\n");
  return out;
}

std::string remaining_text(std::int64_t milliseconds) {
  return to_text(Duration::seconds((milliseconds + 999) / 1'000));
}

// Why it is not used, or not yet.
std::string note_of(const HostStatus& host) {
  std::vector<std::string> notes;
  if (host.role == "spare" && !host.preparation.empty()) {
    notes.push_back(host.preparation == "unprepared" ? "not prepared" : host.preparation);
  }
  if (!host.standing.empty()) {
    const bool said = host.standing_because.starts_with(host.standing);
    notes.push_back(said ? printable(host.standing_because) : host.standing);
  }
  if (host.returns_milliseconds >= 0) {
    notes.push_back(text("may be launched again in ", remaining_text(host.returns_milliseconds)));
  }
  if (host.held_milliseconds >= 0) {
    notes.push_back(text("silent with many others: not given up within ", remaining_text(host.held_milliseconds)));
  }
  if (!host.shortage.empty()) notes.push_back(printable(host.shortage));
  return join(notes, "; ");
}

std::string mesh_text(const MeshStatus& mesh, bool colour, std::size_t columns) {
  std::vector<std::string> dims;
  for (const auto& [name, size] : mesh.dims) dims.push_back(text(name, "=", size));
  std::string out =
      text("\nmesh ", paint(Colour::kBold, mesh.name, colour), "   ", join(dims, " × "), "   ",
           paint(phase_colour(mesh.phase), mesh.phase, colour), mesh.trusts_job ? "   trust: job" : "", "\n");
  out += restarts_text(mesh);
  const std::vector<SaidColumn> said = said_columns(mesh);
  std::vector<std::string> titles{"  RANK", "HOST", "PHASE", "PID", "GENERATION"};
  for (const SaidColumn& column : said) titles.emplace_back(column.title);
  titles.emplace_back("END");
  Table table(std::move(titles));
  for (const RankStatus& rank : mesh.ranks) {
    if (rank.phase == "idle") continue;
    std::vector<Table::Cell> row{plain_cell(text("  ", rank.rank)), plain_cell(rank.host), phase(rank.phase),
                                 plain_cell(rank.pid == 0 ? std::string() : text(rank.pid)),
                                 plain_cell(rank.generation == 0 ? std::string() : text(rank.generation))};
    for (const SaidColumn& column : said) row.push_back(plain_cell(column.words(rank)));
    row.push_back(plain_cell(rank.end));
    table.add(std::move(row));
  }
  return out + table.render(colour, columns);
}

// "time  97.1 % new, 1.2 % redone, 1.7 % starting": where the ranks' time went, the parts that show.
std::string time_text(const MeshStatus& mesh) {
  std::int64_t all = 0;
  for (const auto& [bin, milliseconds] : mesh.rank_milliseconds) all += milliseconds;
  std::vector<std::string> parts;
  for (const auto& [bin, milliseconds] : mesh.rank_milliseconds) {
    const std::int64_t permille = all == 0 ? 0 : (milliseconds * 1'000 + all / 2) / all;
    if (permille > 0) parts.push_back(text(permille / 10, '.', permille % 10, " % ", bin));
  }
  return parts.empty() ? std::string() : text("  time ", join(parts, ", "), "\n");
}

// "committed step 1200 (generation 2)"; of each gang where there are more.
std::string committed_text(const MeshStatus& mesh) {
  std::vector<std::string> gangs;
  for (const CommittedStatus& one : mesh.committed) {
    const bool alone = mesh.committed.size() == 1 && one.gang == 0;
    gangs.push_back(
        text(alone ? "" : text("gang ", one.gang, " "), "step ", one.step, " (generation ", one.generation, ")"));
  }
  return gangs.empty() ? std::string() : text("  committed ", join(gangs, ", "), "\n");
}

// "claim 1, workers, of v1: 0-2" and "253 idle: 3-255"
std::string slots_text(const MeshStatus& mesh) {
  std::string out;
  for (const ClaimStatus& claim : mesh.claims) {
    out += text("  claim ", claim.claim, claim.name.empty() ? "" : ", ", printable(claim.name), ", of ", claim.host,
                ": ", ranges_text({claim.ranks.begin(), claim.ranks.end()}), "\n");
  }
  std::set<std::uint32_t> idle;
  for (const RankStatus& rank : mesh.ranks) {
    if (rank.phase == "idle") idle.insert(rank.rank);
  }
  return idle.empty() ? out : text(out, "  ", idle.size(), " idle: ", ranges_text(idle), "\n");
}

// "standby 0 on v3, at its gate"
std::string standby_text(const MeshStatus& mesh) {
  std::string out;
  for (std::size_t i = 0; i < mesh.standby.size(); ++i) {
    const StandbyStatus& one = mesh.standby[i];
    const std::string where = one.hosts.empty() ? " for spares" : text(" on ", join(one.hosts, ", "));
    const std::string_view how = one.phase == "ready"      ? ", at its gate"
                                 : one.phase == "taken"    ? ", takes a gang's place"
                                 : one.phase == "waiting"  ? ""
                                 : one.phase == "starting" ? ", starting"
                                                           : ", stopping";
    out += text("  standby ", i, one.phase == "waiting" ? ", waits" : "", where, how, "\n");
  }
  return out;
}

// "drill smoke since 12s, fault 3 open"
std::string drill_text(const DrillStatus& drill) {
  std::vector<std::string> numbers;
  for (const std::uint32_t number : drill.open) numbers.push_back(text(number));
  const std::string open = text(numbers.size() == 1 ? ", fault " : ", faults ", join(numbers, ", "), " open");
  return text("drill ", printable(drill.name), " since ", to_text(Duration::seconds(drill.since_milliseconds / 1'000)),
              numbers.empty() ? "" : open, drill.stopped ? ", told to end" : "", "\n");
}

std::string hosts_table(const JobStatus& status, bool colour, std::size_t columns) {
  const auto has_note = [](const HostStatus& host) { return !note_of(host).empty(); };
  const bool notes = std::any_of(status.hosts.begin(), status.hosts.end(), has_note);
  std::vector<std::string> titles{"  HOST", "PHASE", "ROLE", "KEEPER", "DAEMON STARTS", "SILENT", "ROUND TRIP"};
  if (notes) titles.emplace_back("NOTE");
  Table table(std::move(titles));
  for (const HostStatus& host : status.hosts) {
    if (host.phase == "on request") continue;  // nobody has asked for it
    // The journal knows no silences, and who is not there is not silent.
    const bool live = status.supervisor_pid != 0 && (host.phase == "ready" || host.phase == "suspect");
    std::vector<Table::Cell> row{
        plain_cell("  " + host.name),
        phase(host.phase),
        plain_cell(host.role),
        plain_cell(host.keeper_pid == 0 ? std::string() : text(host.keeper_pid)),
        plain_cell(host.daemon_starts == 0 ? std::string() : text(host.daemon_starts)),
        plain_cell(live ? to_text(Duration::milliseconds(host.silent_milliseconds)) : std::string()),
        plain_cell(live && host.round_trip_microseconds > 0 ? text(host.round_trip_microseconds, " us")
                                                            : std::string())};
    if (notes) row.push_back(plain_cell(note_of(host)));
    table.add(std::move(row));
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
  if (status.drill) out += drill_text(*status.drill);
  for (const MeshStatus& mesh : status.meshes) {
    out += mesh_text(mesh, colour, columns) + time_text(mesh) + committed_text(mesh) + slots_text(mesh) +
           standby_text(mesh);
  }
  out += hosts_table(status, colour, columns);
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
