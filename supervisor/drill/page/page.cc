#include "supervisor/drill/page/page.h"

#include <cmath>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "supervisor/drill/core/drill_words.h"
#include "supervisor/drill/core/measure_figures.h"
#include "supervisor/drill/page/ink.h"
#include "supervisor/drill/page/page_text.h"
#include "supervisor/drill/page/pictures.h"
#include "supervisor/drill/page/tables.h"
#include "supervisor/drill/page/time_axis.h"
#include "supervisor/drill/page/timeline.h"
#include "supervisor/drill/page/told.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr std::size_t kMostCommandBytes = 2000;
constexpr std::size_t kMostFailedNames = 12;

std::string name_of_drill(const DrillRecord& record) {
  return page_text(record.scenario.name.empty() ? "drill" : record.scenario.name);
}

std::string heading(const DrillRecord& record, const DrillReport& report) {
  const bool good = report.verdict == DrillVerdict::kPassed;
  return text("<h1>Drill ", name_of_drill(record), ": <span class=\"", good ? "good" : "bad", "\">", good ? "✓ " : "✗ ",
              name_of(report.verdict), "</span></h1>\n");
}

std::string named(std::string_view before, std::string_view name) {
  return name.empty() ? std::string() : text(before, page_text(name));
}

std::string sentence(const DrillRecord& record, const DrillReport& report) {
  std::uint32_t ranks = 0;
  std::uint32_t gangs = 0;
  for (const DrillMesh& mesh : record.meshes) {
    ranks += mesh.ranks;
    gangs += mesh.ranks_per_gang > 0 ? mesh.ranks / mesh.ranks_per_gang : 0;
  }
  std::set<std::string> hosts;
  for (const Lane& lane : report.lanes) {
    if (!lane.host.empty()) hosts.insert(lane.host);
  }
  const TimeAxis axis(record, 0, 1);
  const std::string control = decimals(seconds_between(axis.from(), axis.zero()), 0);
  std::string out =
      text("<p>", counted(record.blows.size(), "fault"), " in ", decimals(seconds_between(axis.zero(), axis.to()), 0),
           "s on ", counted(hosts.size(), "host"), ", ", counted(ranks, "rank"), " in ", counted(gangs, "gang"),
           ", after ", control, "s without any. <span class=\"dim\">Seed ", record.seed, named("; job ", record.job_id),
           named(" on ", record.launcher), named("; monarch ", record.monarch), "; began ", to_text(record.started),
           ".</span></p>\n");
  if (!record.cut_short.empty()) out += text("<p class=\"bad\">Cut short: ", page_text(record.cut_short), ".</p>\n");
  std::vector<std::string> failed = names_of_what_failed(record, report);
  if (failed.size() > kMostFailedNames) {
    const std::size_t more = failed.size() - kMostFailedNames;
    failed.resize(kMostFailedNames);
    failed.push_back(text("and ", more, " more"));
  }
  if (!failed.empty()) out += text("<p class=\"bad\">Not as expected: ", page_text(join(failed, ", ")), ".</p>\n");
  return out;
}

Spread spread_of_all(const DrillReport& report, std::optional<Duration> FaultFigures::*figure) {
  std::vector<Duration> all;
  for (const FaultFigures& fault : report.faults) {
    if (fault.*figure) all.push_back(*(fault.*figure));
  }
  return spread_of(std::move(all));
}

std::string tile(std::string_view title, std::string_view value, std::string_view note) {
  return text("<div class=\"tile\"><small>", title, "</small><br/> <b>", value, "</b><br/> <small>", note,
              "</small></div>\n");
}

std::string time_tile(std::string_view title, const Spread& spread) {
  if (spread.n == 0) return tile(title, "–", "of no fault");
  return tile(title, to_text(spread.p50), text("p50; n ", spread.n, ", max ", to_text(spread.max)));
}

std::string tiles(const DrillRecord& record, const DrillReport& report) {
  const std::string came_to_nothing =
      text(counted(record.blows.size(), "fault"), ", ", report.inert, " inert, ", report.skipped, " skipped");
  return text("<div class=\"tiles\">\n", tile("seen", text(report.seen, " of ", report.needed_seeing), came_to_nothing),
              time_tile("time to detect", spread_of_all(report, &FaultFigures::ttd)),
              time_tile("time to recover", spread_of_all(report, &FaultFigures::ttr)),
              tile("effective time", report.ettr ? percent(*report.ettr) : "–", "of all rank-seconds: new steps"),
              tile("goodput", report.goodput ? decimals(*report.goodput, 2) : "–", "of that without faults"),
              tile("against restarting all", report.ratio ? decimals(*report.ratio, 2) : "–",
                   report.ratio ? "of the time lost" : "not compared"),
              "</div>\n");
}

std::string optional_percent(const std::optional<double>& part) { return part ? percent(*part) : "–"; }

std::string other_figures(const DrillReport& report) {
  return text("<p class=\"dim\">Availability ", optional_percent(report.availability), ", precision ",
              optional_percent(report.precision), ", recall ", optional_percent(report.recall), ", a fault each ",
              words_of(report.mtbf), ", false positives per host-hour ",
              report.false_positives_per_host_hour ? decimals(*report.false_positives_per_host_hour, 2) : "–",
              ".</p>\n");
}

std::string ledger_sentence(const DrillReport& report) {
  const std::int64_t off = report.unaccounted_rank_milliseconds;
  if (off == 0) return "<p class=\"dim\">Every second of every rank is in one of these.</p>\n";
  return text("<p class=\"dim\">These are ", decimals(std::abs(static_cast<double>(off)) / 1000, 3), " rank-seconds ",
              off > 0 ? "less" : "more", " than the whole.</p>\n");
}

std::string again(const DrillRecord& record) {
  std::vector<std::string> words;
  bool has_seed = false;
  for (const std::string& word : record.command) {
    has_seed = has_seed || word == "--seed" || word.starts_with("--seed=");
    words.push_back(shell_word(word));
  }
  std::string command = words.empty() ? "monarch drill" : join(words, " ");
  if (!has_seed) command += text(" --seed ", record.seed);
  return text("<h2>Again</h2>\n<pre>", page_text(command, kMostCommandBytes),
              "   # the same faults\nmonarch drill --replay report.json --html report.html   # this page, from the "
              "data</pre>\n");
}

std::string body(const DrillRecord& record, const DrillReport& report) {
  const std::string nobodys = what_is_nobodys(record, report);
  const std::string said = what_the_job_said(record, report);
  return text(heading(record, report), sentence(record, report), tiles(record, report), "<h2>What was expected</h2>\n",
              expectation_table(report), invariant_table(report), nobodys,
              "<h2>When what happened</h2>\n<p class=\"dim\">Times count from the end of control.</p>\n",
              timeline(record, report), "<h2>Where the time went</h2>\n", ledger_sentence(report),
              ledger_picture(report), other_figures(report), "<h2>Each fault</h2>\n", fault_table(record, report),
              "<h2>How long it took</h2>\n", time_pictures(report), comparison(record, report),
              said.empty() ? "" : text("<h2>What the job said</h2>\n", said), again(record));
}

}  // namespace

std::string drill_page(const DrillRecord& record, const DrillReport& report) {
  return text(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head><meta charset=\"utf-8\"/>\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\"/>\n"
      "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n<title>Drill ",
      name_of_drill(record), ": ", name_of(report.verdict), "</title>\n<style>", style_sheet(),
      "</style></head>\n<body>\n", body(record, report), "</body></html>\n");
}

}  // namespace monarch::drill
