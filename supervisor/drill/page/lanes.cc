#include "supervisor/drill/page/lanes.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "supervisor/drill/page/page_text.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr double kLeastPiece = 1.2;    // of the picture's units
constexpr std::size_t kMostParts = 6;  // of one piece, in its title

// One span, or several that are too short to be seen alone.
class PieceMaker {
 public:
  PieceMaker(const Lane& lane, const TimeAxis& axis, bool titles) : lane_(lane), axis_(axis), titles_(titles) {}

  void add(const LaneSpan& span) {
    const WallTime from = std::max(span.from, axis_.from());
    const WallTime to = std::min(span.to, axis_.to());
    if (to <= from) return;
    const Ink ink = ink_of(lane_, span);
    const bool alone = axis_.x(to) - axis_.x(from) >= kLeastPiece;
    const bool fits = !parts_.empty() && axis_.x(from) - axis_.x(to_) < 0.5 && span.gang == gang_;
    const bool same = fits && parts_.size() == 1 && parts_[0].ink == ink && span.generation == generation_;
    if (!same && (!fits || alone || axis_.x(to_) - axis_.x(from_) >= kLeastPiece)) flush();
    if (parts_.empty()) {
      from_ = from;
      gang_ = span.gang;
    }
    generation_ = span.generation;
    to_ = std::max(to_, to);
    if (same) {
      parts_[0].seconds += seconds_between(from, to);
    } else {
      parts_.push_back({.ink = ink, .seconds = seconds_between(from, to)});
    }
  }

  void flush() {
    if (parts_.empty()) return;
    std::array<double, kInks> spent{};
    for (const Part& part : parts_) spent[static_cast<std::size_t>(part.ink)] += part.seconds;
    const auto longest = std::max_element(spent.begin(), spent.end());
    const double x = axis_.x(from_);
    pieces_.push_back({.x = x,
                       .width = std::max(axis_.x(to_) - x, kLeastPiece),
                       .ink = static_cast<Ink>(longest - spent.begin()),
                       .title = titles_ ? title() : std::string()});
    parts_.clear();
    to_ = {};
  }

  std::vector<LanePiece> take() {
    flush();
    return std::move(pieces_);
  }

 private:
  struct Part {
    Ink ink;
    double seconds;
  };

  std::string words_of_parts() const {
    if (parts_.size() == 1) return std::string(facts_of(parts_[0].ink).words);
    std::string out;
    for (std::size_t i = 0; i < std::min(parts_.size(), kMostParts); ++i) {
      out += text(i == 0 ? "" : ", ", facts_of(parts_[i].ink).words, " ", decimals(parts_[i].seconds, 3), "s");
    }
    return parts_.size() > kMostParts ? text(out, " and ", parts_.size() - kMostParts, " more") : out;
  }

  std::string title() const {
    const std::string when = text(decimals(axis_.seconds(from_), 2), " to ", decimals(axis_.seconds(to_), 2), "s");
    const bool runs = parts_[0].ink == Ink::kUp;
    if (lane_.host.empty()) return text(runs ? "supervisor, " : "supervisor: does not run, ", when);
    return text(lane_.host, ": ", gang_.empty() ? "" : gang_ + ", ", words_of_parts(), ", ", when,
                generation_ == 0 ? "" : text(", generation ", generation_));
  }

  const Lane& lane_;
  const TimeAxis& axis_;
  bool titles_;
  std::vector<LanePiece> pieces_;
  std::vector<Part> parts_;
  WallTime from_;
  WallTime to_;
  std::string gang_;
  std::uint64_t generation_ = 0;
};

}  // namespace

Ink ink_of(const Lane& lane, const LaneSpan& span) {
  return lane.host.empty() && span.bin == TimeBin::kNew ? Ink::kUp : ink_of(span.bin);
}

std::vector<LanePiece> pieces_of(const Lane& lane, const TimeAxis& axis, bool titles) {
  PieceMaker maker(lane, axis, titles);
  for (const LaneSpan& span : lane.spans) maker.add(span);
  return maker.take();
}

LaneChoice chosen_lanes(const DrillRecord& record, const DrillReport& report) {
  std::set<std::string> struck;
  for (const Blow& blow : record.blows) {
    if (blow.end != BlowEnd::kSkipped) struck.insert(blow.target.host);
  }
  // Those that were struck come first where there is no room for all.
  std::size_t room = kMostLanes;
  std::set<const Lane*> drawn;
  for (const bool of_struck : {true, false}) {
    for (const Lane& lane : report.lanes) {
      const bool is_struck = lane.host.empty() || struck.contains(lane.host);
      if (is_struck != of_struck || (lane.quiet && !is_struck) || room == 0) continue;
      drawn.insert(&lane);
      --room;
    }
  }
  LaneChoice choice;
  for (const Lane& lane : report.lanes) {
    if (drawn.contains(&lane)) {
      choice.drawn.push_back(&lane);
    } else if (lane.quiet && !struck.contains(lane.host)) {
      choice.quiet.push_back(lane.host);
    } else {
      choice.left_out.push_back(lane.host);
    }
  }
  return choice;
}

std::string some_names(const std::vector<std::string>& names, std::size_t most) {
  if (names.size() > most) {
    const std::vector<std::string> first(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(most));
    return most == 0 ? counted(names.size(), "host")
                     : text(join(first, ", "), " and ", counted(names.size() - most, "other"));
  }
  return join(names, ", ");
}

}  // namespace monarch::drill
