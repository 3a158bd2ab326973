#include "cli/show/event_folder.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "transport/base/take_number.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

bool is_folded(EventKind kind) {
  return kind == EventKind::kGangStarting || kind == EventKind::kGangRunning || kind == EventKind::kGangReady ||
         kind == EventKind::kGangDone || kind == EventKind::kGangStopped;
}

std::string of_several(std::string_view change) {
  if (change.starts_with("is ")) return text("are ", change.substr(3));
  if (change.starts_with("has ")) return text("have ", change.substr(4));
  return std::string(change);
}

}  // namespace

EventFolder::EventFolder(const JobSpec& spec) {
  for (const MeshSpec& mesh : spec.meshes) {
    if (mesh.gang_size() == 1 && mesh.gangs() > 1) gangs_.emplace(mesh.name, mesh.gangs());
  }
}

std::string EventFolder::change_of(const JobEvent& event) const {
  if (event.severity != Severity::kInfo || !is_folded(event.kind) || !gangs_.contains(event.mesh)) return {};
  std::string_view rest = event.message;
  const std::string before = text(event.mesh, ": gang ");
  std::uint32_t gang = 0;
  if (!rest.starts_with(before)) return {};
  rest.remove_prefix(before.size());
  if (!take_number(rest, gang) || !rest.starts_with(' ')) return {};
  return std::string(rest.substr(1));
}

std::vector<JobEvent> EventFolder::add(const JobEvent& event, Instant now) {
  const std::string change = change_of(event);
  if (change.empty()) {
    std::vector<JobEvent> all = take_all();
    all.push_back(event);
    return all;
  }
  const auto alike = std::find_if(waiting_.begin(), waiting_.end(), [&](const Waiting& one) {
    return one.first.mesh == event.mesh && one.first.kind == event.kind && one.change == change;
  });
  std::vector<JobEvent> shown;
  if (alike != waiting_.end()) {
    const std::int64_t since = event.time.nanoseconds_since_epoch - alike->first.time.nanoseconds_since_epoch;
    if (since <= kWindow.count_nanoseconds()) {
      ++alike->count;
      return shown;
    }
    shown = take_all();
  }
  waiting_.push_back({.first = event, .change = change, .count = 1, .due = now + kWindow});
  return shown;
}

std::vector<JobEvent> EventFolder::take_due(Instant now) { return due() <= now ? take_all() : std::vector<JobEvent>(); }

std::vector<JobEvent> EventFolder::take_all() {
  std::vector<JobEvent> all;
  for (Waiting& one : std::exchange(waiting_, {})) {
    if (one.count > 1) {
      const bool every = one.count == gangs_.at(one.first.mesh);
      one.first.message = text(one.first.mesh, ": ", every ? "all " : "", one.count, " gangs ", of_several(one.change));
    }
    all.push_back(std::move(one.first));
  }
  return all;
}

}  // namespace monarch
