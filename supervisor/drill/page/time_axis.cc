#include "supervisor/drill/page/time_axis.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "supervisor/drill/page/page_text.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr std::array<double, 14> kTickSteps = {0.1, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600};

double tick_step(double seconds, double most) {
  for (const double step : kTickSteps) {
    if (seconds / step <= most) return step;
  }
  return std::ceil(seconds / most / kTickSteps.back()) * kTickSteps.back();
}

// Minutes where the steps are of whole minutes.
std::string tick_words(double seconds, double step) {
  return step < 60 ? text(decimals(seconds), "s") : text(decimals(seconds / 60), "m");
}

}  // namespace

WallTime when_struck(const Blow& blow) {
  if (blow.struck_at != WallTime{}) return blow.struck_at;
  return blow.seen_at != WallTime{} ? blow.seen_at : blow.due;
}

double seconds_between(WallTime from, WallTime to) {
  return static_cast<double>(to.nanoseconds_since_epoch - from.nanoseconds_since_epoch) / 1e9;
}

std::string moment_words(const DrillRecord& record, WallTime at) {
  return text(decimals(seconds_between(record.control_to, at)), "s");
}

TimeAxis::TimeAxis(const DrillRecord& record, double left, double right)
    : from_(record.control_from), zero_(record.control_to), to_(record.faults_to), left_(left), right_(right) {
  // A drill that was cut short has not come to all of these.
  if (from_ == WallTime{}) from_ = record.started;
  if (zero_ < from_) zero_ = from_;
  to_ = std::max(to_, zero_);
  if (to_ == from_) to_ = record.ended;
  if (to_ <= from_) to_.nanoseconds_since_epoch = from_.nanoseconds_since_epoch + 1'000'000'000;
}

double TimeAxis::x(WallTime at) const {
  const double part = seconds_between(from_, at) / seconds_between(from_, to_);
  return left_ + (right_ - left_) * std::clamp(part, 0.0, 1.0);
}

double TimeAxis::seconds(WallTime at) const { return seconds_between(zero_, at); }

double TimeAxis::width_of(double seconds) const { return (right_ - left_) * seconds / seconds_between(from_, to_); }

void TimeAxis::draw_ticks(Svg& svg, double top, double bottom) const {
  const double step = tick_step(seconds_between(from_, to_), svg.is_wide() ? 12 : 5);
  const double first = std::ceil(seconds(from_) / step);
  const double last = std::floor(seconds(to_) / step);
  for (double k = first; k <= last; ++k) {
    const double at = left_ + width_of(k * step - seconds(from_));
    svg.line({.from = {at, top}, .to = {at, bottom}});
    const bool edge = at > svg.width() - 20;
    svg.words({.at = {at, bottom + 15},
               .words = tick_words(k * step, step),
               .anchor = edge ? Anchor::kEnd : Anchor::kMiddle});
  }
}

}  // namespace monarch::drill
