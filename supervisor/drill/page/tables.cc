#include "supervisor/drill/page/tables.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "supervisor/drill/core/drill_words.h"
#include "supervisor/drill/page/html_table.h"
#include "supervisor/drill/page/ink.h"
#include "supervisor/drill/page/page_text.h"
#include "supervisor/drill/page/time_axis.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr std::size_t kMostBroken = 5;  // lines of one invariant

std::string verdict_cell(bool good, std::string_view words) {
  return text("<b class=\"", good ? "good" : "bad", "\">", good ? "✓ " : "✗ ", words, "</b>");
}

std::string odd_cell(std::string_view words) { return text("<span class=\"odd\">○ ", words, "</span>"); }

std::string state_cell(const Blow& blow, const FaultFigures& figures) {
  const FaultState state = state_of(blow, figures);
  const std::string words = page_text(result_words(blow, figures));
  if (state == FaultState::kFine || state == FaultState::kWrong) return verdict_cell(state == FaultState::kFine, words);
  return odd_cell(words);
}

std::string taken_back_words(const DrillRecord& record, const Blow& blow) {
  if (!blow.taken_back) return "no";
  if (blow.undone_at) return moment_words(record, *blow.undone_at);
  return "–";
}

}  // namespace

std::string expectation_table(const DrillReport& report) {
  HtmlTable table({{"", Cells::kShort},
                   {"expected"},
                   {"bound", Cells::kShort},
                   {"was", Cells::kShort},
                   {"n", Cells::kNumber},
                   {"why not"}});
  for (const BoundResult& bound : report.bounds) {
    const std::string meaning = meaning_words(bound.what);
    table.add({verdict_cell(bound.met, bound.met ? "met" : "not met"),
               text(page_text(meaning), meaning.empty() ? "" : " ", "<code>", page_text(bound.what), "</code>"),
               page_text(bound_words(bound)), page_text(value_words(bound)), text(bound.n),
               bound.met ? "" : page_text(bound.why)});
  }
  return table.html();
}

std::string invariant_table(const DrillReport& report) {
  HtmlTable table({{"", Cells::kShort}, {"what always holds"}, {"checks", Cells::kNumber}, {"broken"}});
  for (const InvariantResult& invariant : report.invariants) {
    const bool held = invariant.broken.empty();
    std::string broken;
    for (std::size_t i = 0; i < std::min(invariant.broken.size(), kMostBroken); ++i) {
      broken += text(i == 0 ? "" : "<br/>", page_text(invariant.broken[i]));
    }
    if (invariant.broken.size() > kMostBroken) {
      broken += text("<br/>and ", invariant.broken.size() - kMostBroken, " more");
    }
    const bool checked = !held || invariant.checks > 0;
    table.add({checked ? verdict_cell(held, held ? "held" : "broken") : odd_cell("not checked"),
               text(page_text(invariant.words), " <small>", page_text(invariant.label), "</small>"),
               text(invariant.checks), held ? "–" : broken});
  }
  return table.html();
}

std::string fault_table(const DrillRecord& record, const DrillReport& report) {
  HtmlTable table({{"#", Cells::kNumber},
                   {"fault", Cells::kShort},
                   {"target", Cells::kShort},
                   {"at", Cells::kNumber},
                   {"seen after", Cells::kNumber},
                   {"by", Cells::kShort},
                   {"ordered after", Cells::kNumber},
                   {"runs after", Cells::kNumber},
                   {"ours in all", Cells::kNumber},
                   {"recovered after", Cells::kNumber},
                   {"gangs started", Cells::kNumber},
                   {"redone rank-s", Cells::kNumber},
                   {"taken back at", Cells::kNumber},
                   {"result"}});
  for (std::size_t i = 0; i < record.blows.size(); ++i) {
    const Blow& blow = record.blows[i];
    const FaultFigures& figures = figures_of(report, i);
    const bool struck = blow.end != BlowEnd::kSkipped;
    table.add({text(blow.number), text("<code>", page_text(blow.fault), "</code>"), page_text(target_words(blow)),
               struck ? moment_words(record, when_struck(blow)) : "–", words_of(figures.ttd),
               figures.seen_by.empty() ? "–" : page_text(figures.seen_by), words_of(figures.ttf), words_of(figures.tts),
               words_of(figures.ours), words_of(figures.ttr),
               struck ? text(figures.gangs_started, " of ", figures.gangs_expected) : "–",
               decimals(static_cast<double>(figures.redone_rank_milliseconds) / 1000), taken_back_words(record, blow),
               state_cell(blow, figures)});
  }
  return table.html();
}

std::string class_table(const DrillReport& report) {
  HtmlTable table({{"class", Cells::kShort},
                   {"figure"},
                   {"n", Cells::kNumber},
                   {"p50", Cells::kNumber},
                   {"p95", Cells::kNumber},
                   {"max", Cells::kNumber}});
  for (const ClassFigures& figures : report.classes) {
    const std::array<std::pair<std::string_view, const Spread*>, 5> spreads = {
        {{"until it is seen", &figures.ttd},
         {"from there until a start is ordered", &figures.ttf},
         {"from there until it runs", &figures.tts},
         {"our part: these three", &figures.ours},
         {"until past its last step", &figures.ttr}}};
    for (const auto& [words, spread] : spreads) {
      if (spread->n == 0) continue;
      table.add({std::string(name_of(figures.of)), std::string(words), text(spread->n), to_text(spread->p50),
                 to_text(spread->p95), to_text(spread->max)});
    }
  }
  return table.empty() ? "" : table.html();
}

std::string ledger_table(const DrillReport& report) {
  const auto& spent = report.rank_milliseconds;
  const auto total = static_cast<double>(std::accumulate(spent.begin(), spent.end(), std::int64_t{0}));
  HtmlTable table({{"where the time went"}, {"rank-seconds", Cells::kNumber}, {"part", Cells::kNumber}});
  for (std::size_t i = 0; i < kTimeBins; ++i) {
    const auto bin = static_cast<TimeBin>(i);
    const auto milliseconds = static_cast<double>(spent[i]);
    table.add({text(swatch(ink_of(bin)), " ", facts_of(ink_of(bin)).words, " <small>", name_of(bin), "</small>"),
               decimals(milliseconds / 1000), total > 0 ? percent(milliseconds / total) : "–"});
  }
  return table.html();
}

std::string lane_table(const DrillRecord& record, const DrillReport& report) {
  std::vector<Column> columns = {{"host", Cells::kShort}, {"role", Cells::kShort}};
  for (std::size_t i = 0; i <= kTimeBins; ++i) columns.push_back({facts_of(static_cast<Ink>(i)).words, Cells::kNumber});
  HtmlTable table(columns);
  const TimeAxis axis(record, 0, 1);
  std::size_t untold = 0;
  std::size_t told = 0;
  for (const Lane& lane : report.lanes) {
    if (lane.host.empty()) continue;
    if (told == kMostRows) {
      ++untold;
      continue;
    }
    std::array<double, kInks> spent{};
    for (const LaneSpan& span : lane.spans) {
      const double seconds = seconds_between(std::max(span.from, axis.from()), std::min(span.to, axis.to()));
      spent[static_cast<std::size_t>(ink_of(span.bin))] += std::max(0.0, seconds);
    }
    std::vector<std::string> cells = {page_text(lane.host), page_text(lane.role)};
    for (std::size_t i = 0; i <= kTimeBins; ++i) cells.push_back(spent[i] > 0 ? decimals(spent[i], 2) : "–");
    table.add(cells);
    ++told;
  }
  return text("<h3>Seconds of each host</h3>\n", table.html(),
              untold > 0 ? text("<p>And ", counted(untold, "more host"), ".</p>\n") : "");
}

std::string curve_table(const DrillRecord& record, const DrillReport& report) {
  constexpr std::size_t kParts = 12;
  const TimeAxis axis(record, 0, kParts);
  std::array<double, kParts> sums{};
  std::array<std::size_t, kParts> counts{};
  for (const CurvePoint& point : report.curve) {
    if (point.at <= axis.from() || point.at > axis.to()) continue;
    // A rate is of the time before it.
    const auto part = static_cast<std::size_t>(std::max(0.0, std::ceil(axis.x(point.at)) - 1));
    sums[part] += point.steps_per_second;
    ++counts[part];
  }
  HtmlTable table({{"from", Cells::kNumber}, {"new steps a second", Cells::kNumber}});
  const double length = seconds_between(axis.from(), axis.to()) / kParts;
  for (std::size_t i = 0; i < kParts; ++i) {
    table.add({text(decimals(axis.seconds(axis.from()) + length * static_cast<double>(i)), "s"),
               counts[i] == 0 ? "–" : decimals(sums[i] / static_cast<double>(counts[i]))});
  }
  return text("<h3>New steps</h3>\n", table.html());
}

}  // namespace monarch::drill
