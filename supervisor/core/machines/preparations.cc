#include "supervisor/core/machines/preparations.h"

#include "supervisor/core/spec/rank_texts.h"
#include "supervisor/core/state/first_cause.h"
#include "transport/base/text.h"
#include "transport/messages/describe_end.h"

namespace monarch {

namespace {

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

Preparations::Preparations(const CoreBasis& basis, std::vector<Preparation>& mine, Crews& crews)
    : basis_(basis), mine_(mine), crews_(crews) {
  crews_.serve(prepare_mesh(basis.spec), *this);
  mine_.resize(crew_count(basis.spec, prepare_mesh(basis.spec)));
}

// On hosts from which its end may come.
void Preparations::tend() {
  for (std::uint32_t i = 0; i < mine_.size(); ++i) {
    const HostId id(i);
    const bool needed = basis_.placement.holds_ranks(id);
    if (needed && mine_[i].reached == PrepareStage::kRunning) stop(id, "the host was needed before it was done");
    const bool fresh = mine_[i].reached == PrepareStage::kNone && is_joined(basis_.host(id).phase);
    if (fresh && !needed && may_serve(basis_.host(id))) begin(id);
  }
}

void Preparations::begin(HostId id) {
  mine_[id.value()] = Preparation{.reached = PrepareStage::kRunning, .began = basis_.now, .ended_because = {}};
  crews_.begin(key_of(id), {id}, basis_.now + basis_.spec.prepare().timeout);
  crews_.start(key_of(id));
  const std::string& name = basis_.name_of(id);
  JobEvent event =
      basis_.event(EventKind::kHostPreparing, Severity::kInfo,
                   text(name, ": is a spare, and is prepared by ", printable(basis_.spec.prepare().program.front())));
  event.host = name;
  basis_.emit(std::move(event));
}

// As a rank of its own: nothing of a rank's numbers is there, and no port, GPU or core is its alone.
Start Preparations::start_of(const CrewKey& key, std::size_t) const {
  Start message{.mesh = key.mesh,
                .mesh_name = std::string(kPrepareMesh),
                .gang = key.gang,
                .generation = crews_.at(key).generation};
  message.program = basis_.spec.prepare().program;
  message.env = {{"MONARCH_JOB_ID", basis_.options.job_id}, {"MONARCH_PREPARE", "1"}};
  message.workdir = folder_of_preparation(basis_.texts, basis_.sources());
  message.ranks.push_back(RankStart{.rank = crew_rank(basis_.spec, {key, 0})});
  message.orphan = basis_.spec.supervision.orphan;
  message.orphan_ttl = basis_.spec.supervision.orphan_ttl;
  message.stop_grace = kCrewGrace;
  message.log_max_bytes = basis_.spec.logs.max_bytes;
  return message;
}

void Preparations::stop(HostId id, const std::string& why) {
  if (crews_.stop(key_of(id), basis_.stop_beside(15)) && mine_[id.value()].ended_because.empty())
    mine_[id.value()].ended_because = why;
}

void Preparations::stop_all() {
  for (std::uint32_t i = 0; i < mine_.size(); ++i) stop(HostId(i), "the job ends");
}

void Preparations::look_at_times() {
  for (std::uint32_t i = 0; i < mine_.size(); ++i) look_at_time(HostId(i));
}

void Preparations::look_at_time(HostId id) {
  const Crew& crew = crews_.at(key_of(id));
  if (crew.deadline > basis_.now) return;
  if (crew.phase == CrewPhase::kStopping) {
    for (const HostId host : crews_.overdue(key_of(id))) stuck_.push_back(host);
    return;
  }
  stop(id, text("it took longer than spares.timeout (", to_text(basis_.spec.prepare().timeout), ")",
                basis_.late_since(crew.late_before)));
}

void Preparations::heard(const CrewPlace& place, const RankReport& report) {
  if (!crews_.heard(place, report)) return;
  if (crews_.look(place.key) == Crews::Turn::kOver) ended(HostId(place.key.gang.value()), report.end);
}

void Preparations::lose(HostId id) {
  if (mine_.empty() || mine_[id.value()].reached == PrepareStage::kNone) return;
  mine_[id.value()].reached = PrepareStage::kNone;
  crews_.forget(key_of(id));
}

void Preparations::ended(HostId id, const RankEnd& end) {
  Preparation& mine = mine_[id.value()];
  const std::string& name = basis_.name_of(id);
  const bool good = mine.ended_because.empty() && !is_failure(end);
  mine.reached = good ? PrepareStage::kPrepared : PrepareStage::kUnprepared;
  freed_ = true;
  if (basis_.state.phase > JobPhase::kRunning) return;
  const Duration took = Duration::milliseconds((basis_.now - mine.began).count_milliseconds());
  const std::string& logs = basis_.host(id).log_directory;
  const std::string why =
      mine.ended_because.empty()
          ? text(describe_end(end), "; what it wrote is in ", logs.empty() ? basis_.options.log_directory : logs, "/",
                 kPrepareMesh, "/", id.value(), ".", crews_.at(key_of(id)).generation.counter, ".err")
          : mine.ended_because;
  const bool needed = basis_.placement.holds_ranks(id);
  JobEvent event =
      basis_.event(good ? EventKind::kHostPrepared : EventKind::kHostUnprepared,
                   good || needed ? Severity::kInfo : Severity::kWarning,
                   good ? text(name, ": is prepared, after ", to_text(took))
                        : text(name, ": is not prepared: ", why,
                               needed ? "" : "; it stays a spare, and is taken after those that are prepared"));
  event.host = name;
  basis_.emit(std::move(event));
}

}  // namespace monarch
