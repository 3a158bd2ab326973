#include "cli/show/announcer.h"

#include <algorithm>

#include "supervisor/core/spec/placement.h"
#include "transport/base/text.h"

namespace monarch {

namespace {

constexpr std::size_t kMostNames = 4;
constexpr std::int64_t kCheckpointsEvery = Duration::seconds(10).count_nanoseconds();

std::string some_names(const std::vector<std::string>& names) {
  if (names.size() <= kMostNames) return join(names, ", ");
  const std::vector<std::string> first(names.begin(), names.begin() + kMostNames);
  return text(join(first, ", "), " and ", names.size() - kMostNames, " more");
}

// Whole seconds: a line of progress that changes with every millisecond cannot be read.
std::string elapsed_text(Duration waited) { return to_text(Duration::seconds(waited.count_milliseconds() / 1000)); }

}  // namespace

std::string plain_event_line(const JobEvent& event) {
  const std::string_view severity = event.severity == Severity::kError     ? "error "
                                    : event.severity == Severity::kWarning ? "warning "
                                                                           : "";
  return text(to_text(event.time), " ", severity, name_of(event.kind), " ", printable(event.message), "\n");
}

std::string terminal_event_line(const JobEvent& event, bool colour) {
  Colour mark_colour = Colour::kGreen;
  std::string_view mark = "✓";
  if (event.severity == Severity::kWarning) {
    mark_colour = Colour::kYellow;
    mark = "!";
  } else if (event.severity == Severity::kError) {
    mark_colour = Colour::kRed;
    mark = "✗";
  }
  constexpr std::size_t kTimeAt = 11;  // behind the date
  constexpr std::size_t kTimeSize = 8;
  return text(paint(Colour::kDim, to_text(event.time).substr(kTimeAt, kTimeSize), colour), " ",
              paint(mark_colour, mark, colour), " ", printable(event.message), "\n");
}

Announcer::Announcer(const JobSpec& spec, const Terminal& terminal)
    : terminal_(terminal), folder_(spec), wanted_(spec.hosts_needed() + spec.spares()) {
  for (const PoolHost& host : pool_of(spec)) {
    if (hosts_.size() < wanted_) hosts_.push_back(host.name);
  }
  for (const MeshSpec& mesh : spec.meshes) gangs_.emplace_back(mesh.name, mesh.gangs());
}

// Of a gang that commits several times a second nothing else could be read. `monarch events` has them all.
bool Announcer::is_one_of_many(const JobEvent& event) {
  if (event.kind != EventKind::kCheckpointCommitted) return false;
  std::string gang;
  for (const auto& [key, value] : event.details) {
    if (key == "gang") gang = value;
  }
  const auto [told, first] = told_of_checkpoint_.try_emplace({event.mesh, gang}, event.time);
  const std::int64_t since = event.time.nanoseconds_since_epoch - told->second.nanoseconds_since_epoch;
  if (!first && since >= 0 && since < kCheckpointsEvery) return true;
  told->second = event.time;
  return false;
}

std::string Announcer::on_event(const JobEvent& event, Instant now) {
  if (event.kind == EventKind::kHostReady) ready_.insert(event.host);
  if (event.kind == EventKind::kHostLost || event.kind == EventKind::kHostFailed)
    std::erase(hosts_, event.host);  // nobody waits for it
  if (event.kind == EventKind::kHostReplaced && std::find(hosts_.begin(), hosts_.end(), event.host) == hosts_.end()) {
    hosts_.push_back(event.host);
  }
  if (event.kind == EventKind::kHostNamed) {
    for (const auto& [key, before] : event.details) {
      if (key == "replaces") std::replace(hosts_.begin(), hosts_.end(), before, event.host);
    }
  }
  if (event.kind == EventKind::kGangRunning) ++gangs_running_[event.mesh];
  if (event.kind == EventKind::kJobRunning) phase_ = Phase::kRunning;
  if (event.kind == EventKind::kJobStopping) phase_ = Phase::kStopping;
  if (event.kind == EventKind::kJobEnded) phase_ = Phase::kEnded;
  if ((terminal_.quiet && event.severity != Severity::kError) || is_one_of_many(event)) return "";
  return lines_of(folder_.add(event, now));
}

std::string Announcer::take_due(Instant now) { return lines_of(folder_.take_due(now)); }

// On a terminal what only changes the progress has no line.
std::string Announcer::lines_of(const std::vector<JobEvent>& events) const {
  std::string lines;
  for (const JobEvent& event : events) {
    const bool matters = event.severity != Severity::kInfo || event.kind == EventKind::kJobRunning ||
                         event.kind == EventKind::kHostQueued;
    if (!terminal_.err_live) {
      lines += plain_event_line(event);
    } else if (matters && event.kind != EventKind::kJobEnded) {
      lines += terminal_event_line(event, terminal_.err_colour);
    }
  }
  return lines;
}

void Announcer::on_status(const JobStatus& status) {
  for (const HostStatus& host : status.hosts) {
    const bool coming = host.phase == "cold" || host.phase == "launching" || host.phase == "joining" ||
                        host.phase == "on request" || host.phase == "queued";
    if (!coming) ready_.insert(host.name);
  }
  for (const MeshStatus& mesh : status.meshes) {
    if (mesh.phase != "waiting" && mesh.phase != "starting") gangs_running_[mesh.name] = UINT32_MAX;  // of all of them
  }
  if (status.phase == "running") phase_ = Phase::kRunning;
  if (status.phase == "stopping") phase_ = Phase::kStopping;
  if (status.phase == "ended") phase_ = Phase::kEnded;
}

std::vector<std::string> Announcer::missing_hosts() const {
  std::vector<std::string> missing;
  for (const std::string& host : hosts_) {
    if (!ready_.contains(host)) missing.push_back(host);
  }
  return missing;
}

std::vector<std::string> Announcer::missing_meshes() const {
  std::vector<std::string> missing;
  for (const auto& [mesh, gangs] : gangs_) {
    const auto running = gangs_running_.find(mesh);
    if (running == gangs_running_.end() || running->second < gangs) missing.push_back(mesh);
  }
  return missing;
}

std::string Announcer::waited_for(Duration waited) const {
  const std::vector<std::string> missing = missing_hosts();
  if (missing.empty()) {
    const std::vector<std::string> meshes = missing_meshes();
    return text("waiting ",
                meshes.empty() ? "until every mesh is ready" : text("for the ranks of ", some_names(meshes)), " (",
                elapsed_text(waited), ")");
  }
  return text("waiting for ", some_names(missing), " (", elapsed_text(waited), ")");
}

std::string Announcer::progress(Duration waited) const {
  switch (phase_) {
    case Phase::kStarting:
      return text(" starting  hosts ", hosts_.size() - missing_hosts().size(), "/", wanted_, "  ", waited_for(waited));
    case Phase::kStopping: return text(" stopping  (", elapsed_text(waited), ")");
    case Phase::kRunning:
    case Phase::kEnded: return "";
  }
  return "";
}

std::string Announcer::still_waiting(Duration waited) const {
  if (phase_ == Phase::kStarting) return text("still ", waited_for(waited));
  if (phase_ == Phase::kStopping) return text("still stopping (", elapsed_text(waited), ")");
  return "";
}

}  // namespace monarch
