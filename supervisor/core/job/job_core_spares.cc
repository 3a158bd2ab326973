// Spares are warmed: `spares.prepare` runs once on each, as soon as it is connected, and decides nothing of the job. A
// host that a gang needs meanwhile is given to it once the program has ended there.

#include <algorithm>
#include <utility>

#include "supervisor/core/job/job_core.h"
#include "supervisor/core/spec/rank_texts.h"
#include "supervisor/core/state/first_cause.h"
#include "supervisor/core/state/preparation_life.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/messages/describe_end.h"

namespace monarch {

namespace {

// From TERM to KILL.
constexpr Duration kPrepareGrace = Duration::seconds(5);

// Where ranks start, if all of them start in one folder of every host; else that of the spec, or its copy.
std::string folder_of_preparation(const std::vector<MeshTexts>& texts, const ReferenceSources& sources) {
  std::string folder;
  for (std::uint32_t m = 0; m < texts.size(); ++m) {
    if (texts[m].workdir && depends_on_place(*texts[m].workdir)) return base_directory(sources.spec);
    std::string own = workdir_of(texts[m], sources, {MeshId(m), Rank(0)});
    if (m > 0 && own != folder) return base_directory(sources.spec);
    folder = std::move(own);
  }
  return folder;
}

}  // namespace

// Who has just become a spare is warmed; what runs on a host that is none any longer is ended, and its gang waits until
// it has.
void JobCore::tend_spares() {
  if (spec_.prepare().program.empty()) return;
  if (state_.phase == JobPhase::kNew || starts_nothing()) return;
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    const HostId id(i);
    const bool needed = placement_.holds_ranks(id);
    if (needed && lives(host(id).preparation.phase)) stop_preparing(id, "the host was needed before it was done");
    const bool fresh = host(id).preparation.phase == PreparePhase::kNone && host(id).phase == HostPhase::kJoined;
    if (fresh && !needed && may_serve(id)) begin_preparing(id);
  }
}

void JobCore::begin_preparing(HostId id) {
  Preparation& preparation = host(id).preparation;
  preparation = Preparation{.generation = {state_.term, preparation.generation.counter + 1},
                            .began = now_,
                            .deadline = now_ + spec_.prepare().timeout,
                            .late_before = state_.late,
                            .ended_because = {}};
  to(preparation, PreparePhase::kStarting);
  actions_.emplace_back(SendStart{id, prepare_message(id)});
  const std::string& name = hosts_[id.value()].name;
  JobEvent event =
      event_of(EventKind::kHostPreparing, Severity::kInfo,
               text(name, ": is a spare, and is prepared by ", printable(spec_.prepare().program.front())));
  event.host = name;
  emit(std::move(event));
}

// As a rank of its own: nothing of a rank's numbers is there, and no port, GPU or core is its alone.
Start JobCore::prepare_message(HostId id) const {
  const RankId rank = prepare_rank(spec_, id);
  Start message{.mesh = rank.mesh,
                .mesh_name = std::string(kPrepareMesh),
                .gang = GangId(id.value()),
                .generation = state_.hosts[id.value()].preparation.generation};
  message.program = spec_.prepare().program;
  message.env = {{"MONARCH_JOB_ID", options_.job_id}, {"MONARCH_PREPARE", "1"}};
  message.workdir = folder_of_preparation(
      texts_, {.spec = spec_, .placement = placement_, .hosts = hosts_, .port = nullptr, .shell = options_.shell});
  message.ranks.push_back(RankStart{.rank = rank});
  message.orphan = spec_.supervision.orphan;
  message.orphan_ttl = spec_.supervision.orphan_ttl;
  message.stop_grace = kPrepareGrace;
  message.log_max_bytes = spec_.logs.max_bytes;
  return message;
}

Stop JobCore::stop_prepare_message(HostId id) const {
  return {.ranks = {prepare_rank(spec_, id)},
          .generation = state_.hosts[id.value()].preparation.generation,
          .grace = state_.kill_ordered ? Duration::zero() : kPrepareGrace};
}

void JobCore::stop_preparing(HostId id, const std::string& why) {
  Preparation& preparation = host(id).preparation;
  if (!lives(preparation.phase)) return;
  const bool told = preparation.phase == PreparePhase::kStopping && !preparation.ended_because.empty();
  if (told && !state_.kill_ordered) return;
  to(preparation, PreparePhase::kStopping);
  if (!told) preparation.ended_because = why;
  preparation.deadline = now_ + kPrepareGrace + limits::kKillDeadline + kStopMargin;
  actions_.emplace_back(SendStop{id, stop_prepare_message(id)});
}

void JobCore::stop_all_preparing() {
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) stop_preparing(HostId(i), "the job ends");
}

void JobCore::preparation_is_due(HostId id) {
  if (host(id).preparation.phase != PreparePhase::kStopping) {
    return stop_preparing(id, text("it took longer than spares.timeout (", to_text(spec_.prepare().timeout), ")",
                                   late_since(host(id).preparation.late_before)));
  }
  host(id).preparation.deadline = Instant::never();
  give_up_host(id);
}

void JobCore::on_prepare_changed(const RankChanged& event, HostId id) {
  Preparation& preparation = host(id).preparation;
  preparation.output_complete = preparation.output_complete || event.report.output_complete;
  if (!lives(preparation.phase)) return;
  switch (event.report.phase) {
    case RankPhase::kGated: return;  // START was obeyed
    case RankPhase::kRunning:
      if (preparation.phase == PreparePhase::kStarting) to(preparation, PreparePhase::kRunning);
      return;
    case RankPhase::kStopping: return;  // by us, whose order is known, or by its end, which is told
    case RankPhase::kWedged:
      note_wedged(event, std::string(kPrepareMesh));
      return preparation_ended(id, event.report.end);
    case RankPhase::kEnded: return preparation_ended(id, event.report.end);
  }
}

void JobCore::preparation_ended(HostId id, const RankEnd& end) {
  Preparation& preparation = host(id).preparation;
  const std::string& name = hosts_[id.value()].name;
  const bool good = preparation.ended_because.empty() && !is_failure(end);
  to(preparation, good ? PreparePhase::kPrepared : PreparePhase::kUnprepared);
  preparation.deadline = Instant::never();
  waits_due_ = true;  // a gang may have waited for the host
  if (state_.phase > JobPhase::kRunning) return;
  const Duration took = Duration::milliseconds((now_ - preparation.began).count_milliseconds());
  const std::string& folder = host(id).log_directory.empty() ? options_.log_directory : host(id).log_directory;
  const std::string why = preparation.ended_because.empty()
                              ? text(describe_end(end), "; what it wrote is in ", folder, "/", kPrepareMesh, "/",
                                     id.value(), ".", preparation.generation.counter, ".err")
                              : preparation.ended_because;
  const bool needed = placement_.holds_ranks(id);
  JobEvent event =
      event_of(good ? EventKind::kHostPrepared : EventKind::kHostUnprepared,
               good || needed ? Severity::kInfo : Severity::kWarning,
               good ? text(name, ": is prepared, after ", to_text(took))
                    : text(name, ": is not prepared: ", why,
                           needed ? "" : "; it stays a spare, and is taken after those that are prepared"));
  event.host = name;
  emit(std::move(event));
}

bool JobCore::is_preparing() const {
  return std::any_of(state_.hosts.begin(), state_.hosts.end(), [](const HostState& host) {
    return host.phase == HostPhase::kJoined && lives(host.preparation.phase);
  });
}

void JobCore::add_prepare_output_on_its_way(std::vector<RankId>& ranks) const {
  for (std::uint32_t i = 0; i < state_.hosts.size(); ++i) {
    const Preparation& preparation = state_.hosts[i].preparation;
    const bool ended = preparation.phase == PreparePhase::kPrepared || preparation.phase == PreparePhase::kUnprepared;
    if (ended && !preparation.output_complete) ranks.push_back(prepare_rank(spec_, HostId(i)));
  }
}

void JobCore::add_outstanding_of_prepare(HostId id, const std::vector<RankReport>& reported,
                                         std::vector<Action>& missing) const {
  const Preparation& preparation = state_.hosts[id.value()].preparation;
  if (!lives(preparation.phase)) return;
  const RankId rank = prepare_rank(spec_, id);
  const auto found = std::find_if(reported.begin(), reported.end(), [&](const RankReport& report) {
    return report.process.rank == rank && report.process.generation == preparation.generation;
  });
  const bool unheard_of = found == reported.end();
  if (preparation.phase == PreparePhase::kStarting && unheard_of) {
    missing.emplace_back(SendStart{id, prepare_message(id)});
  }
  if (preparation.phase == PreparePhase::kStopping && (unheard_of || found->phase <= RankPhase::kRunning)) {
    missing.emplace_back(SendStop{id, stop_prepare_message(id)});
  }
}

}  // namespace monarch
