#pragma once

// Strike: one injected fault on this host, in effect from begin() until undo(). What it stops goes on, what it starts
// ends and what it cuts passes again, also where this process is killed: a child of it waits for that and does the
// same.
//
// It decides nothing, which worker/core/strike_plan does, and knows no kind of strike: those are effects (effect.h).
//
// Thread: the main one of a process that has no other, for it forks.

#include <sys/types.h>

#include <memory>

#include "transport/base/result.h"
#include "transport/base/time.h"
#include "transport/base/unique_fd.h"
#include "transport/messages/strike.h"
#include "worker/drill/effect.h"

namespace monarch {

class Strike {
 public:
  // Once it is seen to be in effect. kTimeout: it is not within `patience`; what was done of it is taken back.
  static Result<std::unique_ptr<Strike>> begin(const StrikeOrder& order, Duration patience);
  // Whatever stands still of whom the order means goes on: of a strike whose process was killed, and its guarding child
  // with it. Nobody is there: nothing stands still. kUnsupported: it stops nobody.
  static Status let_go_on(const StrikeOrder& order, Duration patience);
  ~Strike() { (void)undo(Duration::seconds(5)); }  // whoever wants to know calls it before
  Strike(const Strike&) = delete;
  Strike& operator=(const Strike&) = delete;

  // Whom it struck, and when; once it is taken back whether it was felt.
  const StrikeSeen& seen() const { return seen_; }
  // Once it is seen not to be in effect any more. A second time it does nothing.
  Status undo(Duration patience);

 private:
  explicit Strike(std::unique_ptr<Effect> effect) : effect_(std::move(effect)) {}

  Status guard();

  std::unique_ptr<Effect> effect_;
  StrikeSeen seen_;
  UniqueFd alive_;  // whose end the guarding child reads
  pid_t guard_ = 0;
};

}  // namespace monarch
