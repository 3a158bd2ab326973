#include "supervisor/journal/journal_thread.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <deque>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/limits.h"
#include "transport/base/text.h"
#include "transport/loop/event_loop.h"

namespace monarch {

namespace {

// Appended before a sync; beyond, the batch is flushed first.
constexpr std::size_t kBatchBytes = limits::kJournalPendingBytes / 2;
// How soon reports are offered again to an owner whose inbox is full.
constexpr Duration kOfferAgain = Duration::milliseconds(20);

std::size_t bytes_of(const AppendRequest& request) {
  std::size_t sum = 0;
  for (const AppendRecord& record : request.records) sum += record.payload.size() + kRecordOverhead;
  return sum;
}

bool is_plain_name(const std::string& name) {
  const bool ours = name == kSnapshotName || name == kSnapshotTemporaryName || segment_number(name).has_value();
  return !name.empty() && name.front() != '.' && name.find('/') == std::string::npos && !ours;
}

}  // namespace

// Lives on the journal's thread.
class JournalThread::Worker {
 public:
  Worker(JournalThreadOptions options, Inbox<JournalRequest>& requests)
      : options_(std::move(options)), requests_(requests), waits_(writer().waits()) {}

  // `stop`: readable once it shall end.
  void run(int stop) {
    bool stopping = false;
    while (!stopping) {
      // In this order: whatever was submitted before begin_stop() is in the queue once the stop is seen.
      stopping = wait(stop);
      if (stopping || may_take()) take_requests();
      const Instant now = boot_now();
      look_for_removal(now);
      if (stopping || now >= retry_at_) work(stopping);
      offer_reports();
    }
    finish();
  }

 private:
  struct Batched {
    std::uint64_t ticket = 0;
    std::optional<std::size_t> file;  // of beside_: it is that, and no records
  };

  // Nothing is taken while stuck or while nobody takes the reports: the bounded inbox then holds the caller back.
  bool may_take() const { return reports_.empty() && !stuck(); }
  bool stuck() const { return !failure_ && writer().health() == JournalHealth::kStuck; }
  JournalWriter& writer() const { return *options_.writer; }

  // Whether `stop` is readable.
  bool wait(int stop) {
    Instant due = boot_now() + options_.look_every;
    if (stuck()) due = std::min(due, retry_at_);
    if (!batch_.empty() && !stuck()) due = std::min(due, company_until_);
    if (!reports_.empty()) due = std::min(due, boot_now() + kOfferAgain);
    std::array<pollfd, 2> ready{{{stop, POLLIN, 0}, {requests_.descriptor(), POLLIN, 0}}};
    // EINTR or a spurious wake-up costs one turn.
    (void)::poll(ready.data(), may_take() ? 2 : 1, EventLoop::wait_milliseconds(boot_now(), due));
    return ready[0].revents != 0;
  }

  void take_requests() {
    for (JournalRequest& request : requests_.take_all()) queue_.push_back(std::move(request));
  }

  void look_for_removal(Instant now) {
    if (gone_ || now < look_at_) return;
    look_at_ = now + options_.look_every;
    if (!writer().deleted()) return;
    gone_ = true;
    fail(Error{ErrorCode::kGone, "the job's state directory or its journal was removed while the job runs"});
  }

  void work(bool stopping) {
    if (stuck() && !flush()) return;
    while (!queue_.empty()) {
      if (failure_) {
        refuse(queue_.front(), *failure_);
      } else if (auto* append = std::get_if<AppendRequest>(&queue_.front())) {
        add(*append);
      } else {
        // Files and snapshots mean nothing before the records that were submitted before them.
        if (auto* file = std::get_if<WriteFileRequest>(&queue_.front()); file && !write(*file)) return;
        if (auto* snapshot = std::get_if<SnapshotRequest>(&queue_.front())) {
          if (!flush()) return;
          take(*snapshot);
        }
      }
      queue_.pop_front();
      if (batch_bytes_ >= kBatchBytes && !flush()) return;
    }
    if (waited_for_ || stopping || boot_now() >= company_until_) (void)flush();  // what stays waits for the next try
  }

  void add(const AppendRequest& request) {
    for (const AppendRecord& record : request.records) {
      if (record.payload.size() > limits::kJournalPayloadBytes) {
        refuse(request, Error{ErrorCode::kInvalid, text("a journal record of ", record.payload.size(),
                                                        " bytes is larger than ", limits::kJournalPayloadBytes)});
        return;
      }
    }
    if (bytes_of(request) > kBatchBytes) {
      refuse(request, Error{ErrorCode::kInvalid, text("a request of ", bytes_of(request), " bytes to the journal")});
      return;
    }
    for (const AppendRecord& record : request.records) {
      const Result<std::uint64_t> lsn = writer().append(record);
      MONARCH_ASSERT_BECAUSE(lsn.ok(), "sizes are checked above and a batch is flushed below the writer's limit");
    }
    batch_bytes_ += bytes_of(request);
    beside_.insert(beside_.end(), request.beside.begin(), request.beside.end());
    put_in_batch({.ticket = request.ticket, .file = {}}, request.patient);
  }

  void put_in_batch(const Batched& request, bool patient) {
    if (batch_.empty()) company_until_ = boot_now() + options_.patience;
    waited_for_ = waited_for_ || !patient;
    batch_.push_back(request);
  }

  // False while the batch cannot be made durable.
  bool flush() {
    if (failure_) return true;
    const bool was_stuck = stuck();
    if (batch_.empty() && !was_stuck) return true;
    const Instant began = boot_now();
    const std::uint64_t before = writer().waits();
    const JournalHealth health = writer().flush(beside_);
    (waited_for_ ? waits_ : unwaited_) += writer().waits() - before;
    switch (health) {
      case JournalHealth::kGood: break;
      case JournalHealth::kStuck:
        if (!was_stuck) report(JournalStuck{writer().trouble()});
        retry_at_ = boot_now() + options_.retry_every;
        return false;
      case JournalHealth::kFailed: fail(writer().trouble()); return true;
    }
    retry_at_ = Instant();
    if (was_stuck) report(JournalUnstuck{});
    if (const auto failure = failure_beside_records()) {
      fail(*failure);
      return true;
    }
    const Duration took = boot_now() - began;
    for (const Batched& done : batch_) {
      if (done.file) {
        told(done.ticket, beside_[*done.file]);
      } else {
        report(RecordsDurable{done.ticket, writer().durable_lsn(), writer().snapshot_due(), took, waits_, unwaited_});
      }
    }
    empty_batch();
    return true;
  }

  // Of a file that records need: they justify nothing without it.
  std::optional<Error> failure_beside_records() const {
    for (std::size_t i = 0; i < beside_.size(); ++i) {
      const auto is_its = [i](const Batched& one) { return one.file == i; };
      if (beside_[i].failure == 0 || std::any_of(batch_.begin(), batch_.end(), is_its)) continue;
      return errno_error(text("write ", beside_[i].name), beside_[i].failure);
    }
    return std::nullopt;
  }

  void told(std::uint64_t ticket, const FileBeside& file) {
    if (file.failure == 0) return report(FileWritten{ticket});
    report(RequestRefused{ticket, errno_error(text("write ", file.name), file.failure)});
  }

  // False: it waits for the journal, which has no space.
  bool write(const WriteFileRequest& request) {
    std::optional<Error> why = failure_;
    if (!why && !is_plain_name(request.name)) {
      why = Error{ErrorCode::kInvalid, text("\"", printable(request.name), "\" is no file of a job")};
    }
    if (!why) {
      const Errno failure = write_aside(*options_.files, request.name, request.bytes);
      if (failure == 0) {
        put_in_batch({.ticket = request.ticket, .file = beside_.size()}, false);
        beside_.push_back({.name = request.name, .aside = true});
        return true;
      }
      why = errno_error(text("write ", request.name), failure);
    }
    // What is before it is answered before it.
    if (!flush()) return false;
    refuse(request, *why);
    return true;
  }

  void take(const SnapshotRequest& request) {
    if (failure_) return refuse(request, *failure_);
    const Status taken = writer().take_snapshot(request.state, request.stamp);
    if (taken.ok()) return report(SnapshotTaken{request.ticket});
    refuse(request, taken.error());
    if (stuck()) report(JournalStuck{writer().trouble()});
    if (writer().health() == JournalHealth::kFailed) fail(writer().trouble());
  }

  void fail(const Error& why) {
    if (failure_) return;
    failure_ = why;
    report(JournalFailed{why});
    for (const Batched& done : batch_) report(RequestRefused{done.ticket, why});
    empty_batch();
  }

  void empty_batch() {
    batch_.clear();
    beside_.clear();
    batch_bytes_ = 0;
    waited_for_ = false;
  }

  template <class Request>
  void refuse(const Request& request, const Error& why) {
    report(RequestRefused{request.ticket, why});
  }
  void refuse(const JournalRequest& request, const Error& why) {
    std::visit([&](const auto& one) { refuse(one, why); }, request);
  }

  void report(JournalReport value) { reports_.push_back(std::move(value)); }

  void offer_reports() {
    while (!reports_.empty() && options_.reports->put(reports_.front())) reports_.pop_front();
  }

  void finish() {
    const bool drained = !failure_ && batch_.empty() && queue_.empty();
    const Error why = writer().health() == JournalHealth::kStuck ? writer().trouble()
                                                                 : Error{ErrorCode::kGone, "the journal has stopped"};
    for (const Batched& done : batch_) report(RequestRefused{done.ticket, why});
    for (const JournalRequest& request : queue_) refuse(request, why);
    report(JournalStopped{drained});
    // An owner that no longer takes its reports has said by that that it does not want them.
    for (int tries = 0; tries < 100 && !reports_.empty(); ++tries) {
      offer_reports();
      if (!reports_.empty()) (void)::poll(nullptr, 0, static_cast<int>(kOfferAgain.count_milliseconds()));
    }
  }

  JournalThreadOptions options_;
  Inbox<JournalRequest>& requests_;
  std::deque<JournalRequest> queue_;
  std::vector<Batched> batch_;      // what was appended or written and is not durable
  std::vector<FileBeside> beside_;  // and the files of it
  std::size_t batch_bytes_ = 0;
  bool waited_for_ = false;  // by somebody, or what comes after it
  Instant company_until_;    // of a batch that nobody waits for
  std::uint64_t waits_;
  std::uint64_t unwaited_ = 0;
  std::deque<JournalReport> reports_;  // not yet taken by the owner's inbox
  std::optional<Error> failure_;
  bool gone_ = false;
  Instant retry_at_;
  Instant look_at_;
};

Result<std::unique_ptr<JournalThread>> JournalThread::start(JournalThreadOptions options) {
  MONARCH_ASSERT(options.files != nullptr && options.writer != nullptr && options.reports != nullptr);
  std::unique_ptr<JournalThread> thread(new JournalThread());
  MONARCH_ASSIGN(thread->requests_, Inbox<JournalRequest>::create(options.capacity));
  thread->worker_ = std::make_unique<Worker>(std::move(options), *thread->requests_);
  Worker* const worker = thread->worker_.get();
  MONARCH_ASSIGN(thread->thread_, JoiningThread::start([worker](int stop) { worker->run(stop); }));
  return thread;
}

JournalThread::JournalThread() = default;
JournalThread::~JournalThread() = default;

}  // namespace monarch
