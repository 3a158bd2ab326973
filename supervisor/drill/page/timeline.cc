#include "supervisor/drill/page/timeline.h"

#include <algorithm>
#include <array>

#include "supervisor/drill/core/drill_words.h"
#include "supervisor/drill/page/html_table.h"
#include "supervisor/drill/page/lanes.h"
#include "supervisor/drill/page/page_text.h"
#include "supervisor/drill/page/tables.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr double kLaneHeight = 16;
constexpr double kLaneGap = 7;  // room for the bar of a fault below it
constexpr double kLetter = 6.2;
constexpr double kCurveHeight = 84;
constexpr double kLevelHeight = 18;
constexpr std::size_t kMostLevels = 6;  // of badges, one above the other

bool was_struck(const Blow& blow) { return blow.end != BlowEnd::kSkipped; }

WallTime end_of(const Blow& blow) {
  if (blow.undone_at) return *blow.undone_at;
  return {when_struck(blow).nanoseconds_since_epoch + blow.lasts.count_nanoseconds()};
}

double room_for_names(double width, const LaneChoice& lanes) {
  std::size_t longest = width > 600 ? 10 : 4;
  for (const Lane* lane : lanes.drawn) longest = std::max(longest, lane->host.size());
  return std::min(static_cast<double>(longest) * kLetter + 12, width > 600 ? 180.0 : 76.0);
}

class TimelinePicture {
 public:
  TimelinePicture(const DrillRecord& record, const DrillReport& report, const LaneChoice& lanes, double width)
      : record_(record),
        report_(report),
        choice_(lanes),
        svg_(width),
        axis_(record, room_for_names(width, lanes), width - 10) {}

  std::string drawn(std::string_view sentence) {
    place_badges();
    place_lanes();
    const double bottom = curve_top_ + kCurveHeight;
    draw_control(bottom);
    axis_.draw_ticks(svg_, top_ - 4, bottom);
    draw_lanes();
    draw_curve();
    draw_faults();
    return svg_.finish(bottom + 22, sentence);
  }

 private:
  struct Row {
    const Lane* lane;
    double y;
    std::vector<LanePiece> pieces;
  };

  // The lowest level where it stands beside the last one; where all are taken, the one that is longest past.
  void place_badges() {
    const double room = svg_.is_wide() ? 18 : 15;
    std::vector<double> last;
    for (const Blow& blow : record_.blows) {
      levels_.push_back(0);
      if (!was_struck(blow)) continue;
      const double x = axis_.x(when_struck(blow));
      std::size_t level = 0;
      while (level < last.size() && x - last[level] < room) ++level;
      if (level == last.size() && level < kMostLevels) last.push_back(0);
      if (level == kMostLevels) {
        level = static_cast<std::size_t>(std::min_element(last.begin(), last.end()) - last.begin());
      }
      levels_.back() = level;
      last[level] = x;
    }
    top_ = 14 + kLevelHeight * static_cast<double>(std::max<std::size_t>(1, last.size()));
  }

  void place_lanes() {
    double y = top_;
    for (const Lane* lane : choice_.drawn) {
      rows_.push_back({lane, y, pieces_of(*lane, axis_, svg_.is_wide())});
      y += kLaneHeight + kLaneGap;
    }
    others_y_ = y;
    const bool others = !choice_.quiet.empty() || !choice_.left_out.empty();
    curve_top_ = y + (others ? kLaneHeight : 0) + 22;
  }

  void draw_control(double bottom) {
    const double begin = axis_.x(axis_.from());
    const double end = axis_.x(axis_.zero());
    if (end - begin < 1) return;
    const std::string path = text("M", decimals(begin), " ", decimals(top_ - 4), "H", decimals(end), "V",
                                  decimals(bottom), "H", decimals(begin), "z");
    svg_.area(Ink::kIdle, path, "0.4");
    if (end - begin > 50) svg_.words({.at = {begin + 2, top_ - 8}, .words = "control"});
  }

  void draw_lanes() {
    const auto letters = static_cast<std::size_t>((axis_.left() - 8) / kLetter);
    for (const Row& row : rows_) {
      const std::string& host = row.lane->host;
      const std::string name = !host.empty() ? host : svg_.is_wide() ? "supervisor" : "sup.";
      svg_.words({.at = {axis_.left() - 6, row.y + kLaneHeight - 4},
                  .words = name_end(name, letters),
                  .anchor = Anchor::kEnd,
                  .dim = false,
                  .title = name.size() > letters ? name : std::string()});
    }
    for (std::size_t i = 0; i < kInks; ++i) draw_pieces(static_cast<Ink>(i));
    if (choice_.quiet.empty() && choice_.left_out.empty()) return;
    std::string others;
    const std::size_t names = svg_.is_wide() ? 6 : 0;
    if (!choice_.quiet.empty()) others = text(some_names(choice_.quiet, names), ": nothing but work");
    if (!choice_.left_out.empty()) {
      others += text(others.empty() ? "" : "; ", counted(choice_.left_out.size(), "more host"), " in the table alone");
    }
    svg_.words({.at = {axis_.left(), others_y_ + 12}, .words = others});
  }

  void draw_pieces(Ink ink) {
    bool begun = false;
    // What is no rank's is thinner.
    const double inset = ink == Ink::kIdle || ink == Ink::kUp ? kLaneHeight / 4 : 0;
    for (const Row& row : rows_) {
      for (const LanePiece& piece : row.pieces) {
        if (piece.ink != ink) continue;
        if (!begun) svg_.begin(ink);
        begun = true;
        svg_.box({piece.x, row.y + inset, piece.width, kLaneHeight - 2 * inset}, piece.title);
      }
    }
    if (begun) svg_.end();
  }

  void draw_faults() {
    for (std::size_t i = 0; i < record_.blows.size(); ++i) {
      const Blow& blow = record_.blows[i];
      if (!was_struck(blow)) continue;
      const auto row =
          std::find_if(rows_.begin(), rows_.end(), [&](const Row& one) { return one.lane->host == blow.target.host; });
      const double below = row == rows_.end() ? others_y_ : row->y + kLaneHeight;
      const double x = axis_.x(when_struck(blow));
      const double y = top_ - 14 - kLevelHeight * static_cast<double>(levels_[i]);
      svg_.line({.pen = Pen::kFault, .from = {x, y}, .to = {x, below}, .dash = "2 2"});
      const double seconds = seconds_between(when_struck(blow), end_of(blow));
      const std::string lasts = text(blow.fault, " lasts ", decimals(seconds), "s");
      if (blow.lasts > Duration::zero()) {
        svg_.bar({x, below + 1, std::max(3.0, axis_.x(end_of(blow)) - x), 3}, svg_.is_wide() ? lasts : "");
      }
      const FaultFigures& figures = figures_of(report_, i);
      const std::string what = text(blow.number, ": ", blow.fault, " of ", target_words(blow), " at ",
                                    moment_words(record_, when_struck(blow)), "; ", result_words(blow, figures));
      svg_.badge({x, y}, text(blow.number), state_of(blow, figures) == FaultState::kInert, svg_.is_wide() ? what : "");
    }
  }

  // Where each rate ends, and the rate: steps of two units at least, for more than that cannot be seen.
  std::vector<std::pair<double, double>> seen_rates() const {
    std::vector<std::pair<double, double>> rates;
    double begin = axis_.left();
    double sum = 0;
    double many = 0;
    for (const CurvePoint& point : report_.curve) {
      if (point.at <= axis_.from() || point.at > axis_.to()) continue;
      sum += point.steps_per_second;
      ++many;
      const double x = axis_.x(point.at);
      if (x - begin < 2) continue;
      rates.emplace_back(x, sum / many);
      begin = x;
      sum = many = 0;
    }
    return rates;
  }

  void draw_curve() {
    const double bottom = curve_top_ + kCurveHeight;
    const std::vector<std::pair<double, double>> rates = seen_rates();
    double most = report_.baseline_steps_per_second.value_or(0);
    for (const auto& [x, rate] : rates) most = std::max(most, rate);
    svg_.words({.at = {axis_.left() - 6, bottom - 2},
                .words = svg_.is_wide() ? "new steps" : "steps",
                .anchor = Anchor::kEnd});
    if (most <= 0) {
      svg_.words({.at = {axis_.left() + 4, bottom - 30}, .words = "no step was named"});
      return;
    }
    const auto y = [&](double rate) { return bottom - kCurveHeight * rate / (most * 1.1); };
    std::string path = text("M", decimals(axis_.left()), " ", decimals(bottom));
    for (const auto& [x, rate] : rates) path += text("V", decimals(y(rate)), "H", decimals(x));
    svg_.area(ink_of(TimeBin::kNew), path + text("V", decimals(bottom), "z"), "0.6");
    const double usual = report_.baseline_steps_per_second.value_or(most);
    const std::string words = text(decimals(usual, usual < 10 ? 1 : 0), "/s");
    if (report_.baseline_steps_per_second) {
      svg_.line({.pen = Pen::kMain,
                 .from = {axis_.left(), y(usual)},
                 .to = {axis_.right(), y(usual)},
                 .dash = "5 3",
                 .title = text("undisturbed: ", words)});
    }
    svg_.words({.at = {axis_.left() - 6, y(usual) + 4}, .words = words, .anchor = Anchor::kEnd});
  }

  const DrillRecord& record_;
  const DrillReport& report_;
  const LaneChoice& choice_;
  Svg svg_;
  TimeAxis axis_;
  std::vector<std::size_t> levels_;
  std::vector<Row> rows_;
  double top_ = 0;
  double others_y_ = 0;
  double curve_top_ = 0;
};

std::array<bool, kInks> inks_of_lanes(const LaneChoice& choice) {
  std::array<bool, kInks> used{};
  for (const Lane* lane : choice.drawn) {
    for (const LaneSpan& span : lane->spans) {
      used[static_cast<std::size_t>(ink_of(*lane, span))] = true;
    }
  }
  return used;
}

}  // namespace

std::string timeline(const DrillRecord& record, const DrillReport& report) {
  const LaneChoice choice = chosen_lanes(record, report);
  const auto struck = static_cast<std::size_t>(std::count_if(record.blows.begin(), record.blows.end(), was_struck));
  const std::string sentence =
      text(counted(struck, "fault"), " over ", decimals(seconds_between(record.control_to, record.faults_to), 0),
           "s on ", counted(choice.drawn.size(), "lane"),
           ", each coloured by what the ranks on that host were doing; below, new steps a second.");
  const auto picture = [&](double width) { return TimelinePicture(record, report, choice, width).drawn(sentence); };
  return text(key_of(inks_of_lanes(choice)), both_widths(picture), "<details><summary>The same as tables</summary>\n",
              lane_table(record, report), curve_table(record, report), "</details>\n");
}

}  // namespace monarch::drill
