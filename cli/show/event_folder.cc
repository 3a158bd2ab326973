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

// What several hosts are of whom this is told; empty: each is told of by itself.
std::string_view hosts_change(EventKind kind) {
  if (kind == EventKind::kHostReady) return "are ready";
  if (kind == EventKind::kHostSuspect) return "are silent; nothing is stopped";
  if (kind == EventKind::kHostHeard) return "are heard again";
  return "";
}

std::string of_several(std::string_view change) {
  if (change.starts_with("is ")) return text("are ", change.substr(3));
  if (change.starts_with("has ")) return text("have ", change.substr(4));
  return std::string(change);
}

}  // namespace

EventFolder::EventFolder(const JobSpec& spec) : many_hosts_(spec.hosts_needed() + spec.spares() > kManyHosts) {
  for (const MeshSpec& mesh : spec.meshes) {
    const bool small = mesh.gang_size() == 1 && mesh.gangs() > 1;
    if (small || mesh.gangs() > kManyHosts) gangs_.emplace(mesh.name, mesh.gangs());
  }
}

std::string EventFolder::change_of(const JobEvent& event) const {
  if (many_hosts_ && !hosts_change(event.kind).empty()) return std::string(hosts_change(event.kind));
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
    if (since <= alike->window.count_nanoseconds()) {
      ++alike->count;
      return shown;
    }
    shown = take_all();
  }
  const Duration window = gangs_.contains(event.mesh) ? kWindow : kHostsWindow;
  waiting_.push_back({.first = event, .change = change, .count = 1, .window = window, .due = now + window});
  return shown;
}

std::vector<JobEvent> EventFolder::take_due(Instant now) { return due() <= now ? take_all() : std::vector<JobEvent>(); }

std::string EventFolder::words_of(const Waiting& waiting) const {
  const auto gangs = gangs_.find(waiting.first.mesh);
  if (gangs == gangs_.end()) return text(waiting.count, " hosts ", waiting.change);
  const bool every = waiting.count == gangs->second;
  return text(waiting.first.mesh, ": ", every ? "all " : "", waiting.count, " gangs ", of_several(waiting.change));
}

Instant EventFolder::due() const {
  Instant due = Instant::never();
  for (const Waiting& one : waiting_) due = std::min(due, one.due);
  return due;
}

std::vector<JobEvent> EventFolder::take_all() {
  std::vector<JobEvent> all;
  for (Waiting& one : std::exchange(waiting_, {})) {
    if (one.count > 1) one.first.message = words_of(one);
    all.push_back(std::move(one.first));
  }
  return all;
}

}  // namespace monarch
