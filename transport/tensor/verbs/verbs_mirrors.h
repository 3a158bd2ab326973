#pragma once

// VerbsMirrors: the owner's ends of the queues by which readers READ his slots. They serve, and can do nothing else.
//
// Thread: the owner's. Lifetime: within that of the device.

#include <map>
#include <memory>
#include <string>

#include "transport/tensor/core/version.h"
#include "transport/tensor/verbs/queue_words.h"
#include "transport/tensor/verbs/verbs.h"

namespace monarch::tensor {

class VerbsMirrors {
 public:
  explicit VerbsMirrors(VerbsEnd end) : end_(std::move(end)) {}

  const VerbsEnd& end() const { return end_; }
  // What the reader of that link is answered; one queue for each.
  VerbsWord meet(LinkNumber link, const VerbsWord& theirs);
  void left(LinkNumber link) { queues_.erase(link); }

 private:
  Result<QueueAddress> make(LinkNumber link, const QueueAddress& theirs);

  const VerbsEnd end_;
  std::map<LinkNumber, std::unique_ptr<VerbsQueue>> queues_;
};

}  // namespace monarch::tensor
