// What a keeper is sent as signals: the ends of its children, and words that it is to end, or that its host is about to
// be taken.

#include <csignal>
#include <utility>

#include "transport/base/log.h"
#include "transport/messages/keeper.h"
#include "transport/wire/codec.h"
#include "worker/keeper/keeper.h"

namespace monarch {

namespace event = keeper_event;
namespace action = keeper_action;

void Keeper::on_signals() {
  while (const auto received = signals_->next()) {
    if (received->number == SIGCHLD) {
      watch_.reap_adopted();
      ranks_.look_at_stopped();
      continue;
    }
    log_info("received ", signal_name(received->number), " from pid ", received->sender_pid);
    if (received->number == SIGTERM && std::exchange(term_taken_, false)) continue;
    handle(event::Terminated{received->number});
  }
}

// A TERM that goes to all processes here is told before the ends that it brings about, or they would pass for failures.
void Keeper::on_rank(KeeperEvent happened) {
  sigset_t pending;
  const bool looks = setup_.options.term_foretells && std::holds_alternative<event::Exited>(happened) && !term_taken_;
  if (looks && ::sigpending(&pending) == 0 && sigismember(&pending, SIGTERM) == 1) {
    term_taken_ = true;
    handle(event::Terminated{SIGTERM});
  }
  handle(std::move(happened));
}

void Keeper::perform(const action::TellWarned& ordered) { send(KeeperWarned{ordered.warnings}, {}); }

}  // namespace monarch
