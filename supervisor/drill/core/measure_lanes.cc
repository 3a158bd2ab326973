#include "supervisor/drill/core/measure_lanes.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "supervisor/core/spec/hostlist.h"

namespace monarch::drill {

namespace {

using enum EventKind;

struct GangSpan {
  WallTime from;
  WallTime to;
  TimeBin bin = TimeBin::kNew;
  std::uint64_t generation = 0;
  std::size_t place = 0;  // among those where its gang was
};

// However many hosts and starts a record names.
constexpr std::size_t kMostNames = 1'000'000;
constexpr std::size_t kMostHostSpans = 2'000'000;

// The gang of a host that is worst off is shown.
constexpr std::array kWorstFirst = {TimeBin::kStill,    TimeBin::kDeciding, TimeBin::kWaiting,  TimeBin::kLaunching,
                                    TimeBin::kStarting, TimeBin::kRedone,   TimeBin::kStopping, TimeBin::kNew};

std::vector<std::string> names_in(std::string_view list) {
  auto names = expand_hostlist(list);
  return names.ok() ? std::move(*names) : std::vector<std::string>();
}

class GangFold {
 public:
  GangFold(const Run& run, std::uint32_t gang, WallTime from, WallTime to)
      : run_(run), gang_(gang), end_(to), at_(from) {}

  void note(const JobEvent& event, const Blame& blame, const TimeSheet& sheet);
  std::vector<GangSpan> done() {
    to(end_, std::nullopt);
    return std::move(spans_);
  }
  const std::vector<std::string>& hosts_of(const GangSpan& span) const { return places_[span.place]; }
  std::size_t names() const { return names_; }

 private:
  // The bin until then becomes a span; the next begins there.
  void to(WallTime at, std::optional<TimeBin> next) {
    at = std::clamp(at, at_, std::max(at_, end_));
    if (bin_ && at > at_) {
      const bool goes_on = !spans_.empty() && spans_.back().to == at_ && spans_.back().bin == *bin_ &&
                           spans_.back().generation == generation_;
      if (goes_on) {
        spans_.back().to = at;
      } else {
        spans_.push_back({.from = at_, .to = at, .bin = *bin_, .generation = generation_, .place = places_.size() - 1});
      }
    }
    at_ = at;
    bin_ = next;
  }

  const Run& run_;
  std::uint32_t gang_;
  WallTime end_;
  WallTime at_;
  std::optional<TimeBin> bin_;
  std::uint64_t generation_ = 0;
  std::vector<std::vector<std::string>> places_ = {{}};
  std::size_t names_ = 0;
  WallTime started_;
  bool named_steps_ = false;
  std::vector<GangSpan> spans_;
};

// From when on it gave no sign of life, by the blow that explains its failure.
std::optional<WallTime> still_since(const Run& run, const Blame& blame, std::uint32_t gang, const JobEvent& failed) {
  for (std::size_t i = 0; i < blame.stories.size(); ++i) {
    const auto story = blame.stories[i].gangs.find(gang);
    if (story == blame.stories[i].gangs.end() || story->second.failed != std::optional(failed.time)) continue;
    return struck_at(run, run.record->blows[i]);
  }
  return std::nullopt;
}

void GangFold::note(const JobEvent& event, const Blame& blame, const TimeSheet& sheet) {
  switch (event.kind) {
    case kGangStarting:
      to(event.time, TimeBin::kLaunching);
      generation_ = event.generation;
      places_.push_back(names_in(detail_of(event, "hosts").value_or("")));
      names_ += places_.back().size();
      started_ = event.time;
      named_steps_ = number_of(event, "furthest").has_value();
      return;
    case kGangRunning: {
      const bool works = !named_steps_ && !run_.gangs[gang_].says_ready;
      return to(event.time, works ? TimeBin::kNew : TimeBin::kStarting);
    }
    case kGangReady: return named_steps_ ? void() : to(event.time, TimeBin::kNew);
    case kGangCaughtUp: {
      const Duration redone = redone_within(run_, sheet, gang_, started_, event.time);
      to(later(event.time, Duration::zero() - redone), TimeBin::kRedone);
      return to(event.time, TimeBin::kNew);
    }
    case kGangFailed: {
      const auto still = still_since(run_, blame, gang_, event);
      if (still && *still < event.time) to(*still, TimeBin::kStill);
      const bool final = detail_of(event, "remedy").value_or("fail") == "fail";
      return to(event.time, final ? std::nullopt : std::optional(TimeBin::kDeciding));
    }
    case kGangWaiting:
      // A fence and a back-off are told as something usual.
      if (event.severity != Severity::kInfo || generation_ == 0) to(event.time, TimeBin::kWaiting);
      return;
    case kGangParked:
    case kGangReturning: return to(event.time, TimeBin::kWaiting);
    case kGangStopping: return to(event.time, TimeBin::kStopping);
    case kGangDone:
    case kGangStopped:
    case kGangEnded: return to(event.time, std::nullopt);
    default: return;
  }
}

// Gangs that stood still, and went on by themselves.
void add_stills(const Run& run, const Blame& blame, std::uint32_t gang, std::vector<GangSpan>& spans) {
  for (std::size_t i = 0; i < blame.stories.size(); ++i) {
    const BlowStory& story = blame.stories[i];
    const Blow& blow = run.record->blows[i];
    if (story.fault == nullptr || blow.end != BlowEnd::kEffective || !strikes(run, blow, gang)) continue;
    const bool stops = story.fault->what == StrikeWhat::kStop &&
                       (story.fault->whom == StrikeWhom::kRank || story.fault->whom == StrikeWhom::kHost);
    const auto told = story.gangs.find(gang);
    if (!stops || (told != story.gangs.end() && told->second.failed)) continue;
    const WallTime from = struck_at(run, blow);
    const WallTime to = over_at(run, blow);
    for (std::size_t s = 0; s < spans.size(); ++s) {
      const GangSpan whole = spans[s];
      if (whole.bin != TimeBin::kNew || whole.to <= from || whole.from >= to) continue;
      std::vector<GangSpan> parts = {whole, whole, whole};
      parts[0].to = parts[1].from = std::max(from, whole.from);
      parts[1].to = parts[2].from = std::min(to, whole.to);
      parts[1].bin = TimeBin::kStill;
      std::erase_if(parts, [](const GangSpan& part) { return part.from >= part.to; });
      spans.erase(spans.begin() + static_cast<std::ptrdiff_t>(s));
      spans.insert(spans.begin() + static_cast<std::ptrdiff_t>(s), parts.begin(), parts.end());
      s += parts.size() - 1;
    }
  }
}

struct HostSpan {
  WallTime from;
  WallTime to;
  TimeBin bin = TimeBin::kNew;
  std::uint64_t generation = 0;
  std::uint32_t gang = 0;
};

std::size_t badness(TimeBin bin) {
  const auto* const at = std::find(kWorstFirst.begin(), kWorstFirst.end(), bin);
  return static_cast<std::size_t>(kWorstFirst.end() - at);
}

// Without a gap: where no rank was, there is a span without a bin.
std::vector<LaneSpan> swept(const Run& run, const std::vector<HostSpan>& all, WallTime from, WallTime to) {
  std::vector<WallTime> cuts = {from, to};
  for (const HostSpan& one : all) {
    cuts.push_back(one.from);
    cuts.push_back(one.to);
  }
  std::sort(cuts.begin(), cuts.end());
  cuts.erase(std::unique(cuts.begin(), cuts.end()), cuts.end());
  std::vector<HostSpan> open = all;
  std::sort(open.begin(), open.end(), [](const HostSpan& a, const HostSpan& b) { return a.from < b.from; });
  std::vector<const HostSpan*> now;
  std::size_t next = 0;
  std::vector<LaneSpan> spans;
  for (std::size_t c = 0; c + 1 < cuts.size(); ++c) {
    std::erase_if(now, [&](const HostSpan* one) { return one->to <= cuts[c]; });
    for (; next < open.size() && open[next].from <= cuts[c]; ++next) now.push_back(&open[next]);
    const HostSpan* worst = nullptr;
    for (const HostSpan* one : now) {
      if (one->to <= cuts[c]) continue;
      if (worst == nullptr || badness(one->bin) > badness(worst->bin)) worst = one;
    }
    LaneSpan span{.from = cuts[c], .to = cuts[c + 1], .bin = std::nullopt, .gang = {}, .generation = 0};
    if (worst != nullptr) {
      span.bin = worst->bin;
      span.gang = run.gangs[worst->gang].name;
      span.generation = worst->generation;
    }
    const bool same = !spans.empty() && spans.back().bin == span.bin && spans.back().gang == span.gang &&
                      spans.back().generation == span.generation;
    if (same) {
      spans.back().to = span.to;
    } else {
      spans.push_back(std::move(span));
    }
  }
  return spans;
}

bool is_struck(const DrillRecord& record, const std::string& host) {
  return std::any_of(record.blows.begin(), record.blows.end(),
                     [&](const Blow& blow) { return blow.end != BlowEnd::kSkipped && blow.target.host == host; });
}

Lane supervisor_lane(const Run& run, const Blame& blame) {
  const DrillRecord& record = *run.record;
  Lane lane{.host = {}, .role = "supervisor", .quiet = true, .spans = {}};
  WallTime at = record.started;
  const auto put = [&](WallTime to, TimeBin bin) {
    to = std::clamp(to, at, std::max(at, record.ended));
    if (to > at) lane.spans.push_back({.from = at, .to = to, .bin = bin, .gang = {}, .generation = 0});
    at = to;
  };
  for (std::size_t i = 0; i < record.blows.size(); ++i) {
    const Blow& blow = record.blows[i];
    if (!blow.target.host.empty() || blow.end != BlowEnd::kEffective) continue;
    lane.quiet = false;
    put(struck_at(run, blow), TimeBin::kNew);
    put(std::max(over_at(run, blow), blame.stories[i].seen.value_or(WallTime{})), TimeBin::kStill);
  }
  put(record.ended, TimeBin::kNew);
  return lane;
}

}  // namespace

void put_lanes(const Run& run, const Blame& blame, const TimeSheet& sheet, DrillReport& report) {
  const DrillRecord& record = *run.record;
  std::vector<GangFold> folds;
  for (std::uint32_t g = 0; g < run.gangs.size(); ++g) folds.emplace_back(run, g, record.started, record.ended);
  std::size_t names = 0;
  for (const RunEvent& one : run.by_time) {
    if (!one.gang || names > kMostNames) continue;
    const std::size_t before = folds[*one.gang].names();
    folds[*one.gang].note(*one.event, blame, sheet);
    names += folds[*one.gang].names() - before;
  }
  std::map<std::string, std::vector<HostSpan>> hosts;
  for (const DrillSample& sample : record.samples) {
    for (const auto& [name, phase] : sample.hosts) (void)hosts[name];
  }
  std::size_t many = 0;
  for (std::uint32_t g = 0; g < run.gangs.size(); ++g) {
    std::vector<GangSpan> spans = folds[g].done();
    add_stills(run, blame, g, spans);
    for (const GangSpan& span : spans) {
      for (const std::string& name : folds[g].hosts_of(span)) {
        if (++many > kMostHostSpans) break;
        hosts[name].push_back(
            {.from = span.from, .to = span.to, .bin = span.bin, .generation = span.generation, .gang = g});
      }
    }
  }
  report.lanes.push_back(supervisor_lane(run, blame));
  for (const auto& [name, spans] : hosts) {
    const bool worked = std::all_of(spans.begin(), spans.end(), [&record](const HostSpan& one) {
      return one.bin == TimeBin::kNew || one.to <= record.control_from || one.from >= record.faults_to;
    });
    report.lanes.push_back({.host = name,
                            .role = spans.empty() ? "spare" : "rank",
                            .quiet = worked && !is_struck(record, name),
                            .spans = swept(run, spans, record.started, record.ended)});
  }
}

}  // namespace monarch::drill
