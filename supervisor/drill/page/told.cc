#include "supervisor/drill/page/told.h"

#include <algorithm>
#include <map>

#include "supervisor/drill/core/drill_words.h"
#include "supervisor/drill/page/page_text.h"
#include "supervisor/drill/page/tables.h"
#include "supervisor/drill/page/time_axis.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

using EventsByNumber = std::map<std::uint64_t, const JobEvent*>;

std::string padded(std::string words, std::size_t width, bool to_the_right) {
  const std::size_t blanks = words.size() < width ? width - words.size() : 0;
  return to_the_right ? std::string(blanks, ' ') + words : words + std::string(blanks, ' ');
}

std::string event_line(const JobEvent& event, WallTime from) {
  const double seconds = seconds_between(from, event.time);
  return text(padded(text(seconds < 0 ? "" : "+", fixed(seconds, 3)), 8, true), "s  ",
              padded(std::string(name_of(event.kind)), 20, false), "  ", page_text(event.message), "\n");
}

std::string lines_of(const Blow& blow, const FaultFigures& figures, const EventsByNumber& events) {
  std::string out;
  std::size_t told = 0;
  for (const std::uint64_t number : figures.events) {
    const auto event = events.find(number);
    if (event == events.end()) continue;
    if (told == kMostTold || out.size() > kMostBytes) return text(out, "and more: events.jsonl has all of them\n");
    out += event_line(*event->second, when_struck(blow));
    ++told;
  }
  return out.empty() ? "nothing\n" : out;
}

std::string some_lines(const std::vector<std::string>& lines) {
  std::string out = "<ul>\n";
  for (std::size_t i = 0; i < std::min(lines.size(), kMostRows); ++i)
    out += text("<li>", page_text(lines[i]), "</li>\n");
  if (lines.size() > kMostRows) out += text("<li>and ", lines.size() - kMostRows, " more</li>\n");
  return out + "</ul>\n";
}

}  // namespace

std::string what_the_job_said(const DrillRecord& record, const DrillReport& report) {
  EventsByNumber events;
  for (const JobEvent& event : record.events) events.emplace(event.number, &event);
  std::string out;
  for (std::size_t i = 0; i < record.blows.size(); ++i) {
    const Blow& blow = record.blows[i];
    if (blow.end == BlowEnd::kSkipped) continue;
    const FaultFigures& figures = figures_of(report, i);
    const bool open = state_of(blow, figures) == FaultState::kWrong;
    out += text("<details", open ? " open=\"\"" : "", "><summary>", blow.number, ". ", page_text(blow.fault), " of ",
                page_text(target_words(blow)), " at ", moment_words(record, when_struck(blow)), ": ",
                page_text(result_words(blow, figures)), "</summary>\n<pre>", lines_of(blow, figures, events),
                "</pre></details>\n");
  }
  return out;
}

std::string what_is_nobodys(const DrillRecord& record, const DrillReport& report) {
  std::string out;
  if (!report.false_positives.empty()) {
    out += text("<h3>Blame that no fault explains (", report.false_positives_of_control,
                " of it during control)</h3>\n", some_lines(report.false_positives));
  }
  std::vector<std::string> left;
  for (const DrillLeftover& leftover : record.leftovers)
    left.push_back(text(leftover.host.empty() ? "here" : leftover.host, ": ", leftover.what));
  if (!left.empty()) out += text("<h3>Left behind</h3>\n", some_lines(left));
  if (!record.left_out.empty()) out += text("<h3>Not asked for</h3>\n", some_lines(record.left_out));
  return out;
}

}  // namespace monarch::drill
