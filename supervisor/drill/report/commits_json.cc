// Commits in columns: a job has one a second of each gang, and each is like the one before. Their times are kept to a
// tenth of a second, and their words are made again.

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "supervisor/drill/core/measure_run.h"
#include "supervisor/drill/report/columns.h"
#include "supervisor/drill/report/record_json.h"
#include "transport/base/text.h"

namespace monarch::drill {

namespace {

constexpr std::int64_t kTenth = 100'000'000;  // in nanoseconds

struct CommitColumns {
  std::size_t many = 0;
  ColumnWriter numbers;
  ColumnWriter tenths;
  ColumnWriter generations;
  ColumnWriter steps;
};

std::string commit_words(const std::string& mesh, std::uint64_t gang, std::uint64_t step, std::uint64_t generation) {
  return text(mesh, ": gang ", gang, " has committed step ", step, ", generation ", generation);
}

bool fits(std::uint64_t value) { return value <= static_cast<std::uint64_t>(kMostValue); }

}  // namespace

bool is_in_columns(const JobEvent& event) {
  const auto gang = number_of(event, "gang");
  const auto step = number_of(event, "step");
  return event.kind == EventKind::kCheckpointCommitted && event.number > 0 && gang && step && fits(event.number) &&
         fits(event.generation) && fits(*gang) && fits(*step) && event.details.size() == 2 && event.host.empty() &&
         !event.rank && event.pid == 0 && event.severity == Severity::kInfo &&
         event.message == commit_words(event.mesh, *gang, *step, event.generation);
}

Json commits_json(const std::vector<JobEvent>& events) {
  std::map<std::pair<std::string, std::uint64_t>, CommitColumns> gangs;
  for (const JobEvent& event : events) {
    if (!is_in_columns(event)) continue;
    CommitColumns& gang = gangs[{event.mesh, *number_of(event, "gang")}];
    ++gang.many;
    gang.numbers.add(static_cast<std::int64_t>(event.number));
    gang.tenths.add(std::max<std::int64_t>(event.time.nanoseconds_since_epoch, 0) / kTenth);
    gang.generations.add(static_cast<std::int64_t>(event.generation));
    gang.steps.add(static_cast<std::int64_t>(*number_of(event, "step")));
  }
  Json all = Json::array();
  for (auto& [key, columns] : gangs) {
    all.append(Json::object({{"mesh", key.first},
                             {"gang", key.second},
                             {"n", columns.many},
                             {"number", columns.numbers.done()},
                             {"tenths", columns.tenths.done()},
                             {"generation", columns.generations.done()},
                             {"step", columns.steps.done()}}));
  }
  return all;
}

Status read_commits(const Json& json, std::vector<JobEvent>& events) {
  const Error wrong{ErrorCode::kInvalid, "commits: a column is missing, cut short or no column"};
  if (!json.is_array()) return wrong;
  const std::size_t before = events.size();
  for (const Json& one : json.items()) {
    const auto mesh = one.get_string("mesh");
    const auto gang = one.get_uint64("gang");
    const auto many = one.get_uint64("n");
    if (!mesh || !gang || !many || *many > kMostEvents - std::min(events.size(), kMostEvents)) return wrong;
    std::vector<std::vector<ColumnValue>> columns;
    for (const char* name : {"number", "tenths", "generation", "step"}) {
      const Json* const column = one.find(name);
      auto read = column == nullptr ? std::nullopt : read_column(*column, static_cast<std::size_t>(*many));
      const auto good = [](const ColumnValue& value) { return value && *value >= 0; };
      if (!read || !std::all_of(read->begin(), read->end(), good)) return wrong;
      columns.push_back(std::move(*read));
    }
    for (std::size_t i = 0; i < *many; ++i) {
      const auto value = [&columns, i](std::size_t column) { return static_cast<std::uint64_t>(*columns[column][i]); };
      if (value(0) == 0 || *columns[1][i] > kMostTime / kTenth) return wrong;
      JobEvent& event = events.emplace_back();
      event.number = value(0);
      event.time = WallTime{*columns[1][i] * kTenth};
      event.kind = EventKind::kCheckpointCommitted;
      event.mesh = *mesh;
      event.generation = value(2);
      event.message = commit_words(*mesh, *gang, value(3), value(2));
      event.details = {{"gang", text(*gang)}, {"step", text(value(3))}};
    }
  }
  if (events.size() == before) return {};
  // An event without a number stays before the one that it came before.
  std::vector<std::pair<std::uint64_t, std::size_t>> order(events.size());
  std::uint64_t next = ~std::uint64_t{0};
  for (std::size_t i = events.size(); i-- > 0;) {
    if (i + 1 == before) next = ~std::uint64_t{0};
    if (events[i].number > 0) next = events[i].number;
    order[i] = {next, i};
  }
  std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<JobEvent> sorted;
  sorted.reserve(events.size());
  for (const auto& [number, i] : order) sorted.push_back(std::move(events[i]));
  events = std::move(sorted);
  return {};
}

}  // namespace monarch::drill
