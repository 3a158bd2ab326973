#include "supervisor/drill/page/pictures.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "supervisor/drill/page/html_table.h"
#include "supervisor/drill/page/page_text.h"
#include "supervisor/drill/page/svg.h"
#include "supervisor/drill/page/tables.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

double seconds_of_milliseconds(std::int64_t milliseconds) { return static_cast<double>(milliseconds) / 1000; }

std::string ledger_bar(const DrillReport& report, double width) {
  const auto& spent = report.rank_milliseconds;
  const auto total = static_cast<double>(std::accumulate(spent.begin(), spent.end(), std::int64_t{0}));
  Svg svg(width);
  std::string sentence = "Where the rank-seconds went:";
  double at = 0;
  for (std::size_t i = 0; i < kTimeBins; ++i) {
    if (spent[i] <= 0) continue;
    const double part = static_cast<double>(spent[i]) / total;
    const Ink ink = ink_of(static_cast<TimeBin>(i));
    const std::string words = text(percent(part), " ", facts_of(ink).words);
    svg.begin(ink);
    svg.box({at, 0, std::max(width * part, 1.0), 24},
            text(words, ", ", decimals(seconds_of_milliseconds(spent[i])), " rank-seconds"));
    svg.end();
    if (width * part > 6.0 * static_cast<double>(words.size())) svg.words({.at = {at + 2, 38}, .words = words});
    sentence += text(" ", words, ",");
    at += width * part;
  }
  sentence.back() = '.';
  return svg.finish(44, sentence);
}

// One figure, of every class that has it.
struct ClassDots {
  FaultClass of;
  std::vector<std::pair<double, std::string>> seconds;  // with the fault's own words
  Spread spread;
  std::optional<double> bound;
};
struct Figure {
  std::string_view name;
  std::string_view bound;  // name of the bound that it has
  std::optional<Duration> FaultFigures::*of_fault;
  Spread ClassFigures::*of_class;
};
constexpr std::array kFigures = {
    Figure{"Until it is seen", "ttd_p95", &FaultFigures::ttd, &ClassFigures::ttd},
    Figure{"Until past its last step", "ttr_p95", &FaultFigures::ttr, &ClassFigures::ttr},
};

std::vector<ClassDots> dots_of(const DrillReport& report, const Figure& figure) {
  std::vector<ClassDots> rows;
  for (const ClassFigures& figures : report.classes) {
    ClassDots row{.of = figures.of, .seconds = {}, .spread = figures.*figure.of_class, .bound = std::nullopt};
    for (const FaultFigures& fault : report.faults) {
      const std::optional<Duration>& duration = fault.*figure.of_fault;
      if (fault.of != figures.of || !duration) continue;
      row.seconds.emplace_back(duration->count_seconds(), text("fault ", fault.number, ": ", to_text(*duration)));
    }
    for (const BoundResult& bound : report.bounds) {
      if (bound.what == text(figure.bound, ".", name_of(figures.of))) row.bound = bound.bound;
    }
    if (!row.seconds.empty()) rows.push_back(std::move(row));
  }
  return rows;
}

// Seconds from left to right by their logarithm, from one power of ten to another.
class LogAxis {
 public:
  LogAxis(const std::vector<ClassDots>& rows, double left, double right) : left_(left), right_(right) {
    double least = 1e9;
    double most = 0;
    const auto take = [&](double seconds) {
      least = std::min(least, std::max(seconds, kLeast));
      most = std::max(most, std::max(seconds, kLeast));
    };
    for (const ClassDots& row : rows) {
      for (const auto& dot : row.seconds) take(dot.first);
      if (row.bound) take(*row.bound);
    }
    first_ = std::floor(std::log10(least));
    last_ = std::max(first_ + 1, std::ceil(std::log10(most)));
  }

  double x(double seconds) const {
    const double power = std::log10(std::max(seconds, kLeast));
    return left_ + (right_ - left_) * (power - first_) / (last_ - first_);
  }
  void draw_ticks(Svg& svg, double top, double bottom) const {
    for (double power = first_; power <= last_; ++power) {
      const double seconds = std::pow(10, power);
      svg.line({.from = {x(seconds), top}, .to = {x(seconds), bottom}});
      svg.words({.at = {x(seconds), bottom + 14},
                 .words = to_text(Duration::nanoseconds(std::llround(seconds * 1e9))),
                 .anchor = Anchor::kMiddle});
    }
  }
  double first() const { return first_; }
  double last() const { return last_; }

 private:
  static constexpr double kLeast = 1e-4;
  double left_;
  double right_;
  double first_ = 0;
  double last_ = 1;
};

constexpr double kRowHeight = 26;
constexpr int kBarsOfADecade = 8;

void draw_histogram(Svg& svg, const ClassDots& row, const LogAxis& axis, double y) {
  const auto bars = static_cast<std::size_t>((axis.last() - axis.first()) * kBarsOfADecade) + 1;
  std::vector<std::size_t> counts(bars);
  const auto from = [&](std::size_t bar) {
    return std::pow(10, axis.first() + static_cast<double>(bar) / kBarsOfADecade);
  };
  for (const auto& dot : row.seconds) {
    const double power = (std::log10(std::max(dot.first, from(0))) - axis.first()) * kBarsOfADecade;
    ++counts[std::min(static_cast<std::size_t>(std::max(0.0, power)), bars - 1)];
  }
  const auto most = static_cast<double>(*std::max_element(counts.begin(), counts.end()));
  svg.begin(ink_of(TimeBin::kNew));
  for (std::size_t i = 0; i < bars; ++i) {
    if (counts[i] == 0) continue;
    const double height = std::max(1.5, (kRowHeight - 8) * static_cast<double>(counts[i]) / most);
    const double x = axis.x(from(i));
    svg.box({x, y + kRowHeight - 4 - height, axis.x(from(i + 1)) - x - 0.5, height},
            text(counted(counts[i], "fault"), ", ", decimals(from(i), 4), " to ", decimals(from(i + 1), 4), "s"));
  }
  svg.end();
}

std::string dots_picture(const Figure& figure, const std::vector<ClassDots>& rows, double width) {
  Svg svg(width);
  const double left = svg.is_wide() ? 86 : 66;
  const LogAxis axis(rows, left + 12, width - (svg.is_wide() ? 280 : 46));
  const double bottom = kRowHeight * static_cast<double>(rows.size()) + 4;
  axis.draw_ticks(svg, 0, bottom);
  std::string sentence = text(figure.name, ", by class of fault:");
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const ClassDots& row = rows[i];
    const double y = kRowHeight * static_cast<double>(i);
    const double middle = y + kRowHeight / 2;
    svg.words({.at = {left, middle + 4}, .words = std::string(name_of(row.of)), .anchor = Anchor::kEnd, .dim = false});
    if (row.seconds.size() >= kManyDots) {
      draw_histogram(svg, row, axis, y);
    } else {
      for (const auto& dot : row.seconds) svg.dot({axis.x(dot.first), middle}, svg.is_wide() ? dot.second : "");
    }
    const double p50 = axis.x(row.spread.p50.count_seconds());
    svg.line({.pen = Pen::kMain,
              .from = {p50, y + 3},
              .to = {p50, y + kRowHeight - 3},
              .title = text("p50 ", to_text(row.spread.p50))});
    if (row.bound) {
      svg.line({.pen = Pen::kFault,
                .from = {axis.x(*row.bound), y + 1},
                .to = {axis.x(*row.bound), y + kRowHeight - 1},
                .dash = "3 2",
                .title = text("bound of p95: ", decimals(*row.bound, 3), "s")});
    }
    const std::string words = text("n ", row.spread.n, ", p50 ", to_text(row.spread.p50), ", p95 ",
                                   to_text(row.spread.p95), ", max ", to_text(row.spread.max));
    svg.words({.at = {width - (svg.is_wide() ? 256 : 30), middle + 4},
               .words = svg.is_wide() ? words : text("n ", row.spread.n)});
    sentence += text(" ", name_of(row.of), ": ", words, ";");
  }
  sentence.back() = '.';
  return svg.finish(bottom + 20, sentence);
}

std::string compare_bars(const std::array<std::pair<std::string_view, CompareRun>, 2>& runs, double width) {
  const auto most = static_cast<double>(std::max(runs[0].second.rank_milliseconds, runs[1].second.rank_milliseconds));
  Svg svg(width);
  double y = 0;
  std::string sentence = "Rank-seconds lost of each run:";
  for (const auto& [name, run] : runs) {
    const double lost = width * static_cast<double>(run.lost_rank_milliseconds) / most;
    const double all = width * static_cast<double>(run.rank_milliseconds) / most;
    const std::string words = text(name, ": ", decimals(seconds_of_milliseconds(run.lost_rank_milliseconds), 0), " of ",
                                   decimals(seconds_of_milliseconds(run.rank_milliseconds), 0), " rank-seconds lost");
    svg.begin(ink_of(TimeBin::kStill));
    svg.box({0, y, std::max(1.0, lost), 22}, words);
    svg.end();
    svg.begin(ink_of(TimeBin::kNew));
    svg.box({lost, y, std::max(1.0, all - lost), 22}, text(name, ": new steps"));
    svg.end();
    svg.words({.at = {2, y + 36}, .words = words, .dim = false});
    sentence += text(" ", words, ";");
    y += 52;
  }
  sentence.back() = '.';
  return svg.finish(y - 8, sentence);
}

}  // namespace

std::string ledger_picture(const DrillReport& report) {
  const auto& spent = report.rank_milliseconds;
  const bool any = std::any_of(spent.begin(), spent.end(), [](std::int64_t milliseconds) { return milliseconds > 0; });
  return text(any ? both_widths([&](double width) { return ledger_bar(report, width); }) : std::string(),
              ledger_table(report));
}

std::string time_pictures(const DrillReport& report) {
  std::string out;
  for (const Figure& figure : kFigures) {
    const std::vector<ClassDots> rows = dots_of(report, figure);
    if (rows.empty()) continue;
    out += text("<h3>", figure.name, "</h3>\n",
                both_widths([&](double width) { return dots_picture(figure, rows, width); }));
  }
  const std::string table = class_table(report);
  return out + (table.empty() ? "<p>No fault was told of or recovered from.</p>\n" : table);
}

std::string comparison(const DrillRecord& record, const DrillReport& report) {
  const auto ran = [](const std::optional<CompareRun>& run) { return run && run->rank_milliseconds > 0; };
  if (!ran(record.here) || !ran(record.peer)) return "";
  const std::array<std::pair<std::string_view, CompareRun>, 2> runs = {
      {{"this job", *record.here}, {"stop and start everything", *record.peer}}};
  HtmlTable table({{"the same faults, the same seed"},
                   {"rank-seconds", Cells::kNumber},
                   {"lost", Cells::kNumber},
                   {"part", Cells::kNumber}});
  for (const auto& [name, run] : runs) {
    table.add({std::string(name), decimals(seconds_of_milliseconds(run.rank_milliseconds)),
               decimals(seconds_of_milliseconds(run.lost_rank_milliseconds)),
               percent(static_cast<double>(run.lost_rank_milliseconds) / static_cast<double>(run.rank_milliseconds))});
  }
  return text("<h2>Against stopping and starting everything</h2>\n<p>With the same faults, <b>",
              report.ratio ? decimals(*report.ratio, 2) : "–", "</b> of the time is lost.</p>\n",
              both_widths([&](double width) { return compare_bars(runs, width); }), table.html());
}

}  // namespace monarch::drill
