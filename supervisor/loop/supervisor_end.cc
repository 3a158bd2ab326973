#include <utility>

#include "supervisor/client/job_secrets.h"
#include "supervisor/client/link/viewer_json.h"
#include "supervisor/client/start_supervisor.h"
#include "supervisor/loop/supervisor_loop.h"
#include "supervisor/workers/verdict.h"
#include "supervisor/workspace/pack.h"
#include "transport/base/clock.h"
#include "transport/base/exit_code.h"
#include "transport/base/json.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/messages/viewer.h"
#include "transport/wire/codec.h"

namespace monarch {

namespace {

// How long viewers and the guard may take to read the last words.
constexpr Duration kFarewellDeadline = Duration::seconds(1);

}  // namespace

void Supervisor::finish(const FinishJob& finish) {
  Verdict verdict = finish.verdict;
  verdict.started = started_;
  verdict.ended = wall_now();
  verdict.lost_output = losses_.account();
  add_last_words_of(verdict.cause);
  exit_code_ = verdict.exit_code;
  prepare_continuation(verdict);
  (void)decider_->append(RecordType::kVerdict, encode_payload(verdict));
  const std::string file = to_json(verdict_json(verdict)) + "\n";
  // Who is told of it finds the file, also after a crash of this machine.
  (void)decider_->write_file({.name = kVerdictFile, .bytes = file}, [this, verdict] {
    remove_secrets(files_.directory);
    WorkspacePack::remove(files_.directory.fd());
    if (!continuation_) return viewers_->publish(verdict);
    ask_continuation([this, verdict] {
      viewers_->publish(verdict);
      (void)decider_->append(RecordType::kClean, {}, [this] { leave(exit_code_); });
    });
  });
  if (!continuation_) (void)decider_->append(RecordType::kClean, {}, [this] { leave(exit_code_); });
}

void Supervisor::add_last_words_of(FirstCause& cause) const {
  UnkeptTail unkept;
  std::uint64_t written = 0;
  for (std::uint32_t m = 0; m < core_.spec().meshes.size() && cause.rank; ++m) {
    if (core_.spec().meshes[m].name != cause.mesh) continue;
    unkept = relay_->unkept_tail({MeshId(m), Rank(*cause.rank)}, cause.generation);
    written = core_.state().meshes[m].ranks[*cause.rank].stderr_bytes;  // of the last generation, as the cause is
  }
  add_last_words(files_.log_directory(), unkept, written, cause);
}

void Supervisor::watch_idleness() {
  const Duration limit = core_.spec().lifetime.idle;
  // By the journal: who would be told is not attached, or it would not be idle.
  const auto warn = [this](Duration left) { (void)decide(IdleNoted{.left = left}); };
  const auto stop = [this, limit] {
    StopRequest request;
    request.exit_code = kExitLost;
    request.who = text("lifetime.idle (", to_text(limit), "): no viewer, no request and no output of a rank");
    (void)decide(StopOrdered{.request = std::move(request)});
  };
  idle_ = std::make_unique<IdleTimer>(*loop_, limit, IdleTimer::Handlers{.on_warning = warn, .on_idle = stop});
}

// Of a limit that is the user's own.
void Supervisor::watch_descriptors() {
  const auto scarce = [this](const DescriptorUse& use) {
    announce(EventKind::kDescriptorsScarce, Severity::kWarning,
             text("the supervisor has ", use.left(), " descriptors left of ", use.limit,
                  " (ulimit -Hn): its ports take no new connection until there are more; who is connected stays"));
  };
  const auto enough = [this](const DescriptorUse& use) {
    announce(
        EventKind::kDescriptorsEnough, Severity::kInfo,
        text("the supervisor has ", use.left(), " of ", use.limit, " descriptors: its ports take connections again"));
  };
  descriptors_ = std::make_unique<DescriptorWatch>(*loop_, std::move(doors_),
                                                   DescriptorWatch::Handlers{.on_scarce = scarce, .on_enough = enough});
  viewers_->on_no_descriptor([this] { return descriptors_->make_room(); });
}

void Supervisor::leave(int exit_code) {
  if (std::exchange(leaving_, true)) return;
  exit_code_ = exit_code;
  const Status told = guard_->shutdown(exit_code);
  if (!told.ok()) log_error("telling the guard: ", told.error().message);
  farewell_until_ = loop_->now() + kFarewellDeadline;
  farewell();
}

void Supervisor::farewell() {
  const bool said = viewers_->flushed() && guard_->pending_bytes() == 0;
  if (said || loop_->now() >= farewell_until_) return loop_->stop();
  (void)loop_->at(loop_->now() + Duration::milliseconds(5), [this] { farewell(); });
}

void Supervisor::on_journal(const JournalReport& report) {
  if (const auto* r = std::get_if<RecordsDurable>(&report)) {
    links_->note_disk(r->took);
    decider_->on_durable(*r);
  } else if (const auto* written = std::get_if<FileWritten>(&report)) {
    decider_->on_answered(written->ticket);
  } else if (const auto* taken = std::get_if<SnapshotTaken>(&report)) {
    decider_->on_answered(taken->ticket);
  } else if (const auto* refused = std::get_if<RequestRefused>(&report)) {
    log_error("journal: ", refused->why.message);
    if (!decider_->on_refused(refused->ticket)) step_down(refused->why);
  } else if (const auto* stuck = std::get_if<JournalStuck>(&report)) {
    announce(EventKind::kJournalStuck, Severity::kError,
             text("the journal cannot be written, decisions wait and ranks go on: ", printable(stuck->why.message)));
  } else if (std::holds_alternative<JournalUnstuck>(report)) {
    announce(EventKind::kJournalMended, Severity::kInfo, "the journal can be written again");
  } else if (const auto* failure = std::get_if<JournalFailed>(&report)) {
    step_down(failure->why);
  }
}

// The journal cannot be continued: nothing more is decided, and the guard ends what it started.
void Supervisor::step_down(const Error& why) {
  decider_->abandon();
  if (leaving_) return;
  Verdict verdict;
  verdict.outcome = Outcome::kFailed;
  verdict.exit_code = kExitJournal;
  verdict.cause.kind = CauseKind::kInternal;
  verdict.cause.summary = text("the journal cannot be written: ", printable(why.message));
  verdict.cause.rule = "journal failed: kill all";
  verdict.reason = verdict.cause.summary;
  verdict.started = started_;
  verdict.ended = wall_now();
  announce(EventKind::kJournalFailed, Severity::kError, text(verdict.reason, ": stepping down"));
  const Status written = files_.directory.write_file(kVerdictFile, to_json(verdict_json(verdict)) + "\n");
  if (!written.ok()) log_error(written.error().message);
  remove_secrets(files_.directory);
  viewers_->publish(verdict);
  leave(kExitJournal);
}

// For who looks on now: of things that the journal cannot or need not know.
void Supervisor::announce(EventKind kind, Severity severity, std::string message) {
  JobEvent event;
  event.time = wall_now();
  event.kind = kind;
  event.severity = severity;
  event.message = std::move(message);
  switch (severity) {
    case Severity::kInfo: log_info(event.message); break;
    case Severity::kWarning: log_warn(event.message); break;
    case Severity::kError: log_error(event.message); break;
  }
  viewers_->publish(event);
}

}  // namespace monarch
