#include "transport/tensor/core/nccl_life.h"

#include <utility>

#include "transport/base/assert.h"
#include "transport/base/text.h"

namespace monarch::tensor {

bool NcclLife::end(std::string cause) {
  if (has_ended()) return false;
  phase_ = Phase::kEnding;
  cause_ = std::move(cause);
  return true;
}

bool NcclLife::enter() {
  if (has_ended()) return false;
  ++inside_;
  return true;
}

void NcclLife::leave() {
  MONARCH_ASSERT(inside_ > 0);
  --inside_;
}

bool NcclLife::begin_abort(bool patient) {
  if (phase_ != Phase::kEnding || (patient && inside_ > 0)) return false;
  phase_ = Phase::kAborting;
  return true;
}

void NcclLife::over() {
  MONARCH_ASSERT_BECAUSE(phase_ == Phase::kAborting, "L1: it is aborted once");
  phase_ = Phase::kOver;
}

Error NcclLife::gone() const {
  MONARCH_ASSERT(has_ended());
  return {ErrorCode::kGone, text(name_, ": ", cause_)};
}

}  // namespace monarch::tensor
