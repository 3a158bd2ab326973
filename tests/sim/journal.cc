#include "tests/sim/journal.h"

#include <cerrno>
#include <iterator>
#include <utility>

#include "tests/sim/checker.h"
#include "tests/sim/replay/recorder.h"
#include "tests/sim/world.h"

namespace monarch::sim {

namespace {

const Duration kPatience = JournalThreadOptions{}.patience;

}  // namespace

Disk::Disk(World& world) : world_(world), files_(std::make_unique<testing::FakeJournalFiles>()) { arm(); }

void Disk::arm() {
  files_->fault = [this](testing::Call call, const std::string&) {
    const bool writes = call == testing::Call::kWrite || call == testing::Call::kCreate;
    if (call == testing::Call::kSync && std::exchange(fail_next_sync_, false)) return EIO;
    return full_ && writes ? ENOSPC : 0;
  };
}

void Disk::durable(std::uint64_t lsn) {
  const auto after = state_after.upper_bound(lsn);
  if (after != state_after.begin()) state_after.erase(state_after.begin(), std::prev(after));
}

void Disk::crash(const std::function<void()>& flush) {
  if (world_.random.one_in(2)) {
    // In the middle of it: after so many more calls nothing happens any more.
    files_->die_at(files_->calls() + static_cast<std::size_t>(world_.random.below(4)));
    flush();
  }
  const auto data = static_cast<testing::DataLeft>(world_.random.below(3));
  const auto names = static_cast<testing::NamesLeft>(world_.random.below(2));
  files_ = files_->after_crash(data, names);
  arm();
}

Journal::Journal(World& world, const LifePtr& life, std::unique_ptr<JournalWriter> writer, OnReport on_report)
    : world_(world), life_(life), writer_(std::move(writer)), on_report_(std::move(on_report)) {}

void Journal::submit(JournalRequest request, StatePtr state) {
  const auto* append = std::get_if<AppendRequest>(&request);
  const bool patient = append != nullptr && append->patient;
  queue_.push_back({std::move(request), std::move(state)});
  if (!busy_) return begin(patient ? kPatience : Duration::zero());
  if (patient_ && !patient) begin(Duration::zero());
}

Duration Journal::sync_time() {
  const bool slow = world_.random.permille(world_.faults().slow_sync);
  return world_.random.skewed(Duration::microseconds(80), slow ? Duration::seconds(5) : Duration::milliseconds(1));
}

void Journal::begin(Duration patience) {
  busy_ = true;
  patient_ = patience > Duration::zero();
  send_after(world_.scheduler, patience + sync_time(), life_, [this, turn = ++turns_] {
    if (turn == turns_) work();
  });
}

void Journal::work() {
  patient_ = false;
  while (!queue_.empty()) {
    const Queued queued = std::move(queue_.front());
    if (const auto* snapshot = std::get_if<SnapshotRequest>(&queued.request)) {
      if (!flush()) break;
      (void)writer_->take_snapshot(snapshot->state, snapshot->stamp);
      on_report_(SnapshotTaken{snapshot->ticket});
    } else if (const auto* file = std::get_if<WriteFileRequest>(&queued.request)) {
      if (!flush()) break;
      on_report_(FileWritten{file->ticket});
    } else {
      add(queued);
    }
    if (!life_->alive()) return;
    queue_.pop_front();
  }
  const bool stuck = !flush();
  if (!life_->alive()) return;
  busy_ = false;
  if (!stuck && queue_.empty()) return;
  busy_ = true;
  send_after(world_.scheduler, stuck ? Duration::seconds(1) : sync_time(), life_, [this] { work(); });
}

void Journal::add(const Queued& queued) {
  const auto& request = std::get<AppendRequest>(queued.request);
  for (const AppendRecord& record : request.records) {
    const Result<std::uint64_t> lsn = writer_->append(record);
    MONARCH_ASSERT(lsn.ok());
    world_.checker->appended({record.term, request.ticket}, *lsn);
    if (record.type != RecordType::kInput) continue;
    world_.disk->state_after[*lsn] = queued.state;
    if (world_.recorder != nullptr) world_.recorder->appended(*lsn);
  }
  batch_.push_back(request.ticket);
}

bool Journal::flush() {
  if (failed_) return true;
  switch (writer_->flush()) {
    case JournalHealth::kGood: world_.disk->durable(writer_->durable_lsn()); break;
    case JournalHealth::kStuck: return false;
    case JournalHealth::kFailed:
      failed_ = true;
      on_report_(JournalFailed{writer_->trouble()});
      return true;
  }
  for (const std::uint64_t ticket : std::exchange(batch_, {})) {
    on_report_(RecordsDurable{ticket, writer_->durable_lsn(), writer_->snapshot_due()});
    if (!life_->alive()) break;
  }
  return true;
}

void Journal::crash() {
  world_.disk->crash([this] {
    for (const Queued& queued : queue_) {
      if (std::holds_alternative<AppendRequest>(queued.request)) add(queued);
    }
    (void)writer_->flush();
  });
  writer_.reset();
}

}  // namespace monarch::sim
