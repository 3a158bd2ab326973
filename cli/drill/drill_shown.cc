// What `monarch drill` shows without drilling anything: who would be struck, which faults there are, and what a report
// comes to when it is measured again.

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "cli/args/say.h"
#include "cli/drill/drill_orders.h"
#include "cli/drill/drill_plan.h"
#include "cli/drill/drill_targets.h"
#include "cli/show/drill_text.h"
#include "cli/term/table.h"
#include "supervisor/drill/core/drill_core.h"
#include "supervisor/drill/core/drill_words.h"
#include "supervisor/drill/core/faults.h"
#include "supervisor/drill/core/measure.h"
#include "supervisor/drill/page/page.h"
#include "supervisor/drill/report/report_json.h"
#include "supervisor/drill/scenario/read_scenario.h"
#include "supervisor/spec/spec.h"
#include "transport/base/exit_code.h"
#include "transport/base/text.h"
#include "transport/base/unique_fd.h"

namespace monarch {

namespace {

std::string when_words(const drill::FaultEntry& entry) {
  switch (entry.trigger) {
    case drill::TriggerKind::kAt: return text("at ", to_text(entry.at));
    case drill::TriggerKind::kEvery: return text("every ", to_text(entry.every));
    case drill::TriggerKind::kOnStep: return text("on step ", entry.step);
    case drill::TriggerKind::kOnEvent: {
      const std::string after = entry.after > Duration::zero() ? text(to_text(entry.after), " after ") : "on ";
      return text(after, name_of(entry.event), entry.times > 1 ? text(", ", entry.times, " times") : "");
    }
  }
  return "";
}

std::string need_words(drill::FaultNeed need) {
  switch (need) {
    case drill::FaultNeed::kNothing: return "";
    case drill::FaultNeed::kTracing: return "the right to trace the rank";
    case drill::FaultNeed::kNft: return "nft, and the right to use it";
  }
  return "";
}

std::vector<std::string> with_rights(std::vector<std::string> titles, const JobRights* rights) {
  if (rights != nullptr) titles.insert(titles.end(), {"ON HOSTS", "NOT ELSEWHERE, BECAUSE"});
  return titles;
}

void add_rights(std::vector<Table::Cell>& row, const drill::Fault& fault, const JobRights* rights) {
  if (rights == nullptr) return;
  const drill::WhereHad had = drill::where_had(fault, rights->hosts, rights->traced);
  row.push_back(plain_cell(text(had.hosts, " of ", rights->hosts.size())));
  row.push_back(plain_cell(had.why_not));
}

// Where all of the job is well, as it is placed first.
std::string first_target(const DrillWish& wish, std::uint32_t entry, const JobSpec& spec) {
  drill::DrillPlan plan{.scenario = wish.scenario,
                        .seed = wish.seed,
                        .meshes = drill_meshes(spec),
                        .times = drill_times(spec),
                        .meant = nullptr};
  const DrillTargets targets(spec);
  plan.meant = [&targets](const drill::FaultTarget& target, RankId rank, const std::string& host) {
    return targets.has(target, rank, host);
  };
  drill::JobWatch watch(plan.meshes);
  watch.on_status(status_as_placed(spec));
  const auto target = drill::drawn_target(plan, watch, entry, 0);
  return target ? drill::target_words(*target) : "nobody";
}

Result<std::string> read_report(const std::string& path) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return errno_error(printable(path), errno);
  std::string content;
  std::array<char, 65'536> piece;
  for (;;) {
    const ssize_t got = ::read(file.get(), piece.data(), piece.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(text("reading ", printable(path)), errno);
    if (got == 0) return content;
    content.append(piece.data(), static_cast<std::size_t>(got));
    if (content.size() > drill::kMostReportBytes) {
      return Error{ErrorCode::kInvalid,
                   text(printable(path), ": a report has ", amount_text(drill::kMostReportBytes), " at most")};
    }
  }
}

}  // namespace

std::string dry_run_text(const DrillWish& wish, const JobSpec& spec, const JobRights* rights, bool colour) {
  Table table(with_rights({"FAULT", "WHEN", "FIRST AT", "FOR", "NEEDS"}, rights));
  for (std::uint32_t i = 0; i < wish.scenario.faults.size(); ++i) {
    const drill::FaultEntry& entry = wish.scenario.faults[i];
    const drill::Fault& fault = *drill::find_fault(entry.fault);
    std::vector<Table::Cell> row = {
        plain_cell(entry.fault), plain_cell(when_words(entry)), plain_cell(first_target(wish, i, spec)),
        plain_cell(entry.lasts > Duration::zero() ? to_text(entry.lasts) : ""), plain_cell(need_words(fault.need))};
    add_rights(row, fault, rights);
    table.add(std::move(row));
  }
  return text(table.render(colour), "seed ", wish.seed, "; nothing is started\n");
}

int show_faults(const Arguments& arguments, const Context& context) {
  std::optional<JobRights> rights;
  if (const std::string named = arguments.positional(0); !named.empty()) {
    const JobArgument argument = take_job(named, context);
    if (argument.job == nullptr) return argument.exit_code;
    auto asked = ask_rights(*argument.job, context);
    if (!asked.ok()) {
      return refuse(context, {.id = "E0909", .message = text("--faults: ", asked.error().message), .help = ""},
                    asked.error().code == ErrorCode::kGone ? kExitUsage : kExitInternal);
    }
    rights = std::move(*asked);
  }
  const JobRights* const there = rights ? &*rights : nullptr;
  Table table(with_rights({"FAULT", "CLASS", "LASTS", "NEEDS", "DOES"}, there));
  for (const drill::Fault& fault : drill::faults()) {
    std::vector<Table::Cell> row = {plain_cell(std::string(fault.name)),
                                    plain_cell(std::string(drill::name_of(fault.of))),
                                    plain_cell(fault.can_last() ? to_text(fault.lasts) : ""),
                                    plain_cell(need_words(fault.need)), plain_cell(std::string(fault.does))};
    add_rights(row, fault, there);
    table.add(std::move(row));
  }
  write_out(context.terminal, table.render(context.terminal.out_colour, context.terminal.out_columns));
  return kExitOk;
}

int replay_drill(const Arguments& arguments, const Context& context) {
  const Result<std::string> file = read_report(*arguments.value("replay"));
  auto record = file.ok() ? drill::read_record(*file) : Result<drill::DrillRecord>(file.error());
  if (!record.ok()) {
    return refuse(context, {.id = "E0904", .message = text("--replay: ", record.error().message), .help = ""},
                  kExitUsage);
  }
  if (const auto path = arguments.value("expect")) {
    auto source = read_spec_file(*path, kPipePatience, "scenario");
    if (!source.ok())
      return refuse(context, {.id = "E0013", .message = source.error().message, .help = ""}, kExitUsage);
    drill::ScenarioOutcome outcome = drill::read_scenario(*source);
    if (!outcome.scenario) {
      write_err(drill::render(outcome, {.colour = context.terminal.err_colour}));
      return kExitUsage;
    }
    record->scenario.expect = std::move(outcome.scenario->expect);
  }
  const drill::DrillReport report = drill::measure(*record);
  if (const auto path = arguments.value("html")) {
    auto page = ReportFile::open(*path);
    const Status written = page.ok() ? write_report(*page, drill::drill_page(*record, report)) : Status(page.error());
    if (!written.ok()) {
      return refuse(context, {.id = "E0931", .message = text("--html: ", written.error().message), .help = ""},
                    kExitUsage);
    }
  }
  show_drill(*record, report, "", arguments.has("json"), context);
  return report.exit_code;
}

}  // namespace monarch
