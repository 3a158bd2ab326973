// Flood: lines into a rank's standard output, so many bytes a second, from a process of ours.

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <string>
#include <utility>

#include "transport/base/clock.h"
#include "transport/base/text.h"
#include "worker/drill/effect.h"
#include "worker/drill/own_children.h"
#include "worker/drill/shared_count.h"
#include "worker/drill/targets.h"

namespace monarch {

namespace {

constexpr std::string_view kFloodLine =
    "monarch drill: this line is not the program's, a flood of output was asked for here\n";
constexpr std::uint64_t kMostRate = 1ULL << 30U;
constexpr std::uint64_t kLinesAtOnce =
    PIPE_BUF / kFloodLine.size();  // so many are written whole, or not at all (pipe(7))
constexpr int kFloodTickMilliseconds = 20;
constexpr std::uint64_t kSeenPart = 5;  // of a second

// The lines that are written at once.
const std::string& flood_lines() {
  static const std::string all = [] {
    std::string made;
    for (std::uint64_t i = 0; i < kLinesAtOnce; ++i) made += kFloodLine;
    return made;
  }();
  return all;
}

// Until the rank ends, or its output has no reader.
void write_lines(int output, int rank, std::uint64_t rate, SharedCount& taken) {
  (void)std::signal(SIGPIPE, SIG_IGN);
  const Instant begun = boot_now();
  std::uint64_t owed_before = 0;  // what nobody took in time is forgiven
  for (;;) {
    const auto due = static_cast<std::uint64_t>((boot_now() - begun).count_seconds() * static_cast<double>(rate));
    std::uint64_t owed = due - owed_before;
    const std::uint64_t most = std::max<std::uint64_t>(rate / kSeenPart, PIPE_BUF);
    if (owed > most) {
      owed_before += owed - most;
      owed = most;
    }
    const bool is_full = [&] {
      while (owed >= kFloodLine.size()) {
        const std::size_t count = std::min<std::uint64_t>(owed / kFloodLine.size(), kLinesAtOnce) * kFloodLine.size();
        const ssize_t wrote = ::write(output, flood_lines().data(), count);
        if (wrote < 0 && errno == EAGAIN) return true;
        if (wrote <= 0) ::_exit(0);
        taken.add(static_cast<std::uint64_t>(wrote));
        owed_before += static_cast<std::uint64_t>(wrote);
        owed -= static_cast<std::uint64_t>(wrote);
      }
      return false;
    }();
    std::array<pollfd, 2> either{{{rank, POLLIN, 0}, {is_full ? output : -1, POLLOUT, 0}}};
    (void)::poll(either.data(), either.size(), kFloodTickMilliseconds);
    if (either[0].revents != 0) return;
  }
}

class Flood final : public Effect {
 public:
  Flood(ProcessEntry rank, UniqueFd pidfd, UniqueFd output, std::uint64_t rate, std::unique_ptr<SharedCount> taken)
      : rank_(rank), pidfd_(std::move(pidfd)), output_(std::move(output)), rate_(rate), taken_(std::move(taken)) {}

  Status strike(Duration patience, StrikeSeen& seen) override {
    seen.struck_at = wall_now();
    MONARCH_TRY(writer_.start(1, [this] { write_lines(output_.get(), pidfd_.get(), rate_, *taken_); }));
    output_.reset();  // who reads it is to see its end once the writer has ended
    seen.struck = {rank_.pid};
    const std::uint64_t enough = std::max<std::uint64_t>(rate_ / kSeenPart, kFloodLine.size());
    (void)until([&] { return taken_->now() >= enough || !writer_.all_live(); }, patience);
    if (taken_->now() >= enough) return {};
    return Error{ErrorCode::kTimeout,
                 text("its standard output took ", taken_->now(), " of ", enough, " bytes within ", to_text(patience))};
  }
  Status give_back(Duration /*patience*/) override {
    writer_.end();
    return {};
  }

 private:
  ProcessEntry rank_;
  UniqueFd pidfd_;
  UniqueFd output_;
  std::uint64_t rate_;
  std::unique_ptr<SharedCount> taken_;
  OwnChildren writer_;
};

}  // namespace

PlannedEffect plan_flood(const StrikeOrder& order) {
  const std::uint64_t rate = order.size == 0 ? kFloodBytes : order.size;
  if (rate > kMostRate) {
    return Error{ErrorCode::kInvalid, text("a flood has up to ", amount_text(kMostRate), " a second")};
  }
  MONARCH_ASSIGN(const StrikeTargets targets, targets_of(order));
  if (targets.processes.size() != 1) return Error{ErrorCode::kInvalid, "a flood is for one rank"};
  const ProcessEntry& rank = targets.processes.front();
  const std::string path = text("/proc/", rank.pid, "/fd/1");
  UniqueFd output(::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC));
  if (!output.valid()) return errno_error(text("opening the standard output of process ", rank.pid), errno);
  struct stat status {};
  if (::fstat(output.get(), &status) != 0 || !S_ISFIFO(status.st_mode)) {
    return Error{ErrorCode::kUnsupported, text("the standard output of process ", rank.pid, " is no pipe")};
  }
  UniqueFd pidfd = open_process(rank);  // after that: it was its own
  if (!pidfd.valid()) return Error{ErrorCode::kNotFound, "it had ended before it was struck"};
  MONARCH_ASSIGN(auto taken, SharedCount::create());
  return std::unique_ptr<Effect>(
      std::make_unique<Flood>(rank, std::move(pidfd), std::move(output), rate, std::move(taken)));
}

}  // namespace monarch
