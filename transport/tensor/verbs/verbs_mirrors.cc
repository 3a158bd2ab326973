#include "transport/tensor/verbs/verbs_mirrors.h"

#include <utility>

namespace monarch::tensor {

VerbsWord VerbsMirrors::meet(LinkNumber link, const VerbsWord& theirs) {
  VerbsWord answer;
  if (end_.device == nullptr) {
    answer.why_not = end_.why_not;
    return answer;
  }
  auto address = make(link, theirs.address);
  if (address.ok()) {
    answer.address = std::move(*address);
  } else {
    answer.why_not = address.error().message;
  }
  return answer;
}

Result<QueueAddress> VerbsMirrors::make(LinkNumber link, const QueueAddress& theirs) {
  queues_.erase(link);
  const auto gid = gid_of(theirs);
  MONARCH_ASSIGN(OwnQueue made, make_own_queue(*end_.device, 0, gid ? gid_text(*gid) : std::string(), gid));
  MONARCH_ASSIGN(const QueuePath path, meet_queues(made.address, made.gid_index, theirs));
  MONARCH_TRY(made.queue->connect(path));
  queues_[link] = std::move(made.queue);
  return made.address;
}

}  // namespace monarch::tensor
