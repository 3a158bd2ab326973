#include "supervisor/core/recovery/lifetime.h"

#include <algorithm>

namespace monarch {

Duration warning_before(Duration limit) { return std::min(Duration::seconds(300), limit / 10); }

void IdleWatch::begin(Instant now) {
  if (begun_) return;
  begun_ = true;
  used(now);
}

void IdleWatch::viewers(std::size_t attached, Instant now) {
  if (attached == 0 && attached_ > 0) used(now);
  attached_ = attached;
}

void IdleWatch::used(Instant now) {
  since_ = now;
  warned_ = false;
}

IdleWatch::Says IdleWatch::turn(Instant now) {
  if (!counts()) return Says::kNothing;
  if (now >= since_ + limit_) {
    stopped_ = true;
    return Says::kStop;
  }
  if (warned_ || now < since_ + limit_ - warning_before(limit_)) return Says::kNothing;
  warned_ = true;
  return Says::kWarn;
}

Instant IdleWatch::next_deadline() const {
  if (!counts()) return Instant::never();
  return warned_ ? since_ + limit_ : since_ + limit_ - warning_before(limit_);
}

}  // namespace monarch
