#pragma once

// Ending: how far the job is, from its begin to its end: its verdict, the first of which stands, its own times, and an
// end that is foreseen: who gave the hosts takes them back at a time. Then ranks are told at once, and may save what
// they have; nothing is started again, no host takes another's place and no budget is spent; the job is stopped early
// enough to have ended by then.
//
// Thread: JobCore's; no locks. Lifetime: JobCore's.

#include <string>
#include <utility>

#include "supervisor/core/accounts/last_words.h"
#include "supervisor/core/crew/core_basis.h"
#include "supervisor/core/crew/times.h"
#include "supervisor/core/state/events.h"

namespace monarch {

class Ending {
 public:
  Ending(const CoreBasis& basis, JobCourse& mine, LastWords& last_words)
      : basis_(basis), mine_(mine), last_words_(last_words) {}

  void on(const StopOrdered& event);
  void on(const IdleNoted& event);
  void on(const EndForeseen& event);
  void begin();
  // The first verdict stands; what fails afterwards is its consequence.
  void fail(Verdict verdict);
  void give_time_to_start();
  void look_at_times();
  void returned();
  // By a supervisor that comes back: the one before it may have waited for the answer.
  void foresee_without_answer();

  // In this order, with what is taken below done between them.
  void look_running();
  void look_done();
  void look_drained();
  void finish();

  // Nothing starts any more; the highest stage is to be stopped, also again; workers are to end, or are killed.
  bool take_nothing_starts() { return std::exchange(nothing_starts_, false); }
  bool take_stop() { return std::exchange(stop_due_, false); }
  bool take_shut_down() { return std::exchange(shut_down_due_, false); }
  bool take_kill() { return std::exchange(kill_due_, false); }

  template <class Visit>
  void each_time(Visit& visit) const {
    visit(mine_.start_deadline, TimeKind::kPatience);
    visit(mine_.drain_deadline, TimeKind::kPatience);
    for (Instant* time :
         {&mine_.time_deadline, &mine_.lifetime_deadline, &mine_.lifetime_warning, &mine_.foreseen_deadline}) {
      visit(*time, TimeKind::kAlarm);
    }
    if (!mine_.foreseen) return;
    visit(mine_.foreseen->by, TimeKind::kPast);
    visit(mine_.foreseen->kill, TimeKind::kPast);
  }

 private:
  void forget_deadlines();
  bool start_is_overdue();
  void time_is_up(const std::string& key, Duration limit);
  void foresee(const EndForeseen& event);
  void stop_as_foreseen();
  void check_foreseen();

  const CoreBasis& basis_;
  JobCourse& mine_;
  LastWords& last_words_;
  bool nothing_starts_ = false;
  bool stop_due_ = false;
  bool shut_down_due_ = false;
  bool kill_due_ = false;
};

}  // namespace monarch
