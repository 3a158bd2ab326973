#include <algorithm>

#include "cli/args/say.h"
#include "cli/away/away.h"
#include "cli/commands.h"
#include "cli/job/job_argument.h"
#include "cli/job/spec_input.h"
#include "cli/show/status_text.h"
#include "cli/term/table.h"
#include "supervisor/client/job_glance.h"
#include "supervisor/client/link/viewer_json.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

// What `ps` shows of one job; what cannot be read is left out, and `status` says why.
struct Row {
  KnownJob job;
  std::string phase;
  std::size_t running = 0;
  std::size_t ranks = 0;
  std::size_t hosts = 0;
  std::optional<std::int64_t> exit_code = {};
  std::string where = {};             // the host on which it lives; empty: this machine
  std::optional<WallTime> seen = {};  // then: when a command last spoke with it
};

void fill_in_status(Row& row, const JobView& view, bool away) {
  const auto spec_text = view.spec_text();
  const auto directory = view.spec_directory();
  if (!spec_text.ok() || !directory.ok()) return;
  const auto spec = parse_stored_spec(*spec_text, *directory);
  if (!spec.ok()) return;
  row.hosts = spec->pool_size() - spec->hosts_on_request();
  for (const MeshSpec& mesh : spec->meshes) row.ranks += mesh.size();
  if (row.job.life == JobLife::kEnded || away) return;
  if (view.queued()) {
    row.phase = "queued";
    return;
  }
  const auto status = view.status(*spec);
  if (!status.ok()) return;
  if (row.job.life == JobLife::kLive) row.phase = status->phase;
  for (const MeshStatus& mesh : status->meshes) {
    row.running += static_cast<std::size_t>(std::count_if(
        mesh.ranks.begin(), mesh.ranks.end(), [](const RankStatus& rank) { return rank.phase == "running"; }));
  }
}

// Nobody is asked over a network: what is shown is what was seen.
void fill_in_glance(Row& row, const JobView& view) {
  const auto seen = read_glance(view.directory().directory);
  if (!seen) return;
  row.seen = seen->at;
  row.running = seen->glance.running;
  row.exit_code = seen->glance.exit_code;
  if (!seen->glance.phase.empty()) row.phase = seen->glance.phase;
}

Row row_of(const StateDir& state, const KnownJob& job) {
  Row row{.job = job, .phase = std::string(life_name(job.life))};
  const auto view = JobView::open(state, job.id);
  if (!view.ok()) return row;
  const auto where = away_of(*view);
  fill_in_status(row, *view, where.has_value());
  if (where) {
    row.where = where->host;
    fill_in_glance(row, *view);
  } else if (job.life == JobLife::kEnded) {
    const auto verdict = view->verdict();
    if (!verdict.ok() || !*verdict) return row;
    row.exit_code = (*verdict)->exit_code;
    row.phase = outcome_name((*verdict)->outcome);
  }
  return row;
}

std::string json_line(const Row& row) {
  Json exit_code;
  Json where;
  Json seen;
  if (row.exit_code) exit_code = *row.exit_code;
  if (!row.where.empty()) where = row.where;
  if (row.seen) seen = to_text(*row.seen);
  return to_json(Json::object({{"v", 1},
                               {"type", "job"},
                               {"job", row.job.id},
                               {"name", job_name(row.job.id)},
                               {"life", life_name(row.job.life)},
                               {"phase", row.phase},
                               {"created", to_text(row.job.created)},
                               {"ranks", row.ranks},
                               {"ranks_running", row.running},
                               {"hosts", row.hosts},
                               {"exit_code", std::move(exit_code)},
                               {"where", std::move(where)},
                               {"seen", std::move(seen)}})) +
         "\n";
}

std::string table_of(const std::vector<Row>& rows, const Terminal& terminal) {
  const bool away = std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.where.empty(); });
  std::vector<std::string> titles = {"JOB", "PHASE", "CREATED", "HOSTS", "RANKS", "RUNNING", "EXIT"};
  if (away) titles.emplace_back("WHERE");
  Table table(std::move(titles));
  for (const Row& row : rows) {
    std::vector<Table::Cell> cells = {plain_cell(row.job.id),
                                      {.words = row.phase, .colour = phase_colour(row.phase)},
                                      plain_cell(to_text(row.job.created)),
                                      plain_cell(text(row.hosts)),
                                      plain_cell(text(row.ranks)),
                                      plain_cell(row.job.life == JobLife::kLive ? text(row.running) : std::string()),
                                      plain_cell(row.exit_code ? text(*row.exit_code) : std::string())};
    if (away) cells.push_back(plain_cell(row.where.empty() ? "here" : row.where));
    table.add(std::move(cells));
  }
  return table.render(terminal.out_colour, terminal.out_columns);
}

int run_ps(const Arguments& arguments, Context& context) {
  const StateArgument state = take_state(context);
  if (state.exit_code != kExitOk) return state.exit_code;
  std::vector<Row> rows;
  std::size_t hidden = 0;
  if (state.state) {
    const auto jobs = list_jobs(*state.state);
    if (!jobs.ok()) {
      say_error(context.terminal, state_complaint(jobs.error().message));
      return kExitUsage;
    }
    for (const KnownJob& job : *jobs) {
      const bool shown = arguments.has("all") || job.life != JobLife::kEnded;
      if (shown) rows.push_back(row_of(*state.state, job));
      hidden += shown ? 0 : 1;
    }
  }
  if (arguments.has("json")) {
    std::string lines;
    for (const Row& row : rows) lines += json_line(row);
    write_out(context.terminal, lines);
    return kExitOk;
  }
  if (!rows.empty()) write_out(context.terminal, table_of(rows, context.terminal));
  if (std::any_of(rows.begin(), rows.end(), [](const Row& row) { return !row.where.empty(); })) {
    say_note(context.terminal,
             "jobs on other machines are shown as they were when last spoken with; monarch status JOB asks");
  }
  for (const Row& row : rows) {
    if (row.job.life != JobLife::kAbandoned || !row.where.empty()) continue;
    say_note(context.terminal, text(row.job.id, " has no supervisor: monarch up --resume ", row.job.id,
                                    " goes on with what still runs, monarch rm ", row.job.id, " ends and removes it"));
  }
  if (rows.empty()) say_note(context.terminal, hidden == 0 ? "there is no job" : "no job is live");
  if (hidden > 0)
    say_note(context.terminal,
             text(hidden, hidden == 1 ? " job that has ended: " : " jobs that have ended: ", "monarch ps --all"));
  return kExitOk;
}

}  // namespace

Command ps_command() {
  return {.name = "ps",
          .summary = "list the jobs that live, or all",
          .description = "",
          .flags = {{.name = "all", .value = "", .help = "also those that have ended", .letter = 'a'},
                    {.name = "json", .value = "", .help = "one object per line"}},
          .positionals = {},
          .run = run_ps};
}

}  // namespace monarch
