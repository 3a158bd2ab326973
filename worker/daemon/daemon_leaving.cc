// How a daemon leaves: told to by its keeper, after it told the keeper to shut down, or since the keeper is gone.

#include "worker/daemon/daemon.h"

#include <algorithm>
#include <csignal>
#include <utility>

#include "transport/base/exit_code.h"
#include "transport/base/log.h"
#include "transport/base/text.h"
#include "transport/messages/keeper.h"
#include "transport/messages/rank.h"
#include "transport/messages/worker.h"
#include "transport/process/containment.h"
#include "transport/wire/codec.h"
#include "transport/wire/messages.h"
#include "transport/wire/socket_directory.h"
#include "worker/core/environment.h"

namespace monarch::daemon {
namespace {

// The keeper kills a daemon that leaves for longer than limits::kKillDeadline.
constexpr Duration kLeavePatience = Duration::milliseconds(1'400);
constexpr Duration kLastWords = Duration::milliseconds(300);  // for the supervisor to acknowledge the last ends
constexpr Duration kRemovePatience = Duration::milliseconds(200);
constexpr Duration kOrphanedPatience = Duration::milliseconds(500);  // for the output of what was just killed
constexpr Duration kKillPatience = Duration::seconds(5);

}  // namespace

// Once, by the thread that beats, whatever this one does meanwhile.
template <class Message>
void Daemon::say(const Message& message, bool last) {
  (void)beat_->put(SendFrame{.frame = frame_of(message, {.job = setup_.stash.job}), .last = last});
}

void Daemon::on_signal() {
  while (const auto received = signals_.next()) {
    if (received->sender_pid != hello_.keeper_pid) {
      // It may have gone to the whole group. What it means for the worker is the keeper's to decide.
      log_info(signal_name(received->number), " of process ", received->sender_pid, " is left to the keeper");
      continue;
    }
    leave_in_order();
  }
}

// All that it kept has ended; more than that is in its word alone.
void Daemon::on_keeper_ended(const KeeperEnded& ended) {
  keeper_ended_ = ended;
  check_left();
}

void Daemon::on_keeper_gone(const Error& why) {
  if (keeper_ended_) return remove_state();  // in order: what it kept has ended
  log_error("the keeper is gone (", why.message, "): everything of this worker is killed");
  // Before peers elsewhere miss the ranks.
  say(KeeperGone{hello_.incarnation}, false);
  const std::string job = setup_.stash.job.to_text();
  const std::string& host = setup_.stash.bootstrap.host_name;
  const ContainmentOptions everything{.host_lines = {text(kJobUuidVariable, '=', job), text(kHostVariable, '=', host)},
                                      .rank_variable = std::string(kRankKeyVariable),
                                      .job = job,
                                      .host = host};
  // It waits, and may: nobody is left to ping this loop, and the beats tell how long it has stood still.
  const std::size_t left = kill_everything(everything, CgroupUse::kIfWritable, kKillPatience);
  if (left > 0) log_error(left, " processes of this worker cannot be killed");
  const std::string& sockets = setup_.stash.bootstrap.socket_directory;
  if (!sockets.empty() && !remove_socket_directory(sockets)) log_warn(printable(sockets), " could not be removed");
  orderly_ = false;
  keeper_ended_ = KeeperEnded{static_cast<std::uint32_t>(left)};
  if (phase_ != Phase::kServing) return check_left();
  leave(kOrphanedPatience, kExitInternal);
}

void Daemon::leave_in_order() { leave(kLeavePatience, 0); }

void Daemon::leave(Duration patience, int exit_code) {
  if (phase_ != Phase::kServing) return;
  phase_ = Phase::kLeaving;
  if (vault_) vault_->servant().leave();
  if (post_) post_->servant().leave();
  exit_code_ = exit_code;
  loop_->at(loop_->now() + patience, [this] { remove_state(); });
  loop_->defer([this] { check_left(); });
}

// Leaves as soon as there is nothing more to tell: every end was heard and forgotten, or had its time to be.
void Daemon::check_left() {
  // Its keeper's word goes into the last one, and comes within a turn of it once every rank has ended.
  if (phase_ != Phase::kLeaving || !keeper_ended_) return;
  if (nothing_to_tell_ || core_.reports().empty()) return remove_state();
  // Their ends are nobody's to tell any more. What is to be copied elsewhere has its time.
  if (lost_keeper() && !setup_.stash.bootstrap.copied && all_complete()) return remove_state();
  if (!all_complete() || std::exchange(last_words_, true)) return;
  loop_->at(loop_->now() + kLastWords, [this] { remove_state(); });
}

bool Daemon::all_complete() const {
  const std::vector<RankReport> reports = core_.reports();
  return std::all_of(reports.begin(), reports.end(), [this](const RankReport& report) {
    return (report.phase == RankPhase::kEnded || lost_keeper()) && report.output_complete;
  });
}

void Daemon::remove_state() {
  if (phase_ == Phase::kRemoving) return;
  phase_ = Phase::kRemoving;
  if (!log_->put(RemoveState{})) say_goodbye();
  loop_->at(loop_->now() + kRemovePatience, [this] { say_goodbye(); });
}

// Its last word, if there is nothing left to look for. It is not repeated: who does not hear it looks.
void Daemon::say_goodbye() {
  if (result_) return;
  result_ = exit_code_;
  if (!keeper_ended_ || keeper_ended_->left > 0) return;
  say(Goodbye{.incarnation = hello_.incarnation, .orderly = orderly_}, true);
}

}  // namespace monarch::daemon
