#include "supervisor/launch/fair_timer.h"

#include <utility>

namespace monarch {

void FairTimer::start(FairDeadline deadline, Over over) {
  stop();
  deadline_ = deadline;
  over_ = std::move(over);
  look_later();
}

void FairTimer::stop() {
  loop_.cancel(std::exchange(timer_, 0));
  over_ = nullptr;
}

void FairTimer::look_later() {
  timer_ = loop_.at(deadline_.look_by(loop_.now()), [this] {
    timer_ = 0;
    if (!deadline_.over(loop_.now())) return look_later();
    const std::string late = late_words(deadline_.late());
    const Over told = std::exchange(over_, nullptr);
    told(late);
  });
}

}  // namespace monarch
