#pragma once

// NcclLife: what may still be asked of a communicator of NCCL's, and the one moment when it is aborted.
//
//   kRunning ── end(cause), the first counts ──▶ kEnding ── begin_abort() ──▶ kAborting ── over() ──▶ kOver
//
// L1: it is aborted once. L2: nothing is asked of it from kAborting on, and nobody is in a call of it then, but for
// whom has not come back from one within the patience of who aborts. L3: who asks after the end hears its cause.
//
// Thread: a value, guarded by its owner.

#include <cstdint>
#include <string>
#include <utility>

#include "transport/base/result.h"

namespace monarch::tensor {

class NcclLife {
 public:
  enum class Phase : std::uint8_t { kRunning, kEnding, kAborting, kOver };

  // `name`: of the group, as errors say it.
  explicit NcclLife(std::string name) : name_(std::move(name)) {}

  Phase phase() const { return phase_; }
  bool has_ended() const { return phase_ != Phase::kRunning; }

  // False: it had ended before, for another cause.
  bool end(std::string cause);

  // Somebody calls NCCL. False: it has ended, and he may not.
  bool enter();
  void leave();

  // Whether to abort now; once. `patient`: who is in a call is waited for.
  bool begin_abort(bool patient);
  void over();

  // kGone: what everybody is told who asks after its end.
  Error gone() const;

 private:
  const std::string name_;
  Phase phase_ = Phase::kRunning;
  std::string cause_;
  std::uint32_t inside_ = 0;
};

}  // namespace monarch::tensor
