#include "cli/show/drill_text.h"

#include <algorithm>

#include "cli/term/table.h"
#include "supervisor/drill/core/drill_words.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

using drill::FaultState;

constexpr std::size_t kMostBrokenRows = 5;

Table::Cell mark(bool good) {
  return good ? Table::Cell{.words = "✓", .colour = Colour::kGreen} : Table::Cell{.words = "✗", .colour = Colour::kRed};
}

Table expectations(const drill::DrillReport& report) {
  Table table({" ", "EXPECTED", "BOUND", "WAS", "N", "ABOUT"});
  for (const drill::BoundResult& bound : report.bounds) {
    const std::string about = !bound.met && !bound.why.empty() ? bound.why : drill::meaning_words(bound.what);
    table.add({mark(bound.met), plain_cell(bound.what), plain_cell(bound_words(bound)), plain_cell(value_words(bound)),
               plain_cell(text(bound.n)), plain_cell(about)});
  }
  return table;
}

// Those that hold are one row, with all their checks; those that nothing was found to check, another.
Table invariants(const drill::DrillReport& report) {
  Table table({" ", "INVARIANT", "CHECKS", "BROKEN"});
  std::vector<std::string> held;
  std::vector<std::string> unchecked;
  std::uint64_t checks = 0;
  for (const drill::InvariantResult& invariant : report.invariants) {
    if (invariant.broken.empty()) {
      (invariant.checks > 0 ? held : unchecked).push_back(invariant.label);
      checks += invariant.checks;
    }
    for (std::size_t i = 0; i < std::min(invariant.broken.size(), kMostBrokenRows); ++i) {
      table.add({mark(false), plain_cell(text(invariant.label, " ", invariant.words)),
                 plain_cell(text(invariant.checks)), plain_cell(invariant.broken[i])});
    }
  }
  if (!held.empty()) {
    table.add({mark(true), plain_cell(join(held, ", ")), plain_cell(text(checks)), plain_cell("")});
  }
  if (!unchecked.empty()) {
    table.add({{.words = "○", .colour = Colour::kYellow},
               plain_cell(join(unchecked, ", ")),
               plain_cell("0"),
               plain_cell("not checked")});
  }
  return table;
}

Colour colour_of(FaultState state) {
  switch (state) {
    case FaultState::kFine: return Colour::kGreen;
    case FaultState::kWrong: return Colour::kRed;
    case FaultState::kInert:
    case FaultState::kSkipped: return Colour::kYellow;
  }
  return Colour::kNone;
}

Table faults(const drill::DrillRecord& record, const drill::DrillReport& report) {
  Table table({"#", "FAULT", "TARGET", "SEEN AFTER", "OURS", "RECOVERED AFTER", "GANGS", "RESULT"});
  for (std::size_t i = 0; i < record.blows.size(); ++i) {
    const drill::Blow& blow = record.blows[i];
    const drill::FaultFigures& figures = figures_of(report, i);
    table.add({plain_cell(text(blow.number)),
               plain_cell(blow.fault),
               plain_cell(target_words(blow)),
               plain_cell(drill::words_of(figures.ttd)),
               plain_cell(drill::words_of(figures.ours)),
               plain_cell(drill::words_of(figures.ttr)),
               plain_cell(text(figures.gangs_started, " of ", figures.gangs_expected)),
               {.words = result_words(blow, figures), .colour = colour_of(state_of(blow, figures))}});
  }
  return table;
}

std::string spread_words(const drill::Spread& spread) {
  if (spread.n == 0) return "–";
  return text(to_text(spread.p50), " / ", to_text(spread.p95), " / ", to_text(spread.max), " (", spread.n, ")");
}

Table classes(const drill::DrillReport& report) {
  Table table({"CLASS", "SEEN: P50 / P95 / MAX (N)", "OURS", "RECOVERED"});
  for (const drill::ClassFigures& figures : report.classes) {
    table.add({plain_cell(std::string(name_of(figures.of))), plain_cell(spread_words(figures.ttd)),
               plain_cell(spread_words(figures.ours)), plain_cell(spread_words(figures.ttr))});
  }
  return table;
}

}  // namespace

std::string drill_table(const drill::DrillRecord& record, const drill::DrillReport& report, bool colour,
                        std::size_t columns) {
  std::string out;
  for (const Table& table : {expectations(report), invariants(report), faults(record, report), classes(report)}) {
    if (!table.empty()) out += text(out.empty() ? "" : "\n", table.render(colour, columns));
  }
  return out;
}

}  // namespace monarch
